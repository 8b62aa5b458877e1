import { startLanguageServer } from '@signalbox/language-server';
import type { Command } from '../cli/command.ts';
import { createLanguageHost } from '../editor/language-host.ts';
import { ALLOW_PLUGIN } from '../plugins/plugin-options.ts';

export const lspCommand: Command = {
  name: 'lsp',
  summary: 'the language server for editors, over standard input and output',
  arguments: '',
  arity: [0, 0],
  help: `
Speaks the Language Server Protocol, so that an editor shows findings while one types, completes, explains names, finds and renames
them and lays policies out. Editors start it by themselves: see the guide on editors.

  signalbox lsp --stdio

It reads policies and manifests of plugins; it runs no plugin, opens no port and sends nothing anywhere.`,
  options: {
    stdio: { type: 'boolean', help: 'standard input and output, which is also what happens without it' },
    ...ALLOW_PLUGIN,
  },
  run(input) {
    startLanguageServer(createLanguageHost(input.texts('allow-plugin')), {
      input: process.stdin,
      output: process.stdout,
    });
    // The server ends the process when the editor says `exit` or goes away.
    return new Promise<number>(() => {});
  },
};
