import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Command, CommandInput } from '../cli/command.ts';
import { EXIT_OK, UsageError } from '../cli/command.ts';
import { keyLine } from '../keys/key-list.ts';

const LABELS = {
  tenant: { type: 'string', value: 'NAME', help: 'the tenant that the key belongs to, as `define tenant` calls it' },
  name: {
    type: 'string',
    value: 'NAME',
    help: 'what `api_key.name` says in policies; the first digits of the hash by default',
  },
} as const;

/** Begins every key that we make, so that scanners for leaked secrets can tell it. */
const PREFIX = 'sbx-';

export const keyNewCommand: Command = {
  name: 'key new',
  summary: 'make an API key and the line that lets it in',
  arguments: '',
  arity: [0, 0],
  help: `
Makes a key of 256 random bits and prints it once, on standard error, with the line for the list that \`keys\` in define gateway names on standard
output. The gateway keeps and needs only the line; give the key to whoever is to call.

  signalbox key new --tenant acme --name ci >> keys.txt

  define gateway { keys: { file: "keys.txt" } }`,
  options: LABELS,
  run(input, terminal) {
    const labels = readLabels(input);
    const key = `${PREFIX}${randomBytes(32).toString('base64url')}`;
    terminal.err(`${key}\nThis is the key. It is not shown again.\n`);
    terminal.out(`${keyLine(sha256(key), ...labels)}\n`);
    return Promise.resolve(EXIT_OK);
  },
};

export const keyHashCommand: Command = {
  name: 'key hash',
  summary: 'the line that lets in a key that you have',
  arguments: '',
  arity: [0, 0],
  help: `
Reads one API key from standard input, so that it stands in no list of processes and no history, and prints the line for the list of keys. Line breaks at
its end do not count.

  signalbox key hash --name legacy < key.txt >> keys.txt`,
  options: LABELS,
  run(input, terminal) {
    const labels = readLabels(input);
    const key = readFileSync(0, 'utf8').replace(/[\r\n]+$/, '');
    if (!/^[\x21-\x7e]+$/.test(key))
      throw new UsageError('expected one key on standard input, of visible ASCII characters without spaces');
    terminal.out(`${keyLine(sha256(key), ...labels)}\n`);
    return Promise.resolve(EXIT_OK);
  },
};

function readLabels(input: CommandInput): readonly [tenant: string | undefined, name: string | undefined] {
  const label = (option: 'tenant' | 'name'): string | undefined => {
    const value = input.text(option);
    if (value !== undefined && !/^[^\p{Cc}"#;]{1,128}$/u.test(value)) {
      throw new UsageError(`--${option} must be 1 to 128 characters without ", # or ;`);
    }
    return value;
  };
  return [label('tenant'), label('name')];
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
