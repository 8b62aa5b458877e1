import type { Command } from '../cli/command.ts';
import { checkCommand } from './check.ts';
import { devCommand } from './dev.ts';
import { diffCommand } from './diff.ts';
import { endpointsCommand } from './endpoints.ts';
import { explainCodeCommand } from './explain-code.ts';
import { explainCommand } from './explain.ts';
import { fmtCommand } from './fmt.ts';
import { keyHashCommand, keyNewCommand } from './key.ts';
import { lspCommand } from './lsp.ts';
import { pluginNewCommand } from './plugin-new.ts';
import { policyCommand } from './policy.ts';
import { replayCommand } from './replay.ts';
import { serveCommand } from './serve.ts';
import { testCommand } from './test.ts';

/** Every subcommand, in the order the help lists them. */
export const COMMANDS: readonly Command[] = Object.freeze([
  devCommand,
  serveCommand,
  checkCommand,
  testCommand,
  diffCommand,
  fmtCommand,
  lspCommand,
  explainCommand,
  explainCodeCommand,
  replayCommand,
  endpointsCommand,
  policyCommand,
  keyNewCommand,
  keyHashCommand,
  pluginNewCommand,
]);
