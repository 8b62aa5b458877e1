import { constants, fstatSync, openSync, write, writeSync } from 'node:fs';

/** Lines on their way to a file descriptor, gathered into few writes that hold nobody up. */
export interface LogStream {
  /** Takes one line with its line break. */
  write(line: string): void;
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

/** Room at first: what is gathered, and the line that goes beyond. */
const FIRST_ROOM_BYTES = 2 * GATHERED_BYTES;

/**
 * Text put together as UTF-8. As a string it would be a tree of all its pieces, which the collector follows and copies for as long as
 * the text waits.
 */
class GatheredText {
  size = 0;
  #bytes = Buffer.allocUnsafeSlow(FIRST_ROOM_BYTES);
  /** Memory to begin anew in, so that the system need not be asked for it with every write. */
  #spare: Buffer<ArrayBuffer> | undefined = Buffer.allocUnsafeSlow(FIRST_ROOM_BYTES);

  add(text: string): void {
    // No UTF-16 unit takes more than three bytes.
    const needed = this.size + 3 * text.length;
    if (needed > this.#bytes.length) this.#grow(needed);
    this.size += this.#bytes.write(text, this.size);
  }

  /** All of it; what is added from now on begins anew. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.size);
    this.#bytes = this.#spare ?? Buffer.allocUnsafeSlow(FIRST_ROOM_BYTES);
    this.#spare = undefined;
    this.size = 0;
    return taken;
  }

  /** Takes back memory that was taken, or a part of it, once nobody reads it any more. */
  giveBack({ buffer }: Buffer): void {
    if (buffer instanceof ArrayBuffer && buffer.byteLength === FIRST_ROOM_BYTES) this.#spare = Buffer.from(buffer);
  }

  #grow(needed: number): void {
    const bytes = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    this.#bytes.copy(bytes, 0, 0, this.size);
    this.#bytes = bytes;
  }
}

/**
 * A log stream on a file descriptor, standard output by default. Lines wait until 32 KiB of text are together or a quarter of a second has
 * passed, and one asynchronous write is under way at a time. A reader that has gone away loses lines, and nothing else happens.
 */
export function createLogStream(descriptor: number = 1): LogStream {
  const fd = withoutWaiting(descriptor);
  const held = new GatheredText();
  let lines = 0;
  /** A write is under way, or waits for a full pipe. */
  let busy = false;
  /** Bytes that a full pipe refused, to be tried again. */
  let refused: Buffer | undefined;
  let timer: NodeJS.Timeout | undefined;
  let dropped = 0;

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
      if (error !== null) dropped += count;
      if (held.size >= GATHERED_BYTES) begin();
      else if (held.size > 0) timer ??= setTimeout(begin, LONGEST_HELD_MS).unref();
    });
  }

  return {
    write(line) {
      if (held.size > MOST_HELD_BYTES) {
        dropped++;
        return;
      }
      held.add(line);
      lines++;
      if (busy) return;
      if (held.size >= GATHERED_BYTES) begin();
      else timer ??= setTimeout(begin, LONGEST_HELD_MS).unref();
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
          dropped += count;
          return;
        }
      }
    },
    get dropped() {
      return dropped;
    },
  };
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
