import { Worker } from 'node:worker_threads';
import { SignalboxError } from '@signalbox/plugin-api';
import type { CompileJob, LoadedPolicy } from './compile-job.ts';

/** A policy of more rules, or more text, is compiled on a thread of its own, so that streams go on meanwhile. */
const MOST_RULES_HERE = 100;
const MOST_CHARACTERS_HERE = 32 * 1024;
/** No policy within the limits of the language takes nearly as long. */
const COMPILE_WITHIN_MS = 60_000;
const COMPILER_HEAP_MB = 1024;

/** Whether these texts are too much to compile between two events of a stream. */
export function isLargePolicy(texts: Iterable<string | undefined>): boolean {
  let characters = 0;
  let rules = 0;
  for (const text of texts) {
    if (text === undefined) continue;
    characters += text.length;
    rules += text.match(/^\s*(?:route|default|admit|reject|queue)\b/gm)?.length ?? 0;
  }
  return characters > MOST_CHARACTERS_HERE || rules > MOST_RULES_HERE;
}

/** Does the job on a thread of its own. Rejects with a SignalboxError where the thread fails or takes too long. */
export function compileAside(job: CompileJob, withinMs: number = COMPILE_WITHIN_MS): Promise<LoadedPolicy> {
  const fromSource = import.meta.url.endsWith('.ts');
  const worker = new Worker(new URL(`./compile-worker.${fromSource ? 'ts' : 'js'}`, import.meta.url), {
    workerData: job,
    execArgv: fromSource ? ['--conditions=@signalbox/source'] : [],
    resourceLimits: { maxOldGenerationSizeMb: COMPILER_HEAP_MB },
  });
  worker.unref();
  return new Promise<LoadedPolicy>((resolve, reject) => {
    const fail = (why: string, cause?: unknown): void =>
      reject(
        new SignalboxError(`the policy could not be compiled: ${why}`, {
          code: 'compile_failed',
          source: 'gateway',
          cause,
        }),
      );
    const timer = setTimeout(() => fail(`it took longer than ${withinMs / 1000} s`), withinMs);
    worker.once('message', resolve);
    worker.once('error', (cause) => fail(cause instanceof Error ? cause.message : String(cause), cause));
    worker.once('exit', (code) => fail(`its thread ended with ${code}`));
    worker.once('exit', () => clearTimeout(timer));
  }).finally(() => void worker.terminate());
}
