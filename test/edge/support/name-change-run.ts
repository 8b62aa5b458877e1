import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { startGateway } from '../../../packages/gateway/src/gateway.ts';

/*
 * Runs in a network and a mount namespace of its own, whose resolver is a dnsmasq that this run commands. Prints what it saw as one line of
 * JSON; the test that starts it judges.
 */

const NAME = 'model.test';
const [folder = ''] = process.argv.slice(2);
const hosts = join(folder, 'hosts');
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A model server on one address, whose answers say which it is; a stream lasts four seconds. */
async function serve(address: string, port: number): Promise<Server> {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      if (!body.includes('"stream":true')) {
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ id: address, object: 'chat.completion', model: 'm', choices: [] }));
        return;
      }
      response.setHeader('content-type', 'text/event-stream');
      let sent = 0;
      const timer = setInterval(() => {
        response.write(`data: {"model":"m","choices":[{"index":0,"delta":{"content":"${address}"}}]}\n\n`);
        if (++sent < 40) return;
        clearInterval(timer);
        response.end('data: [DONE]\n\n');
      }, 100);
      response.on('close', () => clearInterval(timer));
    });
  });
  server.keepAliveTimeout = 60_000;
  server.listen(port, address);
  await once(server, 'listening');
  return server;
}

const first = await serve('127.0.0.2', 0);
const { port } = first.address() as AddressInfo;
const second = await serve('127.0.0.3', port);

writeFileSync(hosts, `127.0.0.2 ${NAME}\n`);
const options =
  '--keep-in-foreground --no-resolv --no-hosts --local-ttl=1 --port=53 --listen-address=127.0.0.1 --bind-interfaces --user=root --pid-file=';
const resolver = spawn('dnsmasq', [...options.split(' '), `--addn-hosts=${hosts}`], { stdio: 'ignore' });
const point = (address: string | undefined): void => {
  writeFileSync(hosts, address === undefined ? '' : `${address} ${NAME}\n`);
  resolver.kill('SIGHUP');
};
await sleep(500);

const policyPath = join(folder, 'policy.route');
writeFileSync(
  policyPath,
  `define tier "t" { model: "m", endpoints: ["http://${NAME}:${port}"], ejection: false }\ndefault to tier "t" with retry 1`,
);
const gateway = await startGateway({ policyPath, listen: '127.0.0.1:0', admin: '127.0.0.1:0' });
const post = (body: object): Promise<Response> =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...body }),
  });

/** Who answered, or the status of a refusal with how long it took. */
async function ask(): Promise<{ readonly by: string; readonly status: number; readonly ms: number }> {
  const startMs = performance.now();
  const response = await post({});
  const { id } = (await response.json()) as { readonly id?: string };
  return { by: id ?? '', status: response.status, ms: Math.round(performance.now() - startMs) };
}
/** Answers under steady traffic, so that no connection becomes idle. */
async function askFor(ms: number) {
  const answers: (Awaited<ReturnType<typeof ask>> & { readonly atMs: number })[] = [];
  const startMs = performance.now();
  while (performance.now() - startMs < ms) {
    const atMs = Math.round(performance.now() - startMs);
    answers.push({ ...(await ask()), atMs });
    await sleep(25);
  }
  return answers;
}
const tally = (answers: readonly { readonly by: string; readonly status: number }[]): object =>
  Object.fromEntries(
    [...Map.groupBy(answers, ({ by, status }) => `${status} ${by}`)].map(([key, all]) => [key, all.length]),
  );

const report: { [name: string]: unknown } = {};
const before = await askFor(1_500);
report['before'] = Object.keys(tally(before));

const stream = post({ stream: true }).then(async (response) => (await response.text()).split('\n\n'));
// The stream has one connection; these requests open another to the first address, which never becomes idle.
await askFor(730);
point('127.0.0.3');
const moving = await askFor(5_000);
report['moved'] = {
  statuses: [...new Set(moving.map(({ status }) => status))],
  lastMs: moving.findLast(({ by }) => by === '127.0.0.2')?.atMs,
  by: moving.at(-1)?.by,
};
const events = await stream;
report['stream'] = {
  fromFirst: events.filter((event) => event.includes('127.0.0.2')).length,
  done: events.includes('data: [DONE]'),
};

point(undefined);
report['unnamedButConnected'] = Object.keys(tally(await askFor(2_500)));
second.closeAllConnections();
const unnamed = await ask();
report['unnamed'] = { status: unnamed.status, ms: unnamed.ms };

point('127.0.0.2');
await sleep(200);
report['named'] = Object.keys(tally(await askFor(1_000)));

resolver.kill('SIGSTOP');
report['slowButConnected'] = Object.keys(tally(await askFor(2_500)));
first.closeAllConnections();
const slow = await ask();
report['slow'] = { status: slow.status, ms: slow.ms };
const alive = performance.now();
report['alive'] = {
  status: (await fetch(`${gateway.adminUrl}/livez`)).status,
  ms: Math.round(performance.now() - alive),
};
resolver.kill('SIGCONT');
await sleep(200);
report['after'] = Object.keys(tally(await askFor(500)));
report['inflight'] = gateway.inflight();

await gateway.stop({ graceMs: 0 });
resolver.kill('SIGKILL');
for (const server of [first, second]) {
  server.closeAllConnections();
  server.close();
}
console.log(JSON.stringify(report));
process.exit(0);
