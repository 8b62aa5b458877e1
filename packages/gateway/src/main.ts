#!/usr/bin/env node
/*
 * The `signalbox` command, and where everything is put together: a command starts a gateway (gateway.ts), which compiles a policy
 * (policy/load-policy.ts), gives it to the core with the built-in plugins (plugins/builtin-plugins.ts), and puts the proxy and the admin
 * listener in front of it.
 */
import { runCommandLine } from './cli/run.ts';
import { processTerminal } from './cli/terminal.ts';
import { COMMANDS } from './commands/commands.ts';
import { VERSION } from './version.ts';

process.exitCode = await runCommandLine(COMMANDS, process.argv.slice(2), VERSION, processTerminal());
