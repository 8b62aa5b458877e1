import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startSignalbox, type Running } from '../e2e/support/command.fixture.ts';
import { RecordingUpstream } from './support/recording-upstream.ts';

/** Paths that the admin listener serves, beside the playground's files; `dev` and `serve` have no others. */
const ADMIN_PATHS = [
  'livez',
  'readyz',
  'metrics',
  '-/decisions',
  '-/endpoints',
  '-/explain',
  '-/policy',
  '-/policy/abort',
  '-/policy/canary',
  '-/policy/pin',
  '-/policy/promote',
  '-/policy/rollback',
  '-/policy/shadow',
  '-/policy/shadow/off',
  '-/policy/unpin',
  '-/policy/versions',
  '-/reload',
];
const WORDS = [
  ...ADMIN_PATHS,
  ...ADMIN_PATHS.flatMap((path) => [`/${path}`, `./${path}`, `${path}/`, `${path};a`, `${path}%00`, `${path}%20`]),
  ...ADMIN_PATHS.map((path) => `v1/models/..%2f..%2f${path}`),
  ...`
    v1 v1/ v1/models/ v1/chat v1/chat/completions/ v1/chat//completions V1/MODELS v1/files v1/engines v1/keys v1/config
    v1/audio v1/audio/ v1/audio/.. v1/audio/%2e%2e/models v2/models
    .env .git/config .git/HEAD .aws/credentials .ssh/id_rsa etc/passwd ..%2f..%2fetc%2fpasswd %2e%2e/%2e%2e/etc/passwd
    ..%5c..%5cwindows ..;/ ....// %252e%252e/ %c0%ae%c0%ae/ v1/..%2fmetrics
    admin admin/ login config config.json settings debug debug/pprof debug/vars status server-status actuator actuator/env
    actuator/health health healthz ready live info version docs redoc swagger.json openapi.json graphql api api/v1 api/keys
    api/providers rpc ws package.json policy.route keys node_modules index.html favicon.ico robots.txt sitemap.xml
    __proto__ constructor prototype toString hasOwnProperty v1/models/__proto__ v1/models/constructor
    wp-admin wp-login.php phpinfo.php cgi-bin/ shell console manager/html solr jenkins invoke
  `
    .trim()
    .split(/\s+/),
];

const folder = mkdtempSync(join(tmpdir(), 'signalbox-scan-'));
const upstream = new RecordingUpstream();
let running: Running;
let publicPort = 0;
let adminPort = 0;
beforeAll(async () => {
  const port = await upstream.listen();
  writeFileSync(
    join(folder, 'policy.route'),
    `define tier "a" { model: "m", endpoints: ["http://127.0.0.1:${port}"] }\ndefault to tier "a"\n`,
  );
  writeFileSync(join(folder, 'words'), `${WORDS.join('\n')}\n`);
  running = startSignalbox(['serve', 'policy.route', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'], folder);
  await running.saw(/"url":"[^"]+"|http:\/\/127\.0\.0\.1:\d+[^]*http:\/\/127\.0\.0\.1:\d+/);
  const ports = [...`${running.out()}${running.err()}`.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, text]) => Number(text));
  [publicPort = 0, adminPort = 0] = [...new Set(ports)].filter((found) => found !== port);
});
afterAll(async () => {
  running.child.kill('SIGINT');
  await running.ended;
  upstream.close();
  rmSync(folder, { recursive: true, force: true });
});

async function run(command: string, args: readonly string[]): Promise<string> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (out += text));
  const failed = once(child, 'error').then(([cause]) => {
    throw new Error(`${command} is not installed; run \`bash test/integration/install.sh\` first`, { cause });
  });
  const [code] = (await Promise.race([once(child, 'close'), failed])) as [number | null];
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${out}`);
  return out;
}

/** The statuses that ffuf saw, by word. */
async function fuzz(port: number, method: string): Promise<ReadonlyMap<string, number>> {
  const file = join(folder, `${port}-${method}.json`);
  const target = ['-u', `http://127.0.0.1:${port}/FUZZ`, '-w', join(folder, 'words'), '-X', method, '-o', file];
  await run('ffuf', [...target, ...'-of json -mc all -t 8 -s -timeout 10 -maxtime 60'.split(' ')]);
  const { results } = JSON.parse(readFileSync(file, 'utf8')) as {
    readonly results: readonly { readonly input: { readonly FUZZ: string }; readonly status: number }[];
  };
  // ffuf writes its words in base64 or as they are, by version.
  const word = (text: string): string => (WORDS.includes(text) ? text : Buffer.from(text, 'base64').toString());
  return new Map(results.map(({ input, status }) => [word(input.FUZZ), status]));
}
const withStatus = (found: ReadonlyMap<string, number>, is: (status: number) => boolean): readonly string[] =>
  [...found].filter(([, status]) => is(status)).map(([name]) => name);

describe('S6, S7: ffuf', () => {
  test.each(['GET', 'POST', 'HEAD', 'DELETE'])('finds no path on the public listener by %s', async (method) => {
    const found = await fuzz(publicPort, method);
    expect(found.size).toBeGreaterThan(WORDS.length * 0.95);
    expect(withStatus(found, (status) => status < 400)).toEqual([]);
    expect(withStatus(found, (status) => status >= 500)).toEqual([]);
  });

  test('finds on the admin listener by GET what is served there, and nothing beside', async () => {
    const found = await fuzz(adminPort, 'GET');
    expect(withStatus(found, (status) => status >= 500)).toEqual([]);
    expect(withStatus(found, (status) => status < 400).toSorted()).toEqual([
      '-/decisions',
      '-/endpoints',
      '-/policy',
      '-/policy/canary',
      '-/policy/shadow',
      '-/policy/versions',
      'livez',
      'metrics',
      'readyz',
    ]);
  });

  test('nothing of it reached a model server', () => expect(upstream.take()).toEqual([]));
});

describe('S7: nmap', () => {
  test('the process listens on two ports, both on loopback', () => {
    expect(listeners(running.child.pid ?? 0).toSorted()).toEqual(
      [`127.0.0.1:${publicPort}`, `127.0.0.1:${adminPort}`].toSorted(),
    );
  });

  test('sees HTTP on the two, which say nothing of what they are built with', async () => {
    const out = await run('nmap', ['-sT', '-sV', '-Pn', '-n', '-p', `${publicPort},${adminPort}`, '127.0.0.1']);
    expect(out).toMatch(new RegExp(`^${publicPort}/tcp +open`, 'm'));
    expect(out).toMatch(new RegExp(`^${adminPort}/tcp +open`, 'm'));
    expect(out).toMatch(/http/i);
    expect(out).not.toMatch(/node\.?js|express|fastify/i);
    expect(upstream.take()).toEqual([]);
    expect((await fetch(`http://127.0.0.1:${adminPort}/livez`)).status).toBe(200);
  });

  test('sees neither from another address of the machine', async () => {
    const outside = Object.values(networkInterfaces())
      .flatMap((found) => found ?? [])
      .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
    // The whole of 127/8 is the machine itself; a listener on every address would answer here.
    for (const address of ['127.0.0.2', ...(outside === undefined ? [] : [outside])]) {
      const out = await run('nmap', ['-sT', '-Pn', '-n', '-p', `${publicPort},${adminPort}`, address]);
      expect([address, out.match(/^\d+\/tcp +open/gm)]).toEqual([address, null]);
    }
  });
});

/** Addresses that a process listens on, by what the kernel shows. */
function listeners(pid: number): string[] {
  const inodes = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
      } catch {
        return [];
      }
    }),
  );
  return ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state, ...rest]) => state === '0A' && inodes.has(rest[5] ?? ''))
      .map(([, local = '']) => {
        const [address = '', port = ''] = local.split(':');
        const shown = table === 'tcp6' ? address : [...Buffer.from(address, 'hex')].toReversed().join('.');
        return `${shown}:${Number.parseInt(port, 16)}`;
      }),
  );
}
