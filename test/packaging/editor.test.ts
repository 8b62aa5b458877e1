import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { crc32, inflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packExtension } from '../../editors/vscode/scripts/pack-extension.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The files of a ZIP archive, read by its directory at the end; each is held against its checksum. */
const unzip = (archive: Buffer): ReadonlyMap<string, Buffer> => {
  const end = archive.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
  const files = new Map<string, Buffer>();
  let at = archive.readUInt32LE(end + 16);
  for (let index = 0; index < archive.readUInt16LE(end + 10); index += 1) {
    expect(archive.readUInt32LE(at)).toBe(0x02014b50);
    const [crc, packed, size] = [
      archive.readUInt32LE(at + 16),
      archive.readUInt32LE(at + 20),
      archive.readUInt32LE(at + 24),
    ];
    const [nameLength, extra, comment] = [
      archive.readUInt16LE(at + 28),
      archive.readUInt16LE(at + 30),
      archive.readUInt16LE(at + 32),
    ];
    const local = archive.readUInt32LE(at + 42);
    const name = archive.subarray(at + 46, at + 46 + nameLength).toString();
    expect(archive.readUInt32LE(local)).toBe(0x04034b50);
    const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
    const content = inflateRawSync(archive.subarray(start, start + packed));
    expect([content.length, crc32(content)], name).toEqual([size, crc]);
    files.set(name, content);
    at += 46 + nameLength + extra + comment;
  }
  return files;
};

let files: ReadonlyMap<string, Buffer>;
let folder: string;
beforeAll(() => {
  files = unzip(packExtension().content);
  folder = mkdtempSync(join(tmpdir(), 'signalbox-vsix-'));
  for (const [path, content] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const textOf = (path: string): string => {
  const content = files.get(path);
  if (content === undefined) throw new Error(`the package holds no ${path}`);
  return content.toString('utf8');
};

interface Manifest {
  readonly main: string;
  readonly dependencies: { readonly [name: string]: string };
  readonly devDependencies?: unknown;
  readonly engines: { readonly vscode: string };
  readonly contributes: {
    readonly languages: readonly {
      readonly configuration: string;
      readonly extensions: readonly string[];
      readonly icon: { readonly light: string };
    }[];
    readonly grammars: readonly { readonly path: string; readonly scopeName: string }[];
    readonly commands: readonly { readonly command: string }[];
  };
}

describe('the packed extension', () => {
  test('is the same each time it is packed', () => {
    expect(packExtension().content.equals(packExtension().content)).toBe(true);
  });

  test('has the parts that an editor reads, each where the manifest says', () => {
    const manifest = JSON.parse(textOf('extension/package.json')) as Manifest;
    expect(manifest.devDependencies).toBeUndefined();
    for (const path of [
      manifest.main,
      ...manifest.contributes.languages.flatMap(({ configuration, icon }) => [configuration, icon.light]),
      ...manifest.contributes.grammars.map(({ path: grammar }) => grammar),
    ])
      expect(files.has(`extension/${path.replace('./', '')}`), path).toBe(true);
    expect(manifest.contributes.languages[0]?.extensions).toEqual(['.route']);
    expect(JSON.parse(textOf('extension/syntaxes/route.tmLanguage.json'))).toMatchObject({
      scopeName: manifest.contributes.grammars[0]?.scopeName,
    });
    JSON.parse(textOf('extension/language-configuration.json'));
    const vsix = textOf('extension.vsixmanifest');
    expect(vsix).toContain(`Value="${manifest.engines.vscode}"`);
    for (const [, path] of vsix.matchAll(/Path="([^"]+)"/g)) expect(files.has(path ?? ''), path).toBe(true);
    const types = textOf('[Content_Types].xml');
    for (const path of files.keys()) {
      const extension = /\.[^./]+$/.exec(path)?.[0];
      if (extension !== undefined && path !== '[Content_Types].xml')
        expect(types, path).toContain(`Extension="${extension.toLowerCase()}"`);
    }
  });

  test('registers the commands that the code lenses of the server name', () => {
    const { contributes } = JSON.parse(textOf('extension/package.json')) as Manifest;
    const server = readFileSync(join(root, 'packages/language-server/src/features/code-lens.ts'), 'utf8');
    const named = [...server.matchAll(/'(signalbox\.\w+)'/g)].map(([, command]) => command);
    expect(named.length).toBeGreaterThanOrEqual(2);
    const extension = textOf('extension/dist/extension.js');
    for (const command of named) {
      expect(contributes.commands.map((one) => one.command)).toContain(command);
      expect(extension).toContain(`registerCommand('${command}'`);
    }
  });

  test('brings the page of every code, for the links of findings', () => {
    const pages = readdirSync(join(root, 'docs/reference/diagnostics'));
    expect(pages.length).toBeGreaterThan(100);
    for (const page of pages) expect(files.has(`extension/docs/reference/diagnostics/${page}`), page).toBe(true);
  });

  test('brings each dependency with its licence, and no sources, maps or tests of ours', () => {
    const packages = [...files.keys()].filter((path) =>
      /^extension\/node_modules\/(?:@[^/]+\/)?[^/]+\/package\.json$/.test(path),
    );
    expect(packages.length).toBeGreaterThan(4);
    for (const path of packages) {
      const place = dirname(path);
      expect(
        [...files.keys()].some((one) => one.startsWith(`${place}/`) && /\/licen[cs]e[^/]*$/i.test(one)),
        place,
      ).toBe(true);
    }
    for (const path of files.keys()) expect(path).not.toMatch(/\.(?:ts|map|tsbuildinfo)$|\/src\//);
  });

  test('loads with all that it imports, given the editor', () => {
    const stub = join(folder, 'extension/node_modules/vscode');
    mkdirSync(stub, { recursive: true });
    writeFileSync(join(stub, 'package.json'), '{ "name": "vscode", "main": "index.js" }');
    writeFileSync(
      join(stub, 'index.js'),
      `exports.commands = {}; exports.Uri = class {}; exports.window = {}; exports.workspace = {}; exports.version = '1.100.0';
Object.setPrototypeOf(exports, new Proxy({}, { get: (_, name) => (typeof name === 'string' && name !== 'then' ? class {} : undefined) }));\n`,
    );
    const script = "const { activate } = await import('./dist/extension.js'); console.log(typeof activate);";
    const said = execFileSync(join(root, 'node_modules/.bin/node'), ['--input-type=module', '-e', script], {
      cwd: join(folder, 'extension'),
      encoding: 'utf8',
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    expect(said.trim()).toBe('function');
  });
});
