import type { Value } from '@signalbox/plugin-api';
import type { AttemptRecord, DecisionPlace, DecisionRecord, ShortlistRecord } from './decision-record.ts';

/** A line of an audit file read back, or what is wrong with it. */
export type ReadAuditLine =
  | { readonly kind: 'record'; readonly record: DecisionRecord }
  | { readonly kind: 'problem'; readonly problem: string };

/**
 * The record behind an audit line, with or without its line break. What the line does not say is unknown: NaN for numbers, empty for
 * texts. Times stand in a line to a thousandth of a millisecond. A line of another shape gives what was expected where.
 */
export function readAuditLine(line: string): ReadAuditLine {
  let given: unknown;
  try {
    given = JSON.parse(line);
  } catch {
    return { kind: 'problem', problem: 'it is not JSON' };
  }
  try {
    return { kind: 'record', record: recordOf(new Fields(given, '')) };
  } catch (error) {
    if (error instanceof WrongField) return { kind: 'problem', problem: error.message };
    throw error;
  }
}

class WrongField extends Error {}

/** An object of a line, whose fields are taken by what they must be. */
class Fields {
  readonly #given: { readonly [field: string]: unknown };
  readonly #path: string;

  constructor(given: unknown, path: string) {
    if (typeof given !== 'object' || given === null || Array.isArray(given))
      throw new WrongField(path === '' ? 'it is not an object' : `\`${path}\` is not an object`);
    this.#given = given as { readonly [field: string]: unknown };
    this.#path = path;
  }

  #wrong(field: string, expected: string): WrongField {
    const name = this.#path === '' ? field : `${this.#path}.${field}`;
    return new WrongField(`\`${name}\` ${field in this.#given ? `is not ${expected}` : 'is missing'}`);
  }

  has(field: string): boolean {
    return this.#given[field] !== undefined && this.#given[field] !== null;
  }

  text(field: string): string {
    const value = this.#given[field];
    if (typeof value !== 'string') throw this.#wrong(field, 'a text');
    return value;
  }

  textOrEmpty(field: string): string {
    return this.has(field) ? this.text(field) : '';
  }

  textOrNull(field: string): string | null {
    return this.has(field) ? this.text(field) : null;
  }

  isTrue(field: string): boolean {
    return this.#given[field] === true;
  }

  number(field: string): number {
    const value = this.#given[field];
    if (typeof value !== 'number') throw this.#wrong(field, 'a number');
    return value;
  }

  numberOr(field: string, otherwise: number): number {
    return this.has(field) ? this.number(field) : otherwise;
  }

  list<Item>(field: string, item: (given: unknown, path: string) => Item): Item[] {
    const value = this.#given[field];
    if (!Array.isArray(value)) throw this.#wrong(field, 'a list');
    return value.map((one: unknown, index) => item(one, `${this.#path}${field}[${index}]`));
  }

  fields(field: string): Fields {
    if (!this.has(field)) throw this.#wrong(field, 'an object');
    return new Fields(this.#given[field], this.#path + field);
  }

  /** Every entry of this object. */
  all<Entry>(isEntry: (value: unknown) => value is Entry, expected: string): { readonly [name: string]: Entry } {
    for (const [name, value] of Object.entries(this.#given)) if (!isEntry(value)) throw this.#wrong(name, expected);
    return this.#given as { readonly [name: string]: Entry };
  }
}

function recordOf(line: Fields): DecisionRecord {
  if (line.number('v') !== 1)
    throw new WrongField(`it is of version ${line.number('v')}; this is a reader of version 1`);
  const timeMs = Date.parse(line.text('time'));
  if (Number.isNaN(timeMs)) throw new WrongField('`time` is not a time');
  const attempts = line.list('attempts', attemptOf);
  const reasons = line.list('reason', textOf);
  const verdict = verdictOf(line.text('verdict'));
  const last = attempts.at(-1);
  const keys = line.fields('keys');
  return {
    v: 1,
    requestId: line.text('request_id'),
    timeMs,
    seed: line.numberOr('seed', Number.NaN),
    traceId: line.textOrEmpty('trace_id'),
    tenant: line.textOrEmpty('tenant'),
    model: line.textOrEmpty('model'),
    path: line.textOrEmpty('path'),
    stream: line.isTrue('stream'),
    policy: line.text('policy'),
    generation: line.numberOr('generation', Number.NaN),
    verdict,
    route: line.textOrEmpty('route'),
    ...(line.has('decided') ? { decided: placeOf(line.fields('decided')) } : {}),
    reasons,
    signals: line.fields('signals').all(isValue, 'a value'),
    queuedMs: line.numberOr('queued_ms', Number.NaN),
    decideMs: line.numberOr('decide_ms', Number.NaN),
    shortlist: line.list('shortlist', shortlisted),
    dropped: line.fields('dropped').all(isNumber, 'a number'),
    keys: { affinity: keys.textOrNull('affinity'), split: keys.textOrNull('split') },
    attempts,
    servedModel: line.textOrEmpty('served_model'),
    tier: line.textOrEmpty('tier') || (verdict === 'routed' ? (last?.tier ?? '') : ''),
    endpoint: line.textOrEmpty('endpoint') || (verdict === 'routed' ? (last?.endpoint ?? '') : ''),
    status: line.number('status'),
    code: line.textOrEmpty('code') || (verdict === 'routed' ? '' : (reasons[0] ?? '')),
    ...(line.has('shed')
      ? { shed: { queue: line.fields('shed').text('queue'), class: line.fields('shed').text('class') } }
      : {}),
    ttftMs: line.numberOr('ttft_ms', Number.NaN),
    durationMs: line.numberOr('duration_ms', Number.NaN),
    inputTokens: line.numberOr('input_tokens', Number.NaN),
    cachedTokens: line.numberOr('cached_tokens', Number.NaN),
    outputTokens: line.numberOr('output_tokens', Number.NaN),
  };
}

function placeOf(given: Fields): DecisionPlace {
  return {
    admission: given.textOrEmpty('admission'),
    step: given.numberOr('step', -1),
    fallback: given.numberOr('fallback', -1),
    candidates: given.number('candidates'),
  };
}

function shortlisted(given: unknown, path: string): ShortlistRecord {
  const one = new Fields(given, path);
  return {
    endpoint: one.text('endpoint'),
    tier: one.textOrEmpty('tier'),
    score: one.numberOr('score', Number.NaN),
    parts: one.fields('parts').all(isNumber, 'a number'),
    properties: one.fields('properties').all(isValue, 'a value'),
  };
}

function attemptOf(given: unknown, path: string): AttemptRecord {
  const one = new Fields(given, path);
  return {
    tier: one.text('tier'),
    endpoint: one.text('endpoint'),
    outcome: one.text('outcome'),
    status: one.number('status'),
    durationMs: one.numberOr('ms', Number.NaN),
  };
}

function verdictOf(text: string): DecisionRecord['verdict'] {
  if (text === 'routed' || text === 'rejected' || text === 'refused') return text;
  throw new WrongField('`verdict` is not routed, rejected or refused');
}

function textOf(given: unknown, path: string): string {
  if (typeof given === 'string') return given;
  throw new WrongField(`\`${path}\` is not a text`);
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}

function isValue(value: unknown): value is Value | null {
  if (Array.isArray(value)) return value.every((one) => one !== null && isValue(one));
  return value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}
