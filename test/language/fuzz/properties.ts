import {
  compilePolicy,
  formatPolicy,
  generate,
  instantiateGenerated,
  interpret,
  parsePolicy,
  renderJson,
  renderSarif,
  renderText,
} from '../../../packages/policy/src/index.ts';
import type { Diagnostic, PolicyProgram } from '../../../packages/policy/src/index.ts';
import { evaluateAll } from '../../../packages/policy/src/eval/evaluate-all.fixture.ts';
import { hostDataFor, SLOTS } from '../../../packages/policy/src/eval/host-data.fixture.ts';
import { shapeOf } from '../../../packages/policy/src/syntax/shape.fixture.ts';
import { LIBRARY_TEXT } from '../mutations/judge.ts';
import { compileInput } from '../support/compile.fixture.ts';

/** What went wrong with a text; `kind` stays the same while the text is made smaller. */
export interface FuzzFailure {
  readonly kind: 'crash' | 'hang' | 'span' | 'message' | 'evaluators' | 'unstable' | 'meaning' | 'comments';
  readonly what: string;
}

/** What a text reached, to show that the inputs are not all refused at the door. */
export interface FuzzReach {
  readonly parsed: boolean;
  readonly compiled: boolean;
  /** CPU time in ms of parsing, compiling and formatting it. */
  readonly cpuMs: number;
}

/** One second of CPU time for 100 KB, and for less. */
const BUDGET_MS_PER_100_KB = 1000;
/** For each finding, to write it in three forms. */
const WRITING_MS = 0.3;
const FILE = 'policy.route';

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

function wrongSpan(text: string, findings: readonly Diagnostic[]): FuzzFailure | undefined {
  const wrong = findings
    .flatMap(({ span, labels, fix }) => [
      span,
      ...labels.map((label) => label.span),
      ...(fix?.edits ?? []).map((edit) => edit.span),
    ])
    .find((span) => span.file === FILE && !(span.start >= 0 && span.start <= span.end && span.end <= text.length));
  return wrong === undefined ? undefined : { kind: 'span', what: `${wrong.start}-${wrong.end} of ${text.length}` };
}

function leak(text: string, findings: readonly Diagnostic[]): FuzzFailure | undefined {
  const found = findings.find(({ message, help = '' }) => {
    const own = LIBRARY_TEXT.exec(message)?.[0] ?? LIBRARY_TEXT.exec(help)?.[0];
    return own !== undefined && !text.includes(own) && !help.includes('write');
  });
  return found === undefined ? undefined : { kind: 'message', what: `${found.code} ${found.message}` };
}

const formatted = (text: string): string => formatPolicy(text, { file: FILE }).text;
const shapeText = (text: string): string => JSON.stringify(shapeOf(parsePolicy(text, { file: FILE }).file));
/** Words and signs, but for commas, which come and go between the entries of an object. */
const wordsOf = (text: string): string =>
  JSON.stringify(
    parsePolicy(text, { file: FILE }).tokens.flatMap(({ kind, text: word }) =>
      kind === 'comment' || word === ',' ? [] : [word],
    ),
  );
const commentsOf = (text: string): string =>
  JSON.stringify(
    parsePolicy(text, { file: FILE })
      .file.comments.map((comment) => comment.text)
      .toSorted(),
  );

function formatterFailure(text: string, once: string, parses: boolean): FuzzFailure | undefined {
  const twice = formatted(once);
  if (twice !== once) return { kind: 'unstable', what: `${JSON.stringify(once)} becomes ${JSON.stringify(twice)}` };
  // How a statement that does not parse is told from the next depends on its layout; its words do not.
  const same = parses ? shapeText(once) === shapeText(text) : wordsOf(once) === wordsOf(text);
  if (!same) return { kind: 'meaning', what: JSON.stringify(once) };
  if (commentsOf(once) !== commentsOf(text)) return { kind: 'comments', what: JSON.stringify(once) };
  return undefined;
}

function evaluatorFailure(program: PolicyProgram): FuzzFailure | undefined {
  const [generated, interpreted] = [instantiateGenerated(program, generate(program)), interpret(program)];
  for (const seed of [1, 2, 3]) {
    const data = hostDataFor(program, seed);
    const [one, other] = [generated, interpreted].map((evaluators) =>
      JSON.stringify(evaluateAll(program, evaluators, data, SLOTS), (_, value: unknown) =>
        typeof value === 'number' && !Number.isFinite(value) ? String(value) : value,
      ),
    );
    if (one !== other) return { kind: 'evaluators', what: `host ${seed}: ${String(one)} and ${String(other)}` };
  }
  return undefined;
}

/** Tries a text on everything; `patience` multiplies the times that it may take. */
export function tryText(text: string, patience = 1): FuzzReach & { readonly failure?: FuzzFailure } {
  const reach = { parsed: false, compiled: false, cpuMs: 0 };
  try {
    const before = cpuMs();
    const parsed = parsePolicy(text, { file: FILE });
    const { program, diagnostics, sources } = compilePolicy(compileInput(text));
    const once = formatted(text);
    reach.cpuMs = cpuMs() - before;
    reach.parsed = !parsed.diagnostics.some(({ severity }) => severity === 'error');
    reach.compiled = program !== undefined;
    const writing = cpuMs();
    for (const render of [renderText, renderJson]) render(diagnostics, sources);
    renderSarif(diagnostics, sources, { toolVersion: '0' });
    const writingMs = cpuMs() - writing;
    const failure =
      (reach.cpuMs > patience * BUDGET_MS_PER_100_KB * Math.max(1, text.length / 100_000)
        ? ({ kind: 'hang', what: `${reach.cpuMs.toFixed(0)} ms for ${text.length} characters` } as const)
        : undefined) ??
      (writingMs > patience * (BUDGET_MS_PER_100_KB + WRITING_MS * diagnostics.length)
        ? ({ kind: 'hang', what: `${writingMs.toFixed(0)} ms to write ${diagnostics.length} findings` } as const)
        : undefined) ??
      wrongSpan(text, [...parsed.diagnostics, ...diagnostics]) ??
      leak(text, diagnostics) ??
      formatterFailure(text, once, reach.parsed) ??
      (program === undefined ? undefined : evaluatorFailure(program));
    return failure === undefined ? reach : { ...reach, failure };
  } catch (error) {
    const what = error instanceof Error ? `${error.message}\n${error.stack ?? ''}` : String(error);
    return { ...reach, failure: { kind: 'crash', what } };
  }
}

/** A smaller text that fails in the same way: pieces are left out for as long as the failure stays. */
export function minimise(text: string, kind: FuzzFailure['kind'], tries = 2000): string {
  let smallest = text;
  let left = tries;
  for (let size = Math.ceil(text.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < smallest.length && left > 0; left -= 1) {
      const candidate = smallest.slice(0, at) + smallest.slice(at + size);
      if (tryText(candidate).failure?.kind === kind) smallest = candidate;
      else at += size;
    }
  }
  return smallest;
}
