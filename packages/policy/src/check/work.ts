import type { PluginManifest } from '@signalbox/plugin-api';
import type { AdmissionRule, PluginUse, RouteRule } from '../ir.ts';
import type { PolicyEnsure, PolicyTest } from '../policy-checks.ts';
import type { Span } from '../syntax/span.ts';
import type { Allowance } from './annotations.ts';
import type { DefinitionList } from './definition-list.ts';
import type { LoadedFile } from './load-files.ts';
import type { Binding, Session } from './session.ts';

/** How the host answers a `use`: the manifest of the package, or why there is none. A bare text counts as `not_found`. */
export type ResolvedPlugin =
  | { readonly manifest: PluginManifest; readonly error?: never }
  | { readonly error: PluginProblem | string; readonly manifest?: never };

export interface PluginProblem {
  readonly reason: 'not_found' | 'not_allowed' | 'invalid' | 'api_version';
  /** One sentence without a full stop, for people. */
  readonly message: string;
}

export interface ProgramInput {
  readonly session: Session;
  readonly main: LoadedFile;
  readonly firstParty: readonly PluginManifest[];
  readonly resolvePlugin: (name: string) => ResolvedPlugin;
}

export interface Work {
  readonly session: Session;
  readonly input: ProgramInput;
  readonly main: string;
  readonly list: DefinitionList;
  readonly admission: AdmissionRule[];
  readonly routes: RouteRule[];
  readonly uses: PluginUse[];
  readonly usedManifests: PluginManifest[];
  readonly tests: PolicyTest[];
  readonly ensures: PolicyEnsure[];
  readonly allowances: Allowance[];
  /** Labels of rules, and of routes alone. */
  readonly labels: Map<string, Span>;
  readonly routeLabels: Map<string, Span>;
  /** Labels that some rule of the policy is given in the text, above or below: none that is made may equal one. */
  readonly writtenLabels: Set<string>;
  /** By a label without a number: the first number that was not yet tried behind it. */
  readonly nextNumbers: Map<string, number>;
  readonly aliases: Map<string, Span>;
  readonly unusedChecks: {
    readonly span: Span;
    readonly binding?: Binding;
    readonly use?: number;
    readonly kind: 'let' | 'use' | 'import';
    readonly name: string;
  }[];
  readonly counts: { route: number; default: number; admit: number; reject: number; queue: number };
  admissionClosed: Span | undefined;
  /** Places already reported as possibly unknown. */
  readonly openUnknowns: Set<string>;
  /** Where the last route stands, and whether there is any rule that did not parse and could be a default. */
  lastRoute: Span | undefined;
  brokenRule: boolean;
}
