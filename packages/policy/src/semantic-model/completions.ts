import type { OptionSchema, ValueType } from '@signalbox/plugin-api';
import type { CatalogueEntry, Parameter } from '../check/catalogue/entries.ts';
import type { NameTable } from '../check/catalogue/catalogue.ts';
import { defineKinds } from '../check/catalogue/define-kinds.ts';
import { functionDocs } from '../check/catalogue/function-docs.ts';
import { isAggregate } from '../check/catalogue/functions.ts';
import { modifiers } from '../check/catalogue/modifiers.ts';
import { typeOfSchema } from '../check/options.ts';
import type { Binding, Session } from '../check/session.ts';
import { isEnum, isList, sameDimension } from '../check/value-types.ts';
import { reservedWords } from '../syntax/token-types.ts';
import { ratePeriods, units } from '../syntax/units.ts';
import type { Span } from '../syntax/span.ts';
import { expectedAfter } from './expected.ts';
import type { Expectation, ObjectOwner, StringRole, ValueScope, Wanted } from './expected.ts';
import type { SemanticModel } from './semantic-model.ts';
import { findEntry } from './find-entry.ts';
import { keyDocAt, keysAt, schemaAt } from './keys.ts';
import { modifierArguments } from './modifier-arguments.ts';
import { statementSnippets } from './statement-snippets.ts';
import { typeText, unitText } from './type-text.ts';

export type CompletionKind =
  | 'keyword'
  | 'snippet'
  | 'signal'
  | 'property'
  | 'scorer'
  | 'picker'
  | 'order'
  | 'function'
  | 'let'
  | 'modifier'
  | 'key'
  | 'value'
  | 'unit'
  | 'name'
  | 'type'
  | 'file'
  | 'module';

/** One thing that may be written at a place. */
export interface PolicyCompletion {
  readonly label: string;
  readonly kind: CompletionKind;
  /** Type and scope, or what it is, on one line. */
  readonly detail?: string;
  /** Markdown. */
  readonly doc?: string;
  /** What takes the place of `replace`; a snippet in the syntax of the language server protocol if `isSnippet`. */
  readonly insert: string;
  readonly isSnippet: boolean;
  readonly replace: Span;
  /** The lower, the better it fits. */
  readonly rank: number;
}

export interface CompletionOptions {
  /** Paths that `import` may name, relative to the file; and packages that `use` may name. */
  readonly files?: readonly string[];
  readonly packages?: readonly string[];
}

/** Where the place stands among the characters: in a comment or a pattern nothing is offered. */
type Lexical =
  | { readonly kind: 'none' }
  | { readonly kind: 'string'; readonly start: number }
  | { readonly kind: 'word'; readonly start: number }
  | { readonly kind: 'number'; readonly start: number; readonly digits: string };

const NOTHING: Lexical = { kind: 'none' };

const lexicalAt = (text: string, offset: number): Lexical => {
  const lineStart = Math.max(text.lastIndexOf('\n', offset - 1), text.lastIndexOf('\r', offset - 1)) + 1;
  for (let index = lineStart; index < offset; index += 1) {
    const sign = text[index];
    if (sign === '#') return NOTHING;
    if (sign !== '"') continue;
    const start = index;
    for (index += 1; index < offset && text[index] !== '"'; index += 1) if (text[index] === '\\') index += 1;
    if (index >= offset)
      return /(?:^|[^A-Za-z0-9_])r$/.test(text.slice(lineStart, start)) ? NOTHING : { kind: 'string', start };
  }
  const line = text.slice(lineStart, offset);
  const number = /(?:^|[^A-Za-z0-9_.$]|\.\.)(\$?\d[\d_]*(?:\.\d+)?)([A-Za-z%]*\/?[A-Za-z]*)$/.exec(line);
  if (number !== null) {
    const written = `${number[1] ?? ''}${number[2] ?? ''}`;
    return { kind: 'number', start: offset - written.length, digits: number[1] ?? '' };
  }
  const word = /[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\.?$/.exec(line);
  return { kind: 'word', start: word === null ? offset : offset - word[0].length };
};

interface Collector {
  readonly model: SemanticModel;
  readonly session: Session;
  readonly path: string;
  readonly offset: number;
  readonly options: CompletionOptions;
  readonly items: Map<string, PolicyCompletion>;
  readonly replace: Span;
  readonly quoted: boolean;
  readonly number: { readonly digits: string } | undefined;
}

interface Item {
  readonly label: string;
  readonly kind: CompletionKind;
  readonly detail?: string | undefined;
  readonly doc?: string | undefined;
  readonly insert?: string;
  readonly isSnippet?: boolean;
  readonly rank?: number;
}

const add = (to: Collector, item: Item): void => {
  const { label, kind, detail, doc, insert = label, isSnippet = false, rank = 50 } = item;
  const before = to.items.get(label);
  if (before !== undefined && before.rank <= rank) return;
  to.items.set(label, {
    label,
    kind,
    insert,
    isSnippet,
    rank,
    replace: to.replace,
    ...(detail === undefined ? {} : { detail }),
    ...(doc === undefined ? {} : { doc }),
  });
};

/** A text in quotes; within quotes, what stands between them. */
const addText = (to: Collector, text: string, kind: CompletionKind, detail: string, rank = 20): void => {
  const written = JSON.stringify(text);
  add(to, { label: to.quoted ? written.slice(1, -1) : written, kind, detail, rank });
};

const addWord = (to: Collector, word: string, detail: string, rank = 15): void => {
  if (!to.quoted) add(to, { label: word, kind: 'value', detail, rank });
};

const scopeText = (scope: 'request' | 'candidate' | 'cluster' | 'constant'): string =>
  ({ request: 'of the request', candidate: 'of an endpoint', cluster: 'of the cluster', constant: 'a constant' })[
    scope
  ];

const escapeSnippet = (text: string): string => text.replaceAll(/[$}\\]/g, (sign) => `\\${sign}`);

/** How a name that takes arguments is inserted. */
const callSnippet = (name: string, entry: CatalogueEntry): string | undefined => {
  const needed = entry.parameters.filter((parameter) => parameter.optional !== true);
  const written = needed.length > 0 ? needed.map((parameter) => parameter.name) : (entry.options?.required ?? []);
  if (entry.kind === 'signal' && entry.indexed) return `${name}["$1"]`;
  if (written.length === 0) return undefined;
  const isPositional = needed.length > 0;
  const parts = written.map(
    (parameter, index) => `${isPositional ? '' : `${parameter}: `}\${${index + 1}:${parameter}}`,
  );
  return `${name}(${parts.join(', ')})`;
};

const addEntry = (to: Collector, name: string, entry: CatalogueEntry, kind: CompletionKind, rank: number): void => {
  const snippet = callSnippet(name, entry);
  const type = entry.kind === 'signal' || entry.kind === 'property' ? typeText(entry.type) : undefined;
  const scope =
    entry.kind === 'signal'
      ? scopeText(entry.global ? 'cluster' : 'request')
      : entry.kind === 'property'
        ? scopeText('candidate')
        : kind;
  const from = entry.provider.kind === 'plugin' ? `\n\nProvided by \`${entry.provider.plugin}\`.` : '';
  add(to, {
    label: name,
    kind,
    detail: type === undefined ? scope : `${type}, ${scope}`,
    doc: entry.doc + from,
    rank,
    ...(snippet === undefined ? {} : { insert: snippet, isSnippet: true }),
  });
};

/** The type that fits at a place, if one is known. */
const typeWanted = (to: Collector, wanted: Wanted): ValueType | undefined => {
  switch (wanted.kind) {
    case 'condition':
      return 'bool';
    case 'type':
      return wanted.type;
    case 'like': {
      const type = to.model.typeOf(to.path, to.offset, wanted.text);
      if (type === undefined) return undefined;
      return wanted.member === true && isList(type) ? type.list : type;
    }
    case 'argument':
      return argumentType(to, wanted);
    case 'entry':
      return entryType(to, wanted.owner, wanted.path);
    case 'modifier':
      return MODIFIER_TYPES[wanted.name];
    default:
      return undefined;
  }
};

const MODIFIER_TYPES: { readonly [name: string]: ValueType } = {
  timeout: 'duration',
  attempt_timeout: 'duration',
  first_token: 'duration',
  idle: 'duration',
  retry_after: 'duration',
  max_wait: 'duration',
  hedge: 'duration',
  max_depth: 'count',
  status: 'number',
  retry: 'number',
  message: 'string',
  model: 'string',
};

type ArgumentWanted = Extract<Wanted, { kind: 'argument' }>;

const argumentOf = (
  to: Collector,
  wanted: ArgumentWanted,
): { readonly parameter?: Parameter; readonly schema?: OptionSchema } | undefined => {
  const entry = findEntry(to.model, to.path, to.offset, wanted.callee, wanted.role);
  if (entry === undefined) return undefined;
  const parameter = entry.parameters.find((one, index) =>
    wanted.name === undefined ? index === wanted.index : one.name === wanted.name,
  );
  if (parameter !== undefined) return { parameter };
  const name = wanted.name ?? entry.positional?.[wanted.index];
  const schema = name === undefined ? undefined : entry.options?.properties?.[name];
  return schema === undefined ? undefined : { schema };
};

const argumentType = (to: Collector, wanted: ArgumentWanted): ValueType | undefined => {
  if (wanted.role === 'modifier')
    return wanted.name === undefined ? undefined : modifierArguments[wanted.callee]?.[wanted.name]?.type;
  const found = argumentOf(to, wanted);
  return found?.parameter?.type ?? (found?.schema === undefined ? undefined : typeOfSchema(found.schema));
};

/** The words that an option may be. */
const textsOf = (schema: OptionSchema | undefined): readonly string[] =>
  (schema?.enum ?? []).filter((member) => typeof member === 'string');

const entryType = (to: Collector, owner: ObjectOwner, path: readonly string[]): ValueType | undefined => {
  const [key] = path;
  if (owner.kind === 'use') {
    const schema = schemaAt(to.model.manifest(owner.name), path);
    return schema === undefined ? undefined : typeOfSchema(schema);
  }
  if (owner.kind === 'given') {
    const property = key === undefined ? undefined : to.session.catalogue.values.get(key);
    return property?.type;
  }
  return keyDocAt(owner.name, path)?.type;
};

// Names of the policy

const addNames = (to: Collector, kind: 'tier' | 'endpoint' | 'slo' | 'limit' | 'tenant'): void => {
  const names = to.session.defined[`${kind}s`];
  for (const name of names.keys()) addText(to, name, 'name', kind, 8);
};

const addStrings = (to: Collector, role: StringRole): void => {
  switch (role) {
    case 'tier':
    case 'endpoint':
      return addNames(to, role);
    case 'definition':
      return to.quoted ? addNames(to, 'tenant') : undefined;
    case 'route':
      for (const path of to.model.paths)
        for (const { symbol, isDeclaration } of to.model.references(path))
          if (symbol.kind === 'route' && isDeclaration) addText(to, symbol.name, 'name', 'route');
      return;
    case 'file':
      for (const file of to.options.files ?? []) addText(to, file, 'file', 'policy file');
      return;
    case 'package':
      for (const name of to.options.packages ?? []) addText(to, name, 'module', 'plugin package');
      return;
    case 'header':
      for (const name of ['x-team', 'x-slo', 'x-session-id', 'x-priority']) addText(to, name, 'value', 'header', 60);
      return;
    default:
  }
};

// Values

const allows = (
  scope: ValueScope,
  item: { readonly scope: 'constant' | 'request' | 'candidate'; readonly global?: boolean },
): boolean => {
  if (item.scope === 'constant') return scope !== 'ranked';
  if (item.scope === 'candidate') return scope === 'candidate' || scope === 'ranked';
  if (scope === 'cluster') return item.global === true;
  return scope === 'request' || scope === 'candidate';
};

const rankOf = (type: ValueType | undefined, wanted: ValueType | undefined, base: number): number => {
  if (wanted === undefined || type === undefined) return base;
  if (wanted === 'bool') return type === 'bool' ? base - 5 : base;
  return sameDimension(type, wanted) ? base - 10 : base + 10;
};

const addBinding = (
  to: Collector,
  binding: Binding,
  name: string,
  scope: ValueScope,
  wanted: ValueType | undefined,
): void => {
  if (binding.kind === 'value') {
    const { expression } = binding;
    if (!allows(scope, { scope: expression.scope })) return;
    add(to, {
      label: name,
      kind: 'let',
      detail: `${typeText(expression.type)}, let`,
      rank: rankOf(expression.type, wanted, 20),
    });
  } else if (binding.kind === 'plugin') addTable(to, binding.table, `${name}.`, scope, wanted);
  else if (binding.kind === 'import') {
    for (const [member, value] of binding.exports) addBinding(to, value, `${name}.${member}`, scope, wanted);
  }
};

const addTable = (
  to: Collector,
  table: NameTable,
  prefix: string,
  scope: ValueScope,
  wanted: ValueType | undefined,
): void => {
  for (const entry of table.values.values()) {
    const fits =
      entry.kind === 'signal'
        ? allows(scope, { scope: 'request', global: entry.global })
        : allows(scope, { scope: 'candidate' });
    if (!fits) continue;
    const own = entry.kind === 'property' && scope === 'candidate' ? 25 : 30;
    addEntry(to, prefix + entry.name, entry, entry.kind, rankOf(entry.type, wanted, own));
  }
};

const addFunctions = (to: Collector, scope: ValueScope): void => {
  for (const [name, { form, doc }] of Object.entries(functionDocs)) {
    if (name === 'lowest' || name === 'highest' || scope === 'constant') continue;
    if (isAggregate(name) && scope === 'ranked') continue;
    if (!isAggregate(name) && name !== 'clamp' && scope === 'cluster') continue;
    add(to, { label: name, kind: 'function', detail: form, doc, insert: `${name}($1)`, isSnippet: true, rank: 45 });
  }
};

const addFamilies = (to: Collector, scope: ValueScope, wanted: ValueType | undefined): void => {
  const { defined } = to.session;
  const family = (label: string, type: ValueType, global: boolean, detail: string): void => {
    if (allows(scope, { scope: 'request', global }))
      add(to, { label, kind: 'signal', detail: `${typeText(type)}, ${detail}`, rank: rankOf(type, wanted, 32) });
  };
  for (const name of defined.alarms.keys()) family(`alarm.${name}`, 'bool', true, 'alarm');
  for (const [name, { type }] of defined.params) family(`param.${name}`, type, true, 'parameter');
  if (defined.tenants.size > 0) {
    family('tenant.id', 'string', false, 'of the tenant');
    family('tenant.class', { enum: ['critical', 'high', 'normal', 'low'] }, false, 'of the tenant');
    family('tenant.weight', 'number', false, 'of the tenant');
  }
  for (const [name, type] of defined.tenantFields) family(`tenant.${name}`, type, false, 'of the tenant');
  for (const [name, type] of defined.labels)
    if (allows(scope, { scope: 'candidate' }))
      add(to, {
        label: `labels.${name}`,
        kind: 'property',
        detail: `${typeText(type)}, of an endpoint`,
        rank: rankOf(type, wanted, 28),
      });
};

const DURATION_UNITS = ['ms', 's', 'm', 'h', 'd', 'us'];

const unitsOf = (type: ValueType): readonly string[] => {
  switch (type) {
    case 'duration':
      return DURATION_UNITS;
    case 'count':
      return [...units].filter(([, unit]) => unit.kind === 'count').map(([name]) => name);
    case 'bytes':
      return [...units].filter(([, unit]) => unit.kind === 'bytes').map(([name]) => name);
    case 'percent':
      return ['%'];
    case 'rate':
      return [...ratePeriods.keys()].map((period) => `/${period}`);
    default:
      return [];
  }
};

const unitNames: { readonly [unit: string]: string } = {
  us: 'microseconds',
  ms: 'milliseconds',
  s: 'seconds',
  m: 'minutes',
  h: 'hours',
  d: 'days',
  k: 'thousand',
  Ki: '1024',
  M: 'million',
  Mi: '1024²',
  B: 'billion',
  '%': 'percent',
};

const addUnits = (to: Collector, type: ValueType | undefined): void => {
  if (to.number === undefined || type === undefined) return;
  const { digits } = to.number;
  for (const [index, unit] of unitsOf(type).entries())
    add(to, {
      label: digits + unit,
      kind: 'unit',
      detail: unitNames[unit] ?? typeText(type),
      doc: unitText(type),
      rank: index,
    });
};

const addMembers = (to: Collector, type: ValueType | undefined): void => {
  if (type === undefined) return;
  if (isEnum(type)) for (const member of type.enum) addText(to, member, 'value', 'value', 10);
  else if (type === 'bool') for (const word of ['true', 'false']) addWord(to, word, 'bool', 48);
};

/** Values that only the thing compared with makes good: names of tiers beside `tier ==`. */
const addLike = (to: Collector, text: string): void => {
  const entry = to.session.catalogue.values.get(text);
  if (entry?.kind !== 'property' || entry.provider.kind !== 'builtin') return;
  if (text === 'tier') addNames(to, 'tier');
  if (text === 'name') addNames(to, 'endpoint');
};

const addArgumentValues = (to: Collector, wanted: ArgumentWanted): void => {
  if (wanted.role === 'modifier') {
    const words = wanted.name === undefined ? undefined : modifierArguments[wanted.callee]?.[wanted.name]?.words;
    for (const word of words ?? []) addWord(to, word, wanted.name ?? '');
    return;
  }
  const isPool = wanted.index === 1 && (isAggregate(wanted.callee) || wanted.callee === 'sla');
  const found = argumentOf(to, wanted);
  if (isPool || found?.parameter?.kind === 'target') addTargets(to, false);
  if (found?.parameter?.kind === 'slo') addNames(to, 'slo');
  if (found?.parameter?.kind === 'limit') addNames(to, 'limit');
  if (found?.parameter?.kind === 'zone')
    for (const zone of ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Tokyo'])
      addText(to, zone, 'value', 'time zone');
  if (found?.parameter?.kind === 'window') addText(to, 'mon-fri 22:00-06:00', 'value', 'window of time');
  for (const member of textsOf(found?.schema)) addWord(to, member, wanted.name ?? '');
};

const addEntryValues = (to: Collector, owner: ObjectOwner, path: readonly string[]): void => {
  const key = path.findLast((part) => part !== '[]') ?? '';
  if (owner.kind === 'use') {
    const schema = schemaAt(to.model.manifest(owner.name), path);
    for (const member of textsOf(schema)) addText(to, member, 'value', key, 10);
    return;
  }
  if (owner.kind === 'given') {
    if (key === 'tier') addNames(to, 'tier');
    return;
  }
  const known = keyDocAt(owner.name, path);
  for (const word of known?.words ?? []) {
    if (to.quoted || reservedWords.includes(word)) addText(to, word, 'value', key, 10);
    else addWord(to, word, key, 10);
  }
  if (known?.names !== undefined) addNames(to, known.names);
};

const addModifierValues = (to: Collector, name: string, index: number): void => {
  if (['fallback', 'prefill', 'mirror'].includes(name)) addTargets(to, name === 'mirror' && index === 0);
  if (name === 'priority') for (const word of ['critical', 'high', 'normal', 'low']) addWord(to, word, 'class', 10);
  if (name === 'overflow')
    for (const word of ['oldest', 'newest', 'lowest', 'refuse']) addWord(to, word, 'which request is displaced', 10);
  if (name === 'status') for (const status of ['429', '503', '403', '400']) addWord(to, status, 'status', 10);
};

const VALUE_MODIFIERS: ReadonlySet<string> = new Set([
  'affinity',
  'sticky',
  'priority',
  'header',
  'set',
  'message',
  'model',
  'retry_after',
]);

const addValues = (to: Collector, { scope, wanted }: { readonly scope: ValueScope; readonly wanted: Wanted }): void => {
  const type = typeWanted(to, wanted);
  addUnits(to, type);
  if (to.number !== undefined) return;
  addMembers(to, type);
  if (wanted.kind === 'like') addLike(to, wanted.text);
  if (wanted.kind === 'argument') addArgumentValues(to, wanted);
  if (wanted.kind === 'entry') addEntryValues(to, wanted.owner, wanted.path);
  if (wanted.kind === 'modifier') addModifierValues(to, wanted.name, wanted.index);
  if (to.quoted) return;
  if (wanted.kind === 'scorer') return addScorers(to);
  if (wanted.kind === 'order') {
    for (const entry of to.session.catalogue.admissions.values()) addEntry(to, entry.name, entry, 'order', 20);
    return;
  }
  if (wanted.kind === 'modifier' && !VALUE_MODIFIERS.has(wanted.name)) return;
  if (wanted.kind === 'argument' && wanted.role === 'modifier') return;
  const bindings = to.model.bindingsAt(to.path, to.offset);
  for (const binding of bindings) addBinding(to, binding, binding.name, scope, type);
  if (scope === 'constant') return;
  addTable(to, to.session.catalogue, '', scope, type);
  addFamilies(to, scope, type);
  if (wanted.kind !== 'modifier') addFunctions(to, scope);
};

const addScorers = (to: Collector): void => {
  const fromTable = (table: NameTable, prefix: string): void => {
    for (const entry of table.scorers.values()) addEntry(to, prefix + entry.name, entry, 'scorer', 20);
  };
  fromTable(to.session.catalogue, '');
  for (const binding of to.model.bindingsAt(to.path, to.offset)) {
    if (binding.kind === 'scorer') add(to, { label: binding.name, kind: 'let', detail: 'scorer, let', rank: 10 });
    if (binding.kind === 'plugin') fromTable(binding.table, `${binding.name}.`);
  }
  for (const name of ['lowest', 'highest']) {
    const known = functionDocs[name];
    add(to, {
      label: name,
      kind: 'function',
      detail: known?.form,
      doc: known?.doc,
      insert: `${name}($1)`,
      isSnippet: true,
      rank: 30,
    });
  }
};

const addTargets = (to: Collector, shares: boolean): void => {
  if (to.quoted) return;
  const { defined } = to.session;
  for (const tier of defined.tiers.keys())
    add(to, { label: `tier ${JSON.stringify(tier)}`, kind: 'name', detail: 'tier', rank: 10 });
  for (const kind of ['tier', 'endpoint'])
    add(to, { label: kind, kind: 'keyword', detail: `${kind} "…"`, insert: `${kind} "$1"`, isSnippet: true, rank: 30 });
  add(to, { label: 'any', kind: 'keyword', detail: 'every endpoint', rank: 25 });
  for (const binding of to.model.bindingsAt(to.path, to.offset))
    if (binding.kind === 'target') add(to, { label: binding.name, kind: 'let', detail: 'target, let', rank: 12 });
  if (shares && to.number !== undefined)
    add(to, { label: `${to.number.digits}%`, kind: 'unit', detail: 'share of a split', rank: 5 });
};

const addPickers = (to: Collector): void => {
  const fromTable = (table: NameTable, prefix: string): void => {
    for (const entry of table.pickers.values()) addEntry(to, prefix + entry.name, entry, 'picker', 20);
  };
  fromTable(to.session.catalogue, '');
  for (const binding of to.model.bindingsAt(to.path, to.offset)) {
    if (binding.kind === 'picker') add(to, { label: binding.name, kind: 'let', detail: 'picker, let', rank: 10 });
    if (binding.kind === 'plugin') fromTable(binding.table, `${binding.name}.`);
  }
};

/** Modifiers of a place: their form with what stands behind the name as a place to fill. */
const addModifiers = (to: Collector, { place, present }: Extract<Expectation, { kind: 'modifier' }>): void => {
  for (const { name, form, doc, places, repeats } of modifiers) {
    if (!places.includes(place) || (!repeats && present.includes(name))) continue;
    const rest = form.slice(name.length + 1);
    const isText = rest.startsWith('"') && rest.endsWith('"') && !rest.slice(1, -1).includes('"');
    const insert = isText
      ? `${name} "\${1:${escapeSnippet(rest.slice(1, -1))}}"`
      : `${name} \${1:${escapeSnippet(rest)}}`;
    add(to, { label: name, kind: 'modifier', detail: form, doc, insert, isSnippet: true, rank: 20 });
  }
};

const addArgumentNames = (
  to: Collector,
  { callee, role, present }: Extract<Expectation, { kind: 'argument-name' }>,
): void => {
  const offer = (name: string, doc: string | undefined, type: ValueType | undefined): void => {
    if (!present.includes(name))
      add(to, {
        label: `${name}:`,
        kind: 'key',
        detail: type === undefined ? undefined : typeText(type),
        doc,
        insert: `${name}: `,
        rank: 15,
      });
  };
  if (role === 'modifier') {
    for (const [name, { doc, type }] of Object.entries(modifierArguments[callee] ?? {})) offer(name, doc, type);
    return;
  }
  const entry = findEntry(to.model, to.path, to.offset, callee, role);
  for (const parameter of entry?.parameters ?? []) offer(parameter.name, undefined, parameter.type);
  for (const [name, schema] of Object.entries(entry?.options?.properties ?? {}))
    offer(name, schema.description, typeOfSchema(schema));
};

const schemaSnippet = (key: string, schema: OptionSchema): string => {
  if (schema.type === 'object') return `${key}: { $1 }`;
  if (schema.type === 'array') return `${key}: [$1]`;
  if (schema.type === 'string' && schema.enum === undefined) return `${key}: "$1"`;
  return `${key}: $1`;
};

const addKeys = (to: Collector, { owner, path, present }: Extract<Expectation, { kind: 'key' }>): void => {
  const offer = (key: string, detail: string | undefined, doc: string | undefined, insert: string): void => {
    if (!present.includes(key)) add(to, { label: key, kind: 'key', detail, doc, insert, isSnippet: true, rank: 15 });
  };
  if (owner.kind === 'use') {
    const properties = schemaAt(to.model.manifest(owner.name), path)?.properties ?? {};
    for (const [key, schema] of Object.entries(properties)) {
      const type = typeOfSchema(schema);
      const standard = schema.default === undefined ? '' : `\n\nDefault: \`${JSON.stringify(schema.default)}\``;
      offer(
        key,
        type === undefined ? schema.type : typeText(type),
        `${schema.description ?? ''}${standard}`.trim(),
        schemaSnippet(key, schema),
      );
    }
    return;
  }
  if (owner.kind === 'given') {
    if (owner.name !== 'endpoint' || path.length > 0) return;
    for (const entry of to.session.catalogue.values.values())
      if (entry.kind === 'property') offer(entry.name, typeText(entry.type), entry.doc, `${entry.name}: $1`);
    return;
  }
  for (const [key, { doc, type, words, example }] of Object.entries(keysAt(owner.name, path) ?? {}))
    offer(key, type === undefined ? words?.join(' | ') : typeText(type), doc, `${key}: ${example}`);
};

const addStatements = (to: Collector, { inGroup, annotated }: Extract<Expectation, { kind: 'statement' }>): void => {
  for (const { word, label, doc, insert, group } of statementSnippets) {
    if (inGroup && !group) continue;
    add(to, {
      label,
      kind: label === word ? 'keyword' : 'snippet',
      detail: doc,
      insert,
      isSnippet: insert !== label,
      rank: label === word ? 30 : 35,
    });
  }
  if (!annotated)
    for (const [name, form] of Object.entries(ANNOTATIONS))
      add(to, { label: `@${name}`, kind: 'snippet', insert: `@${form}`, isSnippet: true, rank: 60 });
};

const ANNOTATIONS: { readonly [name: string]: string } = {
  owner: 'owner("${1:team}")',
  expires: 'expires("${1:2027-03-31}")',
  allow: 'allow(${1:W0505}, "${2:why}")',
};

const PLAIN_TYPES = [
  'bool',
  'number',
  'string',
  'duration',
  'bytes',
  'percent',
  'rate',
  'money',
  'list',
  'priority',
  'weekday',
  'precision',
];

const addExpected = (to: Collector, expectation: Expectation): void => {
  if (expectation.kind === 'value') return addValues(to, expectation);
  if (expectation.kind === 'string') return addStrings(to, expectation.role);
  if (expectation.kind === 'target' && !to.quoted) return addTargets(to, expectation.shares);
  if (to.quoted || to.number !== undefined) return undefined;
  switch (expectation.kind) {
    case 'statement':
      return addStatements(to, expectation);
    case 'word':
      return add(to, { label: expectation.word, kind: 'keyword', rank: 40 });
    case 'picker':
      return addPickers(to);
    case 'modifier':
      return addModifiers(to, expectation);
    case 'argument-name':
      return addArgumentNames(to, expectation);
    case 'key':
      return addKeys(to, expectation);
    case 'regex':
      return add(to, { label: 'r"…"', kind: 'snippet', detail: 'pattern', insert: 'r"$1"', isSnippet: true });
    case 'number':
      return add(to, { label: '1', kind: 'value', detail: 'version of the language' });
    case 'define-kind':
      for (const kind of defineKinds) add(to, { label: kind, kind: 'type', detail: `define ${kind}`, rank: 20 });
      return undefined;
    case 'given':
      add(to, {
        label: 'endpoint',
        kind: 'keyword',
        detail: 'given endpoint "…" { … }',
        insert: 'endpoint "${1:gpu-a}" { $2 }',
        isSnippet: true,
        rank: 10,
      });
      return undefined;
    case 'type':
      for (const type of PLAIN_TYPES) add(to, { label: type, kind: 'type', rank: 20 });
      return undefined;
    case 'annotation':
      for (const [name, form] of Object.entries(ANNOTATIONS))
        add(to, { label: name, kind: 'snippet', insert: form, isSnippet: true, rank: 20 });
      return undefined;
    default:
      return undefined;
  }
};

/**
 * What may be written at a place of a file, broken or not, best first. The one function behind every completion; it asks the grammar what may
 * come (`expectedAfter`) and the checker what is in scope. Never throws.
 */
export const completionsAt = (
  model: SemanticModel,
  path: string,
  offset: number,
  options: CompletionOptions = {},
): readonly PolicyCompletion[] => {
  const text = model.tree(path)?.text;
  const { session } = model;
  if (text === undefined || session === undefined) return [];
  const lexical = lexicalAt(text, offset);
  if (lexical.kind === 'none') return [];
  const quoted = lexical.kind === 'string';
  const rest = quoted ? (/^(?:[^"\\\r\n]|\\[^\r\n])*(?=")/.exec(text.slice(offset))?.[0].length ?? 0) : 0;
  const to: Collector = {
    model,
    session,
    path,
    offset: lexical.start,
    options,
    items: new Map(),
    replace: { file: path, start: quoted ? lexical.start + 1 : lexical.start, end: offset + rest },
    quoted,
    number: lexical.kind === 'number' ? { digits: lexical.digits } : undefined,
  };
  for (const expectation of expectedAfter(text.slice(0, lexical.start))) addExpected(to, expectation);
  return [...to.items.values()].toSorted(
    (a, b) => a.rank - b.rank || (a.label < b.label ? -1 : a.label > b.label ? 1 : 0),
  );
};
