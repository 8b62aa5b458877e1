import { constants, fstatSync, openSync, write, writeSync } from 'node:fs';
import { Utf8Text } from './utf8-text.ts';

/** Lines on their way to a file descriptor, gathered into few writes that hold nobody up. */
export interface LogStream {
  /** Takes one line with its line break. */
  write(line: string): void;
  /** Takes one line with its line break, which `render` makes of `item` where lines are gathered. It must not throw. */
  append<Item>(render: (text: Utf8Text, item: Item) => void, item: Item): void;
  /** Writes what is held, at the latest before the process ends; what a full pipe does not take within half a second is lost. */
  flushSync(): void;
  /** Lines that were lost because the reader had gone or could not keep up. */
  readonly dropped: number;
}

/** Text at which a write begins; a large write costs hardly more than a small one. */
const GATHERED_BYTES = 32 * 1024;
/** Text that may wait for a slow reader; lines beyond are dropped. */
const MOST_HELD_BYTES = 8 * 1024 * 1024;
const LONGEST_HELD_MS = 250;
/** How long a full pipe is left alone. */
const FULL_PIPE_MS = 20;
/** How long the last write waits for a full pipe: a reader that is stuck must not keep the process. */
const LAST_WRITE_MS = 500;

/**
 * A log stream on a file descriptor, standard output by default. Lines wait until 32 KiB of text are together or a quarter of a second has
 * passed, and one asynchronous write is under way at a time. A reader that has gone away loses lines, and nothing else happens.
 */
export function createLogStream(descriptor: number = 1): LogStream {
  const fd = withoutWaiting(descriptor);
  const held = new Utf8Text();
  let lines = 0;
  /** A write is under way, or waits for a full pipe. */
  let busy = false;
  /** Bytes that a full pipe refused, to be tried again. */
  let refused: Buffer | undefined;
  let timer: NodeJS.Timeout | undefined;

  function hasRoom(): boolean {
    if (held.size <= MOST_HELD_BYTES) return true;
    stream.dropped++;
    return false;
  }

  function taken(): void {
    lines++;
    if (busy) return;
    if (held.size >= GATHERED_BYTES) begin();
    else timer ??= setTimeout(begin, LONGEST_HELD_MS).unref();
  }

  function begin(): void {
    clearTimeout(timer);
    timer = undefined;
    if (busy || held.size === 0) return;
    const count = lines;
    lines = 0;
    go(held.take(), count);
  }

  function go(bytes: Buffer, count: number): void {
    busy = true;
    refused = undefined;
    write(fd, bytes, (error, taken) => {
      if (error?.code === 'EAGAIN') {
        refused = bytes;
        setTimeout(() => {
          if (refused === bytes) go(bytes, count);
        }, FULL_PIPE_MS).unref();
        return;
      }
      if (error === null && taken < bytes.length) {
        go(bytes.subarray(taken), count);
        return;
      }
      busy = false;
      held.giveBack(bytes);
      if (error !== null) stream.dropped += count;
      if (held.size >= GATHERED_BYTES) begin();
      else if (held.size > 0) timer ??= setTimeout(begin, LONGEST_HELD_MS).unref();
    });
  }

  // perf: no getter, which would make a hash table of the object, and a look-up of every call of a method.
  const stream: { -readonly [Member in keyof LogStream]: LogStream[Member] } = {
    dropped: 0,
    write(line) {
      if (!hasRoom()) return;
      held.add(line);
      taken();
    },
    append(render, item) {
      if (!hasRoom()) return;
      render(held, item);
      taken();
    },
    flushSync() {
      // what a write under way has taken is on its way and must not come twice
      const rest = refused === undefined ? held.take() : Buffer.concat([refused, held.take()]);
      refused = undefined;
      const count = lines;
      lines = 0;
      const giveUpMs = performance.now() + LAST_WRITE_MS;
      for (let at = 0; at < rest.length;) {
        try {
          at += writeSync(fd, rest, at);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code === 'EAGAIN' && performance.now() < giveUpMs) {
            Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_PIPE_MS);
            continue;
          }
          stream.dropped += count;
          return;
        }
      }
    },
  };
  return stream;
}

/**
 * A descriptor of the same pipe in which a write that finds it full fails instead of waiting: one that waits holds a thread, and with it the
 * end of the process, for as long as the reader is stuck. The flag belongs to what was opened, which others may share, so that it is opened
 * anew (Linux); anything but a pipe, and a system where that is not possible, keeps the descriptor.
 */
function withoutWaiting(descriptor: number): number {
  try {
    return fstatSync(descriptor).isFIFO()
      ? openSync(`/proc/self/fd/${descriptor}`, constants.O_WRONLY | constants.O_NONBLOCK)
      : descriptor;
  } catch {
    return descriptor;
  }
}
