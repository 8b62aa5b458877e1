import { SignalboxError } from '@signalbox/plugin-api';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { DEFAULT_CANARY_RULES } from '../lifecycle/canary-judge.ts';
import type { CanaryOrder, ChangeReport, Expectation, PolicyLifecycle } from '../lifecycle/policy-lifecycle.ts';
import { PolicyConflict, TextsRefused } from '../lifecycle/policy-lifecycle.ts';
import type { PolicyTexts } from '../policy/load-policy.ts';

/** What the admin listener asks of the versions. */
export type PolicyControl = Pick<
  PolicyLifecycle<unknown>,
  | 'abort'
  | 'canary'
  | 'endShadow'
  | 'list'
  | 'pin'
  | 'promote'
  | 'rollback'
  | 'shadow'
  | 'show'
  | 'startCanary'
  | 'startShadow'
  | 'state'
  | 'unpin'
>;

type Body = { readonly [key: string]: unknown };

const MOST_WINDOW_S = 7 * 86_400;

/**
 * Versions, pin, rollback, canary and shadow under `/-/policy/`. Every change takes `If-Match` with the `ETag` of an answer before, or
 * `expected_generation` in its body, and answers 412 with how things stand if something else changed in between.
 */
export function addPolicyRoutes(app: FastifyInstance, control: PolicyControl): void {
  const change = (
    path: string,
    keys: readonly string[],
    run: (body: Body, expected: Expectation) => Promise<ChangeReport>,
  ): void => {
    app.post(path, (request, reply) =>
      answerChange(reply, async () => {
        const body = bodyOf(request, [...keys, 'expected_generation']);
        const report = await run(body, expectationOf(request, body));
        return reply.header('etag', report.etag).send(report);
      }),
    );
  };
  app.get('/-/policy/versions', (_request, reply) => {
    const { etag, ...state } = control.state();
    return reply.header('etag', etag).send({ ...state, etag, versions: control.list() });
  });
  app.get<{ Params: { readonly id: string } }>('/-/policy/versions/:id', ({ params }) => control.show(params.id));
  app.get('/-/policy/canary', () => ({ canary: control.canary() ?? null }));
  app.get('/-/policy/shadow', () => ({ shadow: control.shadow() ?? null }));
  change('/-/policy/rollback', ['policy'], (body, expected) => control.rollback(policyIn(body), expected));
  change('/-/policy/pin', ['policy'], (body, expected) => control.pin(policyIn(body), expected));
  change('/-/policy/unpin', [], (_body, expected) => control.unpin(expected));
  change('/-/policy/canary', CANARY_KEYS, (body, expected) => control.startCanary(readCanary(body), expected));
  change('/-/policy/promote', ['policy'], (body, expected) => control.promote(policyIn(body), expected));
  change('/-/policy/abort', ['policy'], (body, expected) => control.abort(policyIn(body), expected));
  change('/-/policy/shadow', ['main', 'files', 'sample'], (body, expected) =>
    control.startShadow(readTexts(body), numberIn(body, 'sample', [0, 1], 1), expected),
  );
  change('/-/policy/shadow/off', [], (_body, expected) => control.endShadow(expected));
}

/** Runs a change, and answers what keeps it from being made. */
export async function answerChange(reply: FastifyReply, run: () => Promise<FastifyReply>): Promise<FastifyReply> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof SignalboxError) || error.status === undefined || error.status >= 500) throw error;
    const body = {
      error: { message: error.message, type: 'invalid_request_error', param: null, code: error.code },
      ...(error instanceof PolicyConflict ? { current: error.current } : {}),
      ...(error instanceof TextsRefused
        ? { text: error.text, diagnostics: error.diagnostics, failedTests: error.failedTests }
        : {}),
    };
    if (error instanceof PolicyConflict) void reply.header('etag', error.current.etag);
    return reply.code(error.status).send(body);
  }
}

/** What `If-Match` and the body expect of the version in force. */
export function expectationOf(request: FastifyRequest, body: Body): Expectation {
  const header = request.headers['if-match'];
  const generation = body['expected_generation'];
  if (generation !== undefined && !Number.isInteger(generation))
    throw invalid('expected_generation', 'must be a whole number', generation);
  return {
    ...(header === undefined ? {} : { tags: header.split(',').map((tag) => tag.trim().replace(/^W\//, '')) }),
    ...(typeof generation === 'number' ? { generation } : {}),
  };
}

const CANARY_KEYS = ['main', 'files', 'share', 'for_seconds', 'max_error_increase', 'max_ttft_ratio', 'min_requests'];

function readCanary(body: Body): CanaryOrder {
  const rules = DEFAULT_CANARY_RULES;
  return {
    texts: readTexts(body),
    share: numberIn(body, 'share', [0, 1]),
    forMs: numberIn(body, 'for_seconds', [1, MOST_WINDOW_S], rules.forMs / 1000) * 1000,
    maxErrorIncrease: numberIn(body, 'max_error_increase', [0, 1], rules.maxErrorIncrease),
    maxTtftRatio: numberIn(body, 'max_ttft_ratio', [1, 1000], rules.maxTtftRatio),
    minRequests: Math.ceil(numberIn(body, 'min_requests', [2, 1e6], rules.minRequests)),
  };
}

/** A body that is a JSON object with no other keys, or none. */
function bodyOf({ body }: FastifyRequest, keys: readonly string[]): Body {
  if (body === undefined || body === null) return {};
  if (typeof body !== 'object' || Array.isArray(body))
    throw new SignalboxError('the body must be a JSON object', {
      code: 'invalid_request',
      source: 'client',
      status: 400,
    });
  for (const key of Object.keys(body)) {
    if (!keys.includes(key)) throw invalid(key, `is not known here; expected ${keys.join(', ')}`, undefined);
  }
  return body as Body;
}

function policyIn(body: Body): string | undefined {
  const id = body['policy'];
  if (id === undefined || (typeof id === 'string' && /^[0-9a-f]{4,64}$/.test(id))) return id;
  throw invalid('policy', 'must be the id of a version, or its first four digits or more', id);
}

function numberIn(body: Body, key: string, [least, most]: readonly [number, number], otherwise?: number): number {
  const value = body[key] ?? otherwise;
  if (typeof value === 'number' && value >= least && value <= most) return value;
  throw invalid(key, `must be a number from ${least} to ${most}`, value);
}

function readTexts(body: Body): PolicyTexts {
  const { main, files } = body;
  if (typeof main !== 'string') throw invalid('main', 'must name the main file among `files`', main);
  if (typeof files !== 'object' || files === null || Array.isArray(files))
    throw invalid('files', 'must be an object of texts by path', files);
  for (const [path, text] of Object.entries(files)) {
    if (typeof text !== 'string') throw invalid(`files.${path}`, 'must be a text', text);
  }
  return { main, files: files as { readonly [path: string]: string } };
}

function invalid(key: string, what: string, given: unknown): SignalboxError {
  const got = given === undefined ? '' : `, got ${JSON.stringify(given).slice(0, 100)}`;
  return new SignalboxError(`\`${key}\` ${what}${got}`, { code: 'invalid_request', source: 'client', status: 400 });
}
