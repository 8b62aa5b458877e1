import type { Terminal } from '../cli/command.ts';
import { EXIT_OK } from '../cli/command.ts';
import type { Gateway } from '../gateway.ts';

/** Ctrl-C reaches a process twice where a package manager passes it on; a second one within this time is the same key press. */
const SAME_PRESS_MS = 500;
/** From an interrupt to the end of the process at the latest. */
const INTERRUPT_LIMIT_MS = 1500;

/** Runs until SIGTERM (drain) or SIGINT (no grace) has stopped the gateway. SIGHUP reloads. Returns the exit code. */
export function runUntilStopped(gateway: Gateway, terminal: Terminal): Promise<number> {
  return new Promise((resolve) => {
    let stopping = false;
    let interruptedAtMs = -Infinity;

    const finish = (stopped: Promise<void>): void => {
      void stopped.then(
        () => resolve(EXIT_OK),
        (error: unknown) => {
          terminal.err(`signalbox: stopping failed: ${String(error)}\n`);
          resolve(1);
        },
      );
    };
    const now = (): void => {
      setTimeout(() => process.exit(0), INTERRUPT_LIMIT_MS).unref();
      finish(gateway.stop({ graceMs: 0 }));
    };
    process.on('SIGINT', () => {
      const nowMs = performance.now();
      if (nowMs - interruptedAtMs < SAME_PRESS_MS) return;
      if (interruptedAtMs > -Infinity) process.exit(0);
      interruptedAtMs = nowMs;
      if (stopping) process.exit(0);
      stopping = true;
      terminal.err('stopping\n');
      now();
    });
    process.on('SIGTERM', () => {
      if (stopping) process.exit(0);
      stopping = true;
      const { accept, grace } = gateway.definition.drain;
      terminal.err(`draining: accepting for ${accept} s more, then running requests have ${grace} s\n`);
      finish(gateway.stop({ acceptMs: accept * 1000, graceMs: grace * 1000 }));
    });
    process.on('SIGHUP', () => void gateway.reload());
  });
}
