/** What the settings say of the `signalbox` command. */
export interface CommandSettings {
  /** The program and arguments before its own. */
  readonly command: readonly string[];
  readonly allowPlugins: readonly string[];
}

/** A program with its arguments, run without a shell. */
export interface CommandLine {
  readonly program: string;
  readonly args: readonly string[];
}

const commandLine = ({ command, allowPlugins }: CommandSettings, args: readonly string[]): CommandLine => {
  const [program = 'signalbox', ...before] = command;
  return { program, args: [...before, ...args, ...allowPlugins.flatMap((name) => ['--allow-plugin', name])] };
};

export const serverCommand = (settings: CommandSettings): CommandLine => commandLine(settings, ['lsp', '--stdio']);

/** Runs the tests of a policy; with a label, those whose name contains it. */
export const testCommand = (settings: CommandSettings, file: string, label: string | null): CommandLine =>
  commandLine(settings, ['test', file, ...(label === null ? [] : ['--filter', label])]);

/** Explains the request that stands on standard input. */
export const explainCommand = (settings: CommandSettings, file: string): CommandLine =>
  commandLine(settings, ['explain', file, '-']);

/** A model that requests under a policy may name: the first that its gateway lists, else that of its first tier. */
export const modelFor = (policy: string): string => {
  const listed = /\bmodels\s*:\s*\[\s*"((?:[^"\\]|\\.)*)"/.exec(policy)?.[1];
  return listed ?? /\bmodel\s*:\s*"((?:[^"\\]|\\.)*)"/.exec(policy)?.[1] ?? 'auto';
};

/** What was typed as a request: a JSON object as it stands, any other text as the prompt of one message to `model`. */
export const requestOf = (typed: string, model: string): string => {
  try {
    const value: unknown = JSON.parse(typed);
    if (typeof value === 'object' && value !== null) return typed;
  } catch {
    // It is a prompt.
  }
  return JSON.stringify({ model, messages: [{ role: 'user', content: typed }] });
};
