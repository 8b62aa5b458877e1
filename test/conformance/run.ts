import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { CASES } from './cases.ts';
import { startLitellm, startPortkey, startSignalbox } from './products.ts';
import { conformancePage } from './report.ts';
import { runColumn, type Column } from './run-cases.ts';

/** The whole run, installations apart. */
const RUN_MS = 540_000;

const { values } = parseArgs({
  options: {
    /** Only these cases, by id; then the page is not written. */
    case: { type: 'string', multiple: true },
    /** Only these products, by name in lower case; then the page is not written. */
    product: { type: 'string', multiple: true },
    /** Where the other products are installed. */
    peers: { type: 'string', default: join(tmpdir(), 'signalbox-conformance-peers') },
  },
});
const cases = values.case === undefined ? CASES : CASES.filter(({ id }) => values.case?.includes(id));
const products = [
  ['Signalbox', startSignalbox],
  ['Portkey', () => startPortkey(values.peers)],
  ['LiteLLM', () => startLitellm(values.peers)],
] as const;

const untilMs = performance.now() + RUN_MS;
const columns: Column[] = [];
for (const [name, start] of products) {
  if (values.product === undefined || values.product.includes(name.toLowerCase()))
    columns.push(await runColumn(name, start, cases, untilMs));
}
const page = conformancePage(cases, columns, new Date().toISOString().slice(0, 10));
console.log(`\n${page}`);
if (values.case === undefined && values.product === undefined)
  writeFileSync(new URL('../../docs/reference/conformance.md', import.meta.url), page);
const ours = columns.find(({ name }) => name === 'Signalbox');
if (ours !== undefined && (ours.missing !== undefined || [...ours.marks.values()].some(({ mark }) => mark === 'fail')))
  process.exitCode = 1;
