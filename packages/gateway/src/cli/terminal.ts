import type { Terminal } from './command.ts';

/** The terminal of the process. NO_COLOR and FORCE_COLOR are honoured. */
export function processTerminal(): Terminal {
  // A reader that has gone away, as `head` does, loses what follows, and nothing else happens.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  const { env } = process;
  const forced = env['FORCE_COLOR'] !== undefined && env['FORCE_COLOR'] !== '0';
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    colour: env['NO_COLOR'] === undefined && (forced || process.stdout.isTTY),
    cwd: process.cwd(),
    env,
  };
}
