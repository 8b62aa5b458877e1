import type { FileHandle } from 'node:fs/promises';
import { open, rename, stat } from 'node:fs/promises';
import type { Logger } from '@signalbox/plugin-api';

export interface AuditSinkOptions {
  /** Absolute path. Older files stand beside it as `file.1` (the newest of them) to `file.5`. */
  readonly file: string;
  readonly logger: Logger;
  /** A file is put aside before it would grow beyond this; 100 MiB unless given. */
  readonly maxBytes?: number;
  /** Older files that are kept; 5 unless given. */
  readonly keep?: number;
  /** Lines that wait in memory at most; more are dropped and counted. 10,000 unless given. */
  readonly mostPending?: number;
  /** Milliseconds between tries while the file cannot be written; 1000 unless given. */
  readonly retryMs?: number;
}

/**
 * Appends lines to a file without ever making a request wait: they are rendered and written in batches behind the traffic. While the file
 * cannot be written, lines wait in memory up to a bound, and what is beyond it is dropped and counted; writing goes on by itself.
 */
export interface AuditSink {
  /** Takes a line, rendered later. Never throws and never waits. */
  add(render: () => string): void;
  readonly written: number;
  readonly dropped: number;
  /** Writes what waits, for at most so long; what is left then is dropped and counted. */
  close(limitMs: number): Promise<void>;
}

const BATCH = 256;
const NEWLINE = 0x0a;

/** Opens the file and gives the sink; rejects with the error of the file system if the file cannot be opened. */
export async function openAuditSink(options: AuditSinkOptions): Promise<AuditSink> {
  const sink = new FileSink(options);
  await sink.open();
  return sink;
}

class FileSink implements AuditSink {
  written = 0;
  dropped = 0;
  readonly #file: string;
  readonly #logger: Logger;
  readonly #maxBytes: number;
  readonly #keep: number;
  readonly #mostPending: number;
  readonly #retryMs: number;
  readonly #pending: (() => string)[] = [];
  #handle: FileHandle | undefined;
  #size = 0;
  /** Of the file that is open. */
  #inode = 0;
  #failing = false;
  #closing = false;
  #pumping: Promise<void> | undefined;
  #wake: (() => void) | undefined;

  constructor(options: AuditSinkOptions) {
    this.#file = options.file;
    this.#logger = options.logger;
    this.#maxBytes = options.maxBytes ?? 100 * 1024 * 1024;
    this.#keep = options.keep ?? 5;
    this.#mostPending = options.mostPending ?? 10_000;
    this.#retryMs = options.retryMs ?? 1000;
  }

  add(render: () => string): void {
    if (this.#closing || this.#pending.length >= this.#mostPending) {
      this.dropped++;
      return;
    }
    this.#pending.push(render);
    this.#pumping ??= this.#pump();
  }

  async close(limitMs: number): Promise<void> {
    this.#closing = true;
    this.#wake?.();
    if (this.#pumping !== undefined) {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, limitMs);
      });
      await Promise.race([this.#pumping, late]);
      clearTimeout(timer);
    }
    this.#drop();
    await this.#letGo();
  }

  async open(): Promise<void> {
    const handle = await open(this.#file, 'a+', 0o600);
    try {
      const opened = await handle.stat();
      this.#inode = opened.ino;
      this.#size = opened.isFile() ? opened.size : 0;
      if (this.#size > 0) {
        const last = Buffer.alloc(1);
        await handle.read(last, 0, 1, this.#size - 1);
        // A line that was cut by a crash or a full disk ends here, so that it spoils no other.
        if (last[0] !== NEWLINE) this.#size += (await handle.write('\n')).bytesWritten;
      }
      this.#handle = handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async #pump(): Promise<void> {
    // Traffic first: what came in this turn goes out as one batch.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#pending.length > 0) {
      try {
        await this.#writeBatch();
        if (this.#failing) {
          this.#failing = false;
          this.#logger.info('the audit file is written again', { dropped: this.dropped });
        }
      } catch (error) {
        await this.#letGo();
        if (!this.#failing) {
          this.#failing = true;
          this.#logger.error(
            'the audit file cannot be written; lines wait in memory, and are dropped when there are too many',
            {
              reason: String((error as NodeJS.ErrnoException).code ?? error),
            },
          );
        }
        if (this.#closing) break;
        await this.#pause();
      }
    }
    this.#pumping = undefined;
  }

  async #writeBatch(): Promise<void> {
    // A file that was moved away or deleted is let go of, and a new one made in its place.
    const inode = await stat(this.#file).then(
      ({ ino }) => ino,
      () => undefined,
    );
    if (inode !== this.#inode) await this.#letGo();
    if (this.#handle === undefined) await this.open();
    const lines = this.#renderBatch();
    const length = lines.reduce((sum, line) => sum + line.length, 0);
    if (this.#size > 0 && this.#size + length > this.#maxBytes) await this.#rotate();
    await this.#write(lines, Buffer.concat(lines, length));
  }

  /**
   * The first lines that wait, rendered. One that throws while it is rendered would never stand in the file: it is dropped, so that those
   * behind it go on.
   */
  #renderBatch(): Buffer[] {
    const waiting = this.#pending.slice(0, BATCH);
    const lines: Buffer[] = [];
    const sound: (() => string)[] = [];
    let fault: unknown;
    for (const render of waiting) {
      try {
        lines.push(Buffer.from(render()));
        sound.push(render);
      } catch (error) {
        fault ??= error;
      }
    }
    const dropped = waiting.length - sound.length;
    if (dropped > 0) {
      this.#pending.splice(0, waiting.length, ...sound);
      this.dropped += dropped;
      const error = fault instanceof Error ? (fault.stack ?? fault.message) : String(fault);
      this.#logger.error('audit lines could not be rendered and are dropped', { dropped, error });
    }
    return lines;
  }

  /** Writes the lines; whatever happens, those that stand whole in the file are no longer pending and are counted. */
  async #write(lines: readonly Buffer[], bytes: Buffer): Promise<void> {
    const handle = this.#handle;
    if (handle === undefined) return;
    let done = 0;
    try {
      while (done < bytes.length) {
        const { bytesWritten } = await handle.write(bytes, done);
        done += bytesWritten;
      }
    } finally {
      let whole = 0;
      let wholeBytes = 0;
      for (const line of lines) {
        if (wholeBytes + line.length > done) break;
        wholeBytes += line.length;
        whole++;
      }
      this.written += this.#pending.splice(0, whole).length;
      this.#size += wholeBytes;
      // If this fails too, `open` ends the torn line.
      if (wholeBytes < done) await handle.truncate(this.#size).catch(() => {});
    }
  }

  async #rotate(): Promise<void> {
    await this.#letGo();
    for (let n = this.#keep; n > 0; n--) {
      try {
        await rename(n === 1 ? this.#file : `${this.#file}.${n - 1}`, `${this.#file}.${n}`);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      }
    }
    await this.open();
  }

  async #letGo(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    // What was written is written; the next try opens anew.
    await handle?.close().catch(() => {});
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#retryMs);
      timer.unref();
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #drop(): void {
    this.dropped += this.#pending.length;
    this.#pending.length = 0;
  }
}
