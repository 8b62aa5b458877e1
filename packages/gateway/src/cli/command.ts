import type { ParseArgsOptionDescriptor } from 'node:util';
import { parseArgs } from 'node:util';

/** Exit codes of the command, part of its contract: 0 no error, 1 errors found or work failed, 2 wrong usage. */
export const EXIT_OK = 0;
export const EXIT_FAILED = 1;
export const EXIT_USAGE = 2;

/** Where a command writes and what it may ask of its surroundings; tests give their own. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Whether standard output understands colour. */
  readonly colour: boolean;
  readonly cwd: string;
  readonly env: { readonly [name: string]: string | undefined };
}

export interface OptionHelp extends ParseArgsOptionDescriptor {
  /** What the option does, for `--help`. */
  readonly help: string;
  /** Placeholder of the value in the help: `PORT`. */
  readonly value?: string;
}

/** One subcommand of `signalbox`. */
export interface Command {
  readonly name: string;
  readonly summary: string;
  /** Positional arguments as shown: `FILE [FILE …]`. */
  readonly arguments: string;
  /** A few paragraphs and examples for `signalbox help NAME`. */
  readonly help: string;
  readonly options: { readonly [name: string]: OptionHelp };
  /** Least and greatest number of positional arguments. */
  readonly arity: readonly [number, number];
  run(input: CommandInput, terminal: Terminal): Promise<number>;
}

export interface CommandInput {
  readonly positionals: readonly string[];
  /** The value of an option that takes one, if it was given. */
  text(name: string): string | undefined;
  /** All values of an option that may be repeated. */
  texts(name: string): readonly string[];
  flag(name: string): boolean;
}

/** A wrong command line; its message is shown with a hint at the help, and the exit code is 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

/** Reads the arguments of `command`, or throws a UsageError that says what was wrong. */
export function readArguments(command: Command, argv: readonly string[]): CommandInput {
  let parsed;
  try {
    parsed = parseArgs({ args: [...argv], options: command.options, allowPositionals: true, strict: true });
  } catch (error) {
    throw new UsageError(
      (error as Error).message.split('\n')[0]?.replace(/\. To specify a positional.*$/, '') ?? 'unreadable arguments',
    );
  }
  const [least, most] = command.arity;
  if (parsed.positionals.length < least) throw new UsageError(`expected ${command.arguments}`);
  if (parsed.positionals.length > most) throw new UsageError(`unexpected argument "${parsed.positionals[most]}"`);
  const values = parsed.values;
  return {
    positionals: parsed.positionals,
    text(name) {
      const value = values[name];
      return typeof value === 'string' ? value : undefined;
    },
    texts(name) {
      const value = values[name];
      return Array.isArray(value) ? value.map(String) : typeof value === 'string' ? [value] : [];
    },
    flag(name) {
      return values[name] === true;
    },
  };
}

/** The help page of one command. */
export function commandHelp(command: Command): string {
  const rows = Object.entries(command.options).map(([name, option]) => {
    const short = option.short === undefined ? '    ' : `-${option.short}, `;
    return [`  ${short}--${name}${option.value === undefined ? '' : ` ${option.value}`}`, option.help] as const;
  });
  const width = Math.max(0, ...rows.map(([left]) => left.length)) + 2;
  const options = rows.map(([left, right]) => `${left.padEnd(width)}${right}`).join('\n');
  return `${command.summary}\n\nUsage: signalbox ${[command.name, command.arguments].join(' ').trim()}${rows.length === 0 ? '' : ' [options]'}\n\n${command.help.trim()}\n${rows.length === 0 ? '' : `\nOptions:\n${options}\n`}`;
}
