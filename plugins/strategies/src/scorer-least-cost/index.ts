import type { ScorerDefinition } from '@signalbox/plugin-api';

/** Estimated cost of this request at the endpoint, cheapest best. */
export const leastCost: ScorerDefinition = {
  doc: 'Estimated cost of this request at the endpoint, cheapest best.',
  cost: true,
  reads: ['candidate.cost'],
  expression: 'cost',
};
