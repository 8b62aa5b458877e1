import type { ScorerDefinition } from '@signalbox/plugin-api';

/** Rated power of the endpoint's GPUs, least best. */
export const leastPower: ScorerDefinition = {
  doc: "Rated power of the endpoint's GPUs, least best.",
  cost: true,
  reads: ['candidate.power'],
  expression: 'power',
};
