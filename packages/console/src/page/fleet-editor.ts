import type { CellProblem } from '../playground/fleet-source.ts';
import type { FleetProperty, PolicyOutline } from '../playground/policy-service.ts';
import { withCell } from '../playground/state.ts';
import type { FleetState } from '../playground/state.ts';
import { element, inlineMarks } from './dom.ts';

/** The table of the endpoints that the policy names, with what is given of each. */
export interface FleetEditor {
  show(fleet: FleetState, tiers: PolicyOutline['tiers'], reads: readonly string[]): void;
  showProblems(problems: readonly CellProblem[]): void;
}

/** Columns that are always there; others come with what the policy reads and what is given. */
const ALWAYS = ['queued_tokens', 'inflight_requests', 'kv_cache_used'];
/** What the column of states says, and what an endpoint is given for it. */
const STATES: { readonly [shown: string]: { readonly [property: string]: string } } = {
  ready: {},
  draining: { state: '"draining"' },
  loading: { state: '"loading"' },
  asleep: { state: '"asleep"' },
  ejected: { healthy: 'false' },
};
const STATE_PROPERTIES = ['state', 'healthy'];
/** Facts of the definition and of the request, and what the column of states says. */
const NO_COLUMNS = new Set([...STATE_PROPERTIES, 'name', 'tier', 'draining', 'model', 'declared_order', 'weight']);

export function createFleetEditor(
  host: HTMLElement,
  properties: readonly FleetProperty[],
  onFleet: (fleet: FleetState) => void,
): FleetEditor {
  const typeOf = new Map(properties.map(({ name, type }) => [name, type]));
  const docOf = new Map(properties.map(({ name, doc }) => [name, doc]));
  const added = new Set<string>();
  const fields = new Map<string, HTMLInputElement>();
  const messages = element('ul', { className: 'problems', attributes: { 'aria-live': 'polite' } });
  const table = element('table', { className: 'fleet' });
  const more = element('select', { id: 'fleet-more' });
  host.replaceChildren(
    element(
      'div',
      { className: 'scroll-x', tabIndex: 0, attributes: { role: 'region', 'aria-label': 'Fleet' } },
      table,
    ),
    messages,
    element(
      'p',
      { className: 'hint' },
      'Values are literals of the language: ',
      element('code', { textContent: '9k' }),
      ', ',
      element('code', { textContent: '85%' }),
      ', ',
      element('code', { textContent: '120ms' }),
      '. What is empty is idle or unknown. ',
      element('label', { htmlFor: 'fleet-more', textContent: 'Another property ' }),
      more,
    ),
  );
  let fleet: FleetState = {};
  let drawn = '';
  let latest: { readonly tiers: PolicyOutline['tiers']; readonly reads: readonly string[] } = { tiers: [], reads: [] };
  const change = (next: FleetState): void => {
    fleet = next;
    onFleet(next);
  };

  const cell = (endpoint: string, property: string): HTMLTableCellElement => {
    const field = element('input', {
      type: 'text',
      value: fleet[endpoint]?.[property] ?? '',
      placeholder: '–',
      autocomplete: 'off',
      spellcheck: false,
      attributes: { 'aria-label': `${property} of ${endpoint}` },
    });
    field.addEventListener('input', () => change(withCell(fleet, endpoint, property, field.value)));
    fields.set(`${endpoint}\n${property}`, field);
    return element('td', {}, field);
  };
  const stateCell = (endpoint: string): HTMLTableCellElement => {
    const given = fleet[endpoint] ?? {};
    const shown = Object.entries(STATES).find(([, facts]) =>
      STATE_PROPERTIES.every((property) => facts[property] === given[property]),
    );
    const field = element(
      'select',
      { attributes: { 'aria-label': `state of ${endpoint}` } },
      ...Object.keys(STATES).map((state) => element('option', { textContent: state, selected: state === shown?.[0] })),
    );
    field.addEventListener('change', () => {
      const facts = STATES[field.value] ?? {};
      change(
        STATE_PROPERTIES.reduce((next, property) => withCell(next, endpoint, property, facts[property] ?? ''), fleet),
      );
    });
    return element('td', {}, field);
  };

  const draw = (): void => {
    const { tiers, reads } = latest;
    const given = Object.values(fleet).flatMap((values) => Object.keys(values));
    const columns = [...new Set([...ALWAYS, ...reads, ...given, ...added])].filter(
      (name) => !NO_COLUMNS.has(name) && typeOf.has(name),
    );
    const drawing = JSON.stringify([tiers, columns]);
    if (drawing === drawn && !isStale()) return;
    drawn = drawing;
    fields.clear();
    table.replaceChildren(
      element('caption', { className: 'visually-hidden', textContent: 'What is given of each endpoint' }),
      element(
        'thead',
        {},
        element(
          'tr',
          {},
          element('th', { scope: 'col', textContent: 'endpoint' }),
          element('th', { scope: 'col', textContent: 'state' }),
          ...columns.map((name) =>
            element('th', {
              scope: 'col',
              title: `${docOf.get(name) ?? ''} (${typeOf.get(name) ?? ''})`,
              textContent: name,
            }),
          ),
        ),
      ),
      ...tiers.map(({ name: tier, endpoints }) =>
        element(
          'tbody',
          { attributes: { 'data-tier': tier } },
          ...endpoints.map((endpoint) =>
            element(
              'tr',
              {},
              element('th', { scope: 'row', textContent: endpoint }),
              stateCell(endpoint),
              ...columns.map((property) => cell(endpoint, property)),
            ),
          ),
        ),
      ),
    );
    more.replaceChildren(
      element('option', { value: '', textContent: 'add a column…' }),
      ...properties
        .filter(({ name }) => !NO_COLUMNS.has(name) && !columns.includes(name))
        .map(({ name }) => element('option', { value: name, textContent: name })),
    );
  };
  /** Whether the fields hold other values than the fleet: it came from elsewhere. */
  const isStale = (): boolean =>
    [...fields].some(([id, field]) => {
      const [endpoint = '', property = ''] = id.split('\n');
      return (fleet[endpoint]?.[property] ?? '').trim() !== field.value.trim();
    });
  more.addEventListener('change', () => {
    if (more.value === '') return;
    added.add(more.value);
    draw();
    more.focus();
  });
  return {
    show(next, tiers, reads) {
      if (next !== fleet) drawn = '';
      fleet = next;
      latest = { tiers, reads };
      draw();
    },
    showProblems(problems) {
      for (const [id, field] of fields) {
        const found = problems.find(({ endpoint, property }) => id === `${endpoint}\n${property}`);
        if (found === undefined) field.removeAttribute('aria-invalid');
        else field.setAttribute('aria-invalid', 'true');
        field.title = found === undefined ? '' : found.message;
      }
      messages.replaceChildren(
        ...problems.map(({ endpoint, property, code, message, help }) =>
          element(
            'li',
            {},
            element('span', { className: 'code', textContent: code }),
            element('strong', { textContent: `${endpoint}, ${property}: ` }),
            ...inlineMarks(help === undefined ? message : `${message}; ${help}`),
          ),
        ),
      );
    },
  };
}
