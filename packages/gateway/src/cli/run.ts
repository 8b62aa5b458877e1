import { isSignalboxError } from '@signalbox/plugin-api';
import type { Command, Terminal } from './command.ts';
import { commandHelp, EXIT_FAILED, EXIT_OK, EXIT_USAGE, readArguments, UsageError } from './command.ts';

/** Runs `signalbox ARGV…` and returns the exit code. Every failure is one readable message on standard error. */
export async function runCommandLine(
  commands: readonly Command[],
  argv: readonly string[],
  version: string,
  terminal: Terminal,
): Promise<number> {
  const [name, ...rest] = argv;
  if (name === '--version' || name === '-V') {
    terminal.out(`signalbox ${version}\n`);
    return EXIT_OK;
  }
  if (name === undefined || name === '--help' || name === '-h' || (name === 'help' && rest.length === 0)) {
    (name === undefined ? terminal.err : terminal.out)(overview(commands));
    return name === undefined ? EXIT_USAGE : EXIT_OK;
  }
  const wanted = name === 'help' ? rest : [name];
  const command = find(commands, name === 'help' ? rest : argv);
  if (command === undefined) {
    terminal.err(
      `signalbox: unknown command "${wanted.join(' ')}". Commands: ${commands.map((known) => known.name).join(', ')}.\n`,
    );
    return EXIT_USAGE;
  }
  const own = argv.slice(command.name.split(' ').length);
  if (name === 'help' || own.includes('--help') || own.includes('-h')) {
    terminal.out(commandHelp(command));
    return EXIT_OK;
  }
  try {
    return await command.run(readArguments(command, own), terminal);
  } catch (error) {
    if (error instanceof UsageError) {
      terminal.err(
        `signalbox ${command.name}: ${error.message}\nUsage: signalbox ${command.name} ${command.arguments}   (more: signalbox help ${command.name})\n`,
      );
      return EXIT_USAGE;
    }
    if (isSignalboxError(error) || isSystemError(error)) {
      terminal.err(`signalbox ${command.name}: ${error.message}\n`);
      return EXIT_FAILED;
    }
    throw error;
  }
}

/** Whether the operating system refused something: a file, a directory, an address. Its message names what and why. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'code' in error;
}

/** The command whose name is the longest prefix of the words: `plugin new` before `plugin`. */
function find(commands: readonly Command[], words: readonly string[]): Command | undefined {
  const line = words.join(' ');
  return commands
    .filter(({ name }) => line === name || line.startsWith(`${name} `))
    .toSorted((a, b) => b.name.length - a.name.length)[0];
}

function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length)) + 3;
  const rows = commands.map(({ name, summary }) => `  ${name.padEnd(width)}${summary}`);
  return `Signalbox routes LLM requests over a fleet of model servers, as a policy in .route files says.

Usage: signalbox COMMAND [arguments]

${rows.join('\n')}

A first policy, whole and valid:
  route when complexity > 50 to tier "70B" by least_tokens with affinity session

Start with   signalbox dev             a gateway with simulated GPUs, nothing else needed
then         signalbox check FILE      what a policy gets wrong, with the place and the remedy
             signalbox serve FILE      the gateway in front of your own model servers
Help on one: signalbox help COMMAND
`;
}
