import type { Diagnostic, DiagnosticCode } from '../../packages/policy/src/index.ts';
import { compilePolicy, diagnosticCodes, renderText, withAnalysis } from '../../packages/policy/src/index.ts';
import { compileInput } from '../language/support/compile.fixture.ts';

/** Codes whose examples only describe a text that is too large to print. */
export const DESCRIBED: ReadonlySet<DiagnosticCode> = new Set(['E0140', 'E0141', 'E0142', 'E0143', 'E0144']);

/** Files that examples import. */
const files: { readonly [path: string]: string } = {
  'a.route': 'let x = 5',
  'b.route': 'let y = 5',
  'more.route': 'route when stream to any',
  'tenants.route': 'let gold = ["acme"]',
  'shared.route': 'let x = 5',
  'shared/other.route': 'let x = 5',
  'self.route': 'import "./self.route"',
  'broken.route': 'route when to any',
};

/** Builds that lack something, for the codes that tell of it. */
const BUILDS: { readonly [code in DiagnosticCode]?: Parameters<typeof compileInput>[2] } = {
  E0232: { manifests: [] },
  W0516: { unprovided: ['candidate.kv_cache_used'] },
  W0521: { unprovided: ['with.hedge'] },
};

/** The findings of one of the two examples of a code, and how the command line prints those of this code. */
export function exampleFindings(
  code: DiagnosticCode,
  which: 'bad' | 'good',
): { readonly findings: readonly Diagnostic[]; readonly printed: string } {
  const compiled = compilePolicy(
    compileInput(diagnosticCodes[code][which], files, { path: 'example.route', ...BUILDS[code] }),
  );
  const { diagnostics, sources } = withAnalysis(compiled, { overlap: code === 'W0505' });
  const own = diagnostics.filter((diagnostic) => diagnostic.code === code).slice(0, 1);
  return { findings: diagnostics, printed: renderText(own, sources).replace(/\n+\d+ \w+\n*$/, '\n') };
}
