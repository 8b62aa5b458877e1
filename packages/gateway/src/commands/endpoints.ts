import { setTimeout as delay } from 'node:timers/promises';
import type { EndpointStatus } from '@signalbox/core';
import { SignalboxError } from '@signalbox/plugin-api';
import type { EndpointAction, EndpointReport } from '../admin/endpoint-control.ts';
import { ENDPOINT_ACTIONS } from '../admin/endpoint-control.ts';
import type { Command, CommandInput, Terminal } from '../cli/command.ts';
import { EXIT_FAILED, EXIT_OK, UsageError } from '../cli/command.ts';
import type { AdminClient } from './admin-client.ts';
import { ADMIN_OPTIONS, adminClient } from './admin-client.ts';

/** How often a drain looks at what is in flight. */
const LOOK_EVERY_MS = 250;
const DRAIN_TIMEOUT_SECONDS = 300;

export const endpointsCommand: Command = {
  name: 'endpoints',
  summary: 'what the endpoints of a running gateway do; take one out, or back in',
  arguments: '[list | cordon NAME | drain NAME | uncordon NAME]',
  arity: [0, 2],
  help: `
Asks the admin listener of a running gateway. \`list\`, which is the default, shows each endpoint with its state and what it has in flight.

  cordon    no new requests; those in flight go on
  drain     the same, and waits until nothing is in flight: then the model server may be stopped. Exit code 1 if that takes longer than --timeout
  uncordon  takes requests again

  signalbox endpoints
  signalbox endpoints drain 70B/2 --timeout 600 && ssh gpu7 systemctl restart vllm && signalbox endpoints uncordon 70B/2

A cordon belongs to the endpoint's address: it outlasts reloads of the policy, and ends with \`uncordon\` or with the gateway's process.`,
  options: {
    ...ADMIN_OPTIONS,
    timeout: {
      type: 'string',
      value: 'SECONDS',
      help: `how long drain waits; ${DRAIN_TIMEOUT_SECONDS} by default. Afterwards the endpoint stays cordoned`,
    },
    json: { type: 'boolean', help: 'the answer of the admin listener as JSON' },
  },
  async run(input, terminal) {
    const [verb = 'list', name] = input.positionals;
    const action = readAction(verb, name);
    const timeoutMs = readTimeout(input, action);
    const client = adminClient(input, terminal);
    const tell = (value: unknown, text: string): void =>
      terminal.out(input.flag('json') ? `${JSON.stringify(value, null, 2)}\n` : `${text}\n`);
    if (action === undefined || name === undefined) {
      const rows = await listed(client);
      tell({ endpoints: rows }, endpointTable(rows));
      return EXIT_OK;
    }
    const path = `/-/endpoints/${encodeURIComponent(name)}/${action}`;
    const report = (await client.call('POST', path)) as EndpointReport;
    const last = action === 'drain' ? await drained(client, report, timeoutMs, terminal) : report;
    const failed = action === 'drain' && !last.drained;
    if (failed && !input.flag('json')) terminal.err(`${outcomeText(action, last)}\n`);
    else tell(last, outcomeText(action, last));
    return failed ? EXIT_FAILED : EXIT_OK;
  },
};

function readAction(verb: string, name: string | undefined): EndpointAction | undefined {
  if (verb === 'list') {
    if (name !== undefined) throw new UsageError(`unexpected argument "${name}"`);
    return undefined;
  }
  const action = ENDPOINT_ACTIONS.find((known) => known === verb);
  if (action === undefined) throw new UsageError(`expected list, ${ENDPOINT_ACTIONS.join(', ')}, got "${verb}"`);
  if (name === undefined || name === '')
    throw new UsageError(`${verb} needs the name of an endpoint; \`signalbox endpoints\` lists them`);
  return action;
}

function readTimeout(input: CommandInput, action: EndpointAction | undefined): number {
  const text = input.text('timeout');
  if (text === undefined) return DRAIN_TIMEOUT_SECONDS * 1000;
  if (action !== 'drain') throw new UsageError('--timeout is for drain alone');
  const seconds = Number(text);
  if (text.trim() === '' || !(seconds >= 0 && seconds <= 86_400))
    throw new UsageError(`--timeout must be a number of seconds from 0 to 86400, got "${text}"`);
  return seconds * 1000;
}

async function listed(client: AdminClient): Promise<readonly EndpointStatus[]> {
  return ((await client.call('GET', '/-/endpoints')) as { readonly endpoints: readonly EndpointStatus[] }).endpoints;
}

/** Waits until nothing is in flight at a cordoned endpoint, and tells whenever that has changed. */
async function drained(
  client: AdminClient,
  first: EndpointReport,
  timeoutMs: number,
  terminal: Terminal,
): Promise<EndpointReport> {
  const lateMs = performance.now() + timeoutMs;
  let told: number | undefined;
  for (let report = first; ; report = await lookAgain(client, report)) {
    const { name, inflightRequests } = report.endpoint;
    if (report.drained) return report;
    if (told !== inflightRequests) terminal.err(`${name}: ${requests(inflightRequests)} in flight\n`);
    told = inflightRequests;
    const leftMs = lateMs - performance.now();
    if (leftMs <= 0) return report;
    await delay(Math.min(LOOK_EVERY_MS, leftMs));
  }
}

async function lookAgain(client: AdminClient, { endpoint }: EndpointReport): Promise<EndpointReport> {
  const rows = await listed(client);
  const row = rows.find(({ slot, generation }) => slot === endpoint.slot && generation === endpoint.generation);
  // A reload may give it another name. An endpoint that one took out of the policy goes with its last request.
  if (row === undefined) return { endpoint: { ...endpoint, inflightRequests: 0, inflightTokens: 0 }, drained: true };
  if (row.defined && !row.cordoned) {
    throw new SignalboxError(`${row.name} was taken back in by somebody else while it was drained`, {
      code: 'drain_undone',
      source: 'gateway',
    });
  }
  return { endpoint: row, drained: row.inflightRequests === 0 };
}

function outcomeText(action: EndpointAction, { endpoint, drained: idle }: EndpointReport): string {
  const { name, inflightRequests } = endpoint;
  if (action === 'uncordon') return `${name} takes requests again`;
  if (idle) return `${name} is drained: it has nothing in flight, and gets nothing until it is uncordoned`;
  const rest = `${requests(inflightRequests)} in flight`;
  return action === 'cordon'
    ? `${name} gets no new requests; it has ${rest}`
    : `${name} still has ${rest}; it stays cordoned`;
}

function requests(count: number): string {
  return `${count} ${count === 1 ? 'request' : 'requests'}`;
}

/** One line for each endpoint, in columns. */
function endpointTable(rows: readonly EndpointStatus[]): string {
  if (rows.length === 0) return 'The policy in force has no endpoints.';
  const cells = [
    ['ENDPOINT', 'TIER', 'STATE', 'REQUESTS', 'TOKENS', 'NOTES'],
    ...rows.map((row) => [
      row.name,
      row.tier,
      row.state === 'ready' && !row.healthy ? 'ejected' : row.state,
      String(row.inflightRequests),
      String(row.inflightTokens),
      notesOf(row),
    ]),
  ];
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => [...(row[column] ?? '')].length)));
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - [...cell].length))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function notesOf(row: EndpointStatus): string {
  const notes: string[] = [];
  if (!row.defined) notes.push('no longer in the policy');
  if (row.cordoned) notes.push('cordoned');
  if (!row.healthy) notes.push(`ejected for another ${Math.ceil(row.ejectedForMs / 1000)} s`);
  if (row.halfOpen) notes.push('on trial after an ejection');
  if (row.slowStartShare < 1) notes.push(`slow start, ${Math.round(row.slowStartShare * 100)} % of its share`);
  return notes.join(', ');
}
