import { spawn } from 'node:child_process';
import { commands, Uri, window, workspace } from 'vscode';
import type { ExtensionContext, OutputChannel } from 'vscode';
import { LanguageClient, TransportKind } from 'vscode-languageclient/node';
import { explainCommand, modelFor, requestOf, serverCommand, testCommand } from './command-line.ts';
import type { CommandLine, CommandSettings } from './command-line.ts';

const settings = (): CommandSettings => {
  const configuration = workspace.getConfiguration('signalbox');
  return {
    command: configuration.get<readonly string[]>('command', ['signalbox']),
    allowPlugins: configuration.get<readonly string[]>('allowPlugins', []),
  };
};

const createClient = (context: ExtensionContext): LanguageClient => {
  const { program, args } = serverCommand(settings());
  return new LanguageClient(
    'signalbox',
    'Signalbox',
    { command: program, args: [...args], transport: TransportKind.stdio },
    {
      documentSelector: [
        { scheme: 'file', language: 'route' },
        { scheme: 'untitled', language: 'route' },
      ],
      // The pages of the codes come with the extension.
      initializationOptions: { docsUrl: context.extensionUri.toString() },
    },
  );
};

/** Runs a command beside its file and shows what it says; ends with its exit code. */
const run = ({ program, args }: CommandLine, file: Uri, output: OutputChannel, input = ''): Promise<number> =>
  new Promise((done) => {
    output.clear();
    output.show(true);
    const child = spawn(program, [...args], {
      cwd: Uri.joinPath(file, '..').fsPath,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, NO_COLOR: '1' },
    });
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => output.append(chunk.toString()));
    child.once('error', (error) => {
      output.appendLine(`${program} could not be started: ${error.message}. Set "signalbox.command" to where it is.`);
      done(127);
    });
    child.once('close', (code) => done(code ?? 1));
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });

/** The policy that a command is about: the one named by a code lens, else the one in the editor. Saved first, for the command reads the file. */
const policyOf = async (uri: unknown): Promise<Uri | undefined> => {
  const file = typeof uri === 'string' ? Uri.parse(uri) : window.activeTextEditor?.document.uri;
  if (file?.scheme !== 'file') {
    void window.showWarningMessage('Save the policy to a file first.');
    return undefined;
  }
  await workspace.textDocuments.find((document) => document.uri.toString() === file.toString())?.save();
  return file;
};

const labelOf = (label: unknown): string | null => (typeof label === 'string' ? label : null);

/** Starts the language server and registers the commands that its code lenses name. */
export const activate = async (context: ExtensionContext): Promise<void> => {
  const output = window.createOutputChannel('Signalbox: tests and explanations');
  let client = createClient(context);
  context.subscriptions.push(
    output,
    { dispose: () => void client.stop() },
    commands.registerCommand('signalbox.runTest', async (uri: unknown, label: unknown) => {
      const file = await policyOf(uri);
      if (file !== undefined) await run(testCommand(settings(), file.fsPath, labelOf(label)), file, output);
    }),
    commands.registerCommand('signalbox.explain', async (uri: unknown) => {
      const file = await policyOf(uri);
      if (file === undefined) return;
      const typed = await window.showInputBox({
        title: 'Explain where a request would go',
        prompt: 'A prompt, or the JSON of a request',
        placeHolder: 'Is Paris in France?',
      });
      if (typed === undefined) return;
      const policy = (await workspace.openTextDocument(file)).getText();
      await run(explainCommand(settings(), file.fsPath), file, output, requestOf(typed, modelFor(policy)));
    }),
    commands.registerCommand('signalbox.restartServer', async () => {
      await client.stop();
      client = createClient(context);
      await client.start();
    }),
  );
  await client.start();
};
