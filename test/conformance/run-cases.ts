import { Bench, chat, NotApplicable, pause, Shortfall } from './bench.ts';
import type { Case } from './cases.ts';
import type { Product, Starter } from './products.ts';

export interface Mark {
  readonly mark: 'pass' | 'fail' | 'not applicable';
  /** What went otherwise, or why it does not apply. */
  readonly note: string;
}

export interface Column {
  readonly name: string;
  readonly version: string;
  /** Why it could not be had; then there are no marks. */
  readonly missing: string | undefined;
  readonly marks: ReadonlyMap<string, Mark>;
}

/** One case, beyond which nothing is waited for. */
const CASE_MS = 60_000;

export async function runCase(product: Product, one: Case): Promise<Mark> {
  const bench = new Bench(product);
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Shortfall(`not over within ${CASE_MS / 1000} s`)), CASE_MS);
  });
  try {
    await Promise.race([one.run(bench), tooLong]);
    if (!product.alive()) return { mark: 'fail', note: 'the process has ended' };
    return { mark: 'pass', note: '' };
  } catch (error) {
    if (error instanceof NotApplicable) return { mark: 'not applicable', note: error.message };
    if (error instanceof Shortfall) return { mark: 'fail', note: error.message };
    throw error;
  } finally {
    clearTimeout(timer);
    bench.finish();
  }
}

/** How long a product may need to get over a case: it may heed a Retry-After or keep a server out for a while. */
const SETTLE_MS = 20_000;

/** Waits until a plain request is served again, as before any case. False if it is not in time. */
export async function settle(product: Product): Promise<boolean> {
  const giveUpMs = performance.now() + SETTLE_MS;
  while (product.alive() && performance.now() < giveUpMs) {
    const bench = new Bench(product);
    const { status } = await bench.post(chat()).whole(10_000);
    bench.finish();
    if (status === 200) return true;
    await pause(250);
  }
  return false;
}

/** All cases against one product, each against a process that has got over the ones before; one that does not is started anew. */
export async function runColumn(
  name: string,
  start: Starter,
  cases: readonly Case[],
  untilMs: number,
): Promise<Column> {
  const marks = new Map<string, Mark>();
  let product: Product;
  try {
    product = await start();
  } catch (error) {
    return { name, version: '', missing: (error as Error).message, marks };
  }
  const { version } = product;
  try {
    for (const one of cases) {
      if (performance.now() > untilMs) {
        marks.set(one.id, { mark: 'not applicable', note: 'the run’s time was over' });
        continue;
      }
      const mark = await runCase(product, one);
      marks.set(one.id, mark);
      console.log(`${name.padEnd(10)} ${one.id.padEnd(4)} ${mark.mark.padEnd(14)} ${mark.note}`);
      if (!(await settle(product))) {
        await product.stop();
        product = await start();
      }
    }
  } finally {
    await product.stop();
  }
  return { name, version, missing: undefined, marks };
}
