import type { CheckOptions, PluginManifest } from '@signalbox/plugin-api';
import { ANALYSIS_CODES, applyAllowances, unusedAllowance } from './check/annotations.ts';
import type { AllowedFindings } from './check/annotations.ts';
import { createCatalogue } from './check/catalogue/catalogue.ts';
import { checkOptionsPlainly } from './check/check-options.ts';
import { checkProgram } from './check/check-program.ts';
import type { Observer } from './check/observer.ts';
import type { ResolvedPlugin } from './check/work.ts';
import { compactTables } from './check/compact.ts';
import { checkExpression } from './check/expression.ts';
import { hashParts } from './check/content-hash.ts';
import { createDefinedNames } from './check/defined-names.ts';
import { loadFiles } from './check/load-files.ts';
import { createSession } from './check/session.ts';
import { hasErrors, sortDiagnostics } from './diagnostics/diagnostic.ts';
import type { Diagnostic } from './diagnostics/diagnostic.ts';
import type { Sources } from './diagnostics/sources.ts';
import type { PolicyChecks, PolicyEnsure } from './policy-checks.ts';
import type { PolicyProgram } from './ir.ts';

/** Names that are known from outside the policy, as from a `--catalogue` file or a running fleet. */
export interface ExternalNames {
  readonly tiers?: readonly string[];
  readonly endpoints?: readonly string[];
}

export interface CompileInput {
  /** Path of the main file, relative to wherever `readFile` reads from; `/` between folders. */
  readonly path: string;
  readonly text: string;
  /** Text of an imported file by its path (the main file's folder joined with what the import says), or undefined where there is none. */
  readonly readFile?: (path: string) => string | undefined;
  /** The folder below which imports stay; by default that of the main file. */
  readonly root?: string;
  /** First-party manifests, whose names are in scope without a prefix. */
  readonly manifests?: readonly PluginManifest[];
  /** What a `use` names. Absent: no package is known. */
  readonly resolvePlugin?: (name: string) => ResolvedPlugin;
  /** Checks options against their schema; absent: the plain checker of this package. */
  readonly checkOptions?: CheckOptions;
  /** Wall clock in milliseconds since 1970, for `@expires`. Absent: nothing expires. */
  readonly nowEpochMs?: number;
  /** A missing default is an error. */
  readonly strict?: boolean;
  readonly catalogue?: ExternalNames;
  /** Catalogue keys that nothing feeds in this build or fleet, as `candidate.kv_cache_used`. */
  readonly unprovided?: readonly string[];
}

export interface CompileResult {
  /** Present exactly if no diagnostic is an error. */
  readonly program?: PolicyProgram;
  /** Tests and ensures of the policy, checked and not run; present with the program. */
  readonly checks?: PolicyChecks;
  /** What `@allow` drops, for the analysis, which knows whether the allowances that are left drop anything; present with the program. */
  readonly allowed?: Pick<AllowedFindings, 'dropped' | 'unused'>;
  /** All findings of all files, in the order of the text. */
  readonly diagnostics: readonly Diagnostic[];
  readonly files: readonly { readonly path: string; readonly text: string }[];
  /** The same texts by path, as renderers take them. */
  readonly sources: Sources;
}

const noPlugin = (name: string): ResolvedPlugin => ({
  error: { reason: 'not_found', message: `the package ${JSON.stringify(name)} was not found` },
});

/**
 * Source to typed IR: parses the file and its imports, resolves and checks everything, and gives all findings at once. The one way in
 * for server, command line, editor and playground. Pure but for the functions it is given, and never throws on any text.
 */
export const compilePolicy = (input: CompileInput): CompileResult => compileObserved(input);

/** The same, telling `observer` what the checker finds names to stand for. */
export const compileObserved = (input: CompileInput, observer?: Observer): CompileResult => {
  const { manifests = [] } = input;
  const loaded = loadFiles(input.path, input.text, input.readFile ?? (() => undefined), input.root);
  const sources: Sources = new Map(loaded.files.map(({ path, text }) => [path, text]));
  const diagnostics: Diagnostic[] = [...loaded.diagnostics];
  const result = (whole?: Required<Pick<CompileResult, 'program' | 'checks' | 'allowed'>>): CompileResult => ({
    ...whole,
    diagnostics: sortFrom(input.path, diagnostics),
    files: loaded.files,
    sources,
  });
  // What a file means in a language that this compiler does not know cannot be checked.
  if (diagnostics.some((diagnostic) => diagnostic.code === 'E0133')) return result();
  const defined = createDefinedNames();
  for (const tier of input.catalogue?.tiers ?? []) {
    defined.tiersKnown = true;
    defined.tiers.set(tier, undefined);
  }
  for (const endpoint of input.catalogue?.endpoints ?? []) defined.endpoints.set(endpoint, undefined);
  const { table, clashes } = createCatalogue(manifests);
  const session = createSession({
    ...(observer === undefined ? {} : { observer }),
    catalogue: table,
    checkExpression,
    defined,
    checkOptions: input.checkOptions ?? checkOptionsPlainly,
    nowEpochMs: input.nowEpochMs ?? Number.NEGATIVE_INFINITY,
    strict: input.strict ?? false,
    unprovided: new Set(input.unprovided),
    diagnostics,
    texts: new Map(sources),
  });
  for (const { name, first, second } of clashes) {
    session.report(
      'E0509',
      { file: input.path, start: 0, end: 0 },
      `the first-party plugins \`${first}\` and \`${second}\` both provide \`${name}\``,
    );
  }
  const checked = checkProgram({
    session,
    main: loaded.main,
    firstParty: manifests,
    resolvePlugin: input.resolvePlugin ?? noPlugin,
  });
  const { kept, dropped, unused } = applyAllowances([...diagnostics], checked.allowances);
  const pointless = unused.filter(({ code }) => !ANALYSIS_CODES.has(code)).map(unusedAllowance);
  diagnostics.length = 0;
  for (const finding of [...kept, ...pointless]) diagnostics.push(finding);
  if (hasErrors(diagnostics)) return result();
  const folder = input.path.slice(0, input.path.lastIndexOf('/') + 1);
  const hash = hashParts([
    ...loaded.files.flatMap(({ path, text }, index) => [
      index === 0 ? '' : path.startsWith(folder) ? path.slice(folder.length) : path,
      text,
    ]),
    ...[...manifests, ...checked.usedManifests].map((manifest) => JSON.stringify(manifest)).toSorted(),
  ]);
  const whole: PolicyProgram = {
    irVersion: 1,
    language: 1,
    hash,
    files: loaded.files,
    definitions: checked.definitions,
    uses: checked.uses,
    signals: session.signals,
    properties: session.properties,
    admission: checked.admission,
    routes: checked.routes,
  };
  return result({
    program: compactTables(whole),
    checks: {
      tests: checked.tests,
      ensures: checked.ensures,
      conditions: compactTables(structuredConditions(whole, checked.ensures)),
    },
    allowed: { dropped, unused: unused.filter(({ code }) => ANALYSIS_CODES.has(code)) },
  });
};

/** The conditions of the ensures as a program of their own, so that what only they read is not computed for requests. */
const structuredConditions = (program: PolicyProgram, ensures: readonly PolicyEnsure[]): PolicyProgram => ({
  ...program,
  definitions: { ...program.definitions, alarms: [], limits: [] },
  routes: [],
  admission: ensures.map(({ label, span, when }) => ({
    label,
    span,
    headSpan: span,
    ...(when === undefined ? {} : { when }),
    verb: 'reject',
    with: {},
  })),
});

/** Sorted by file and place, the main file first. */
const sortFrom = (main: string, diagnostics: readonly Diagnostic[]): readonly Diagnostic[] => {
  const own = diagnostics.filter((diagnostic) => diagnostic.span.file === main);
  return [
    ...sortDiagnostics(own),
    ...sortDiagnostics(diagnostics.filter((diagnostic) => diagnostic.span.file !== main)),
  ];
};
