import type { Value } from '@signalbox/plugin-api';
import type { Destination, PolicyProgram, RouteRule, TargetRef, Verdict } from '../ir.ts';
import type { Span } from '../syntax/span.ts';

/** A place that a route may send a request to. */
export interface Place {
  readonly kind: 'target';
  readonly target: TargetRef;
  readonly by: 'target' | 'fallback' | 'mirror' | 'prefill';
  /** Whose filter its endpoints have to pass; of mirrors and prefill tiers none. */
  readonly filtered: Destination | undefined;
  readonly span: Span;
}

/** All that may become of a request that a route takes, for some state of the endpoints. */
export type Stop = Place | { readonly kind: 'verdict'; readonly verdict: Verdict };

export function stopsOf(route: RouteRule): readonly Stop[] {
  return route.steps.flatMap((step): readonly Stop[] => {
    if (step.kind === 'next') return [];
    if (step.kind === 'verdict') return [{ kind: 'verdict', verdict: step }];
    const place = (target: TargetRef, by: Place['by'], span: Span = step.span): Place => ({
      kind: 'target',
      target,
      by,
      filtered: by === 'target' || by === 'fallback' ? step : undefined,
      span,
    });
    const { fallbacks = [], mirror = [], prefill } = step.with;
    return [
      ...step.targets.map(({ target }) => place(target, 'target')),
      ...fallbacks.map(({ target, span }) => place(target, 'fallback', span)),
      ...mirror.map(({ target }) => place(target, 'mirror')),
      ...(prefill === undefined ? [] : [place(prefill, 'prefill')]),
    ];
  });
}

/** An endpoint that a target may stand for, with what is settled about it. */
export interface KnownEndpoint {
  readonly name: string;
  readonly tier: string | undefined;
  readonly facts: ReadonlyMap<string, Value | undefined>;
}

/** The endpoints of a target. A tier that lists none stands for one of which only the tier is settled. */
export function endpointsOf(program: PolicyProgram, target: TargetRef): readonly KnownEndpoint[] {
  const { tiers } = program.definitions;
  const listed = tiers.flatMap((tier) => tier.endpoints);
  switch (target.kind) {
    case 'tier': {
      const own = listed.filter(({ tier }) => tier === target.name);
      return own.length === 0 ? [unlisted(target.name)] : own.map((endpoint) => known(program, endpoint));
    }
    case 'endpoint': {
      const own = listed.filter(({ name }) => name === target.name);
      return own.length === 0
        ? [{ name: target.name, tier: undefined, facts: new Map([['name', target.name]]) }]
        : own.map((endpoint) => known(program, endpoint));
    }
    case 'any': {
      const empty = tiers.filter((tier) => tier.endpoints.length === 0).map(({ name }) => unlisted(name));
      const all = [...listed.map((endpoint) => known(program, endpoint)), ...empty];
      return all.length === 0 ? [{ name: 'any', tier: undefined, facts: new Map() }] : all;
    }
  }
}

const unlisted = (tier: string): KnownEndpoint => ({ name: `${tier}/…`, tier, facts: new Map([['tier', tier]]) });

type Listed = PolicyProgram['definitions']['tiers'][number]['endpoints'][number];

/** Name, tier, zone, region and labels are what the definition says, unknown where it says nothing. */
function known(program: PolicyProgram, endpoint: Listed): KnownEndpoint {
  const facts = new Map<string, Value | undefined>([
    ['name', endpoint.name],
    ['tier', endpoint.tier],
    ['zone', endpoint.zone],
    ['region', endpoint.region],
  ]);
  for (const { key } of program.properties) {
    if (!key.startsWith('labels.')) continue;
    const label = key.slice('labels.'.length);
    facts.set(key, Object.hasOwn(endpoint.labels ?? {}, label) ? endpoint.labels?.[label] : undefined);
  }
  return { name: endpoint.name, tier: endpoint.tier, facts };
}

/** Whether an endpoint may be one of a target's; where too little is known of it, yes. */
export function mayBelong(endpoint: KnownEndpoint, target: TargetRef): boolean {
  switch (target.kind) {
    case 'any':
      return true;
    case 'tier':
      return endpoint.tier === undefined || endpoint.tier === target.name;
    case 'endpoint':
      return endpoint.name === target.name || endpoint.name === 'any' || endpoint.name.endsWith('/…');
  }
}

/** Whether an endpoint is one of a target's for certain. */
export function surelyBelongs(endpoint: KnownEndpoint, target: TargetRef): boolean {
  switch (target.kind) {
    case 'any':
      return true;
    case 'tier':
      return endpoint.tier === target.name;
    case 'endpoint':
      return endpoint.name === target.name;
  }
}

/** A target as it is written. */
export const targetText = (target: TargetRef): string =>
  target.kind === 'any' ? 'any' : `${target.kind} ${JSON.stringify(target.name)}`;
