import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import type { BuildResult } from 'esbuild';
import { CONTENT_SECURITY_POLICIES, META_POLICY } from '../src/site/policies.ts';
import type { SiteManifest } from '../src/site/site.ts';

/**
 * Bundles the playground into dist/playground: files that any static server can serve, from any folder, with a manifest that says which headers
 * each should have. Prints the sizes, unless with `--quiet`.
 */
const root = fileURLToPath(new URL('..', import.meta.url));
const out = join(root, 'dist/playground');
const isQuiet = process.argv.includes('--quiet');

const TYPES: { readonly [extension: string]: string } = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
};

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
const files: Mutable<SiteManifest['files'][number]>[] = [];

function write(
  path: string,
  content: string | Uint8Array,
  contentSecurityPolicy: string,
  isImmutable: boolean,
): string {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
  writeFileSync(join(out, path), bytes);
  const type = TYPES[extname(path)];
  if (type === undefined) throw new Error(`no media type is known for ${path}`);
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`;
  files.push({ path, type, contentSecurityPolicy, isImmutable, etag });
  if (!path.endsWith('.map') && !isQuiet)
    console.log(`${path.padEnd(32)} ${kilobytes(bytes.length)}, ${kilobytes(gzipSync(bytes).length)} compressed`);
  return path;
}

const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1).padStart(7)} KB`;

/** A name with a hash of the content, as immutable files have. */
function hashed(name: string, content: string | Uint8Array): string {
  const hash = createHash('sha256').update(content).digest('base64url').replaceAll(/[-_]/g, '').slice(0, 10);
  const extension = extname(name);
  return `${basename(name, extension)}-${hash}${extension}`;
}

/** Packages of logs and metrics, and what they need of Node. */
const SERVER_ONLY: string[] = ['pino', 'prom-client', 'node:*'];

/** Bundles one script and writes it with its source map; gives the name that it got. */
async function bundle(
  entry: string,
  policy: string,
  define: { readonly [name: string]: string } = {},
): Promise<string> {
  const result: BuildResult<{ write: false; metafile: true }> = await build({
    entryPoints: [join(root, 'src/page', `${entry}.ts`)],
    bundle: true,
    write: false,
    format: 'iife',
    target: ['chrome120', 'firefox121', 'safari17'],
    minify: true,
    sourcemap: 'external',
    sourcesContent: true,
    outdir: out,
    conditions: ['@signalbox/source'],
    // What the core takes of telemetry needs none of these; the parts that do are not in the bundle.
    external: SERVER_ONLY,
    metafile: true,
    loader: { '.route': 'text' },
    legalComments: 'none',
    define: Object.fromEntries(Object.entries(define).map(([name, value]) => [name, JSON.stringify(value)])),
    logLevel: 'warning',
  });
  const missing = Object.values(result.metafile.outputs).flatMap(({ imports }) =>
    imports.filter(({ external }) => external === true).map(({ path }) => path),
  );
  if (missing.length > 0) throw new Error(`${entry} would need ${missing.join(', ')}, which no browser has`);
  const script = result.outputFiles.find(({ path }) => path.endsWith('.js'));
  const map = result.outputFiles.find(({ path }) => path.endsWith('.map'));
  if (script === undefined || map === undefined) throw new Error(`${entry} was not bundled`);
  const name = hashed(`${entry}.js`, script.contents);
  write(`${name}.map`, map.contents, CONTENT_SECURITY_POLICIES.other, true);
  return write(name, `${script.text}//# sourceMappingURL=${name}.map\n`, policy, true);
}

function asset(name: string): string {
  const content = readFileSync(join(root, 'static', name));
  return write(hashed(name, content), content, CONTENT_SECURITY_POLICIES.other, true);
}

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const optionWorker = await bundle('option-worker', CONTENT_SECURITY_POLICIES.optionWorker);
const policyWorker = await bundle('policy-worker', CONTENT_SECURITY_POLICIES.policyWorker, {
  OPTION_WORKER: optionWorker,
});
const values: { readonly [name: string]: string } = {
  script: await bundle('main', CONTENT_SECURITY_POLICIES.other, { POLICY_WORKER: policyWorker }),
  style: asset('playground.css'),
  icon: asset('icon.svg'),
  policy: META_POLICY,
};
const html = readFileSync(join(root, 'static/index.html'), 'utf8').replaceAll(
  /\{\{(\w+)\}\}/g,
  (_all, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`index.html asks for {{${name}}}, which the build does not know`);
    return value;
  },
);
write('index.html', html, CONTENT_SECURITY_POLICIES.page, false);
write('gateway.json', '{}\n', CONTENT_SECURITY_POLICIES.other, false);
writeFileSync(join(out, 'site.json'), `${JSON.stringify({ files } satisfies SiteManifest, undefined, 2)}\n`);
