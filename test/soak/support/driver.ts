import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export type DriverTask =
  /** Requests of the mix at fixed instants, until it is stopped. */
  | { readonly kind: 'load'; readonly port: number; readonly rate: number; readonly firstSeed: number }
  /** So many streams at once, `perSecond` more each second; `again` opens another for each that ends, until it is stopped. */
  | {
      readonly kind: 'streams';
      readonly port: number;
      readonly streams: number;
      readonly perSecond: number;
      readonly tokens: number;
      readonly paceMs: number;
      readonly firstSeed: number;
      readonly again: boolean;
    };

/** What came of all requests of a driver. */
export interface Tally {
  whole: number;
  /** Left by the client, as it meant to. */
  left: number;
  faults: number;
  /** Of the whole ones: how many each version and tier answered; the key is both, with a space between. */
  byVersion: Record<string, number>;
  /** The first ones. */
  faultTexts: string[];
  /** Events of streams that came. */
  events: number;
}

/** Where a driver stands. */
export interface Progress {
  /** Requests that have not ended. */
  readonly open: number;
  readonly events: number;
  readonly faults: number;
}

/** A client in a process of its own, at work. */
export interface Driver {
  readonly pid: number;
  /** Its next report; it makes one each second. */
  nextReport(): Promise<Progress>;
  /** Begins no more requests. */
  stop(): void;
  /** When every request has ended. Rejects if the process ends before. */
  readonly done: Promise<Tally>;
}

const driverMain = fileURLToPath(new URL('driver-process.ts', import.meta.url));
const upstreamMain = fileURLToPath(new URL('upstream-process.ts', import.meta.url));

export function startDriver(task: DriverTask): Driver {
  const child = fork(driverMain, { execArgv: [] });
  let report = Promise.withResolvers<Progress>();
  const { promise: done, resolve, reject } = Promise.withResolvers<Tally>();
  child.on('message', (message: Progress | { readonly tally: Tally }) => {
    if (!('tally' in message)) {
      report.resolve(message);
      report = Promise.withResolvers<Progress>();
      return;
    }
    resolve(message.tally);
    child.disconnect();
  });
  child.once('exit', (code, signal) => {
    const error = new Error(`the driver ended with ${code ?? signal}`);
    reject(error);
    report.reject(error);
    report.promise.catch(() => undefined);
  });
  child.send(task);
  return {
    pid: child.pid ?? 0,
    nextReport: () => report.promise,
    stop: () => void (child.connected && child.send('stop')),
    done,
  };
}

/** Endpoints in a process of their own. */
export interface Upstreams {
  readonly pid: number;
  /** In the order of the names of tiers. */
  readonly urls: readonly string[];
  stop(): Promise<void>;
}

/** Starts an endpoint for each name of a tier; several may be of one tier. */
export async function startUpstreams(tiers: readonly string[]): Promise<Upstreams> {
  const child: ChildProcess = fork(upstreamMain, tiers, { execArgv: [] });
  const [urls] = (await once(child, 'message')) as [string[]];
  return {
    pid: child.pid ?? 0,
    urls,
    async stop() {
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
    },
  };
}
