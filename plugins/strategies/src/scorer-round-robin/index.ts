// perf: score() runs for every decision of a rule that names round_robin.
import type { ScorerDefinition } from '@signalbox/plugin-api';

/** Below every turn number, so that an endpoint that has had no turn comes before all that have. */
const NO_TURN = -1e9;

/**
 * Rotation by last turn: the candidate whose last turn lies furthest back is best, and those without a turn come first, in declared
 * order. Over a steady set this is plain rotation; when the eligible set changes, nobody is skipped or served twice in a row for it.
 */
export const roundRobin: ScorerDefinition = {
  doc: 'Rotates over the eligible candidates; each rule that names it has a rotation of its own.',
  cost: true,
  scope: 'rule',
  reads: ['candidate.declared_order'],
  setup() {
    let turns = 0;
    let lastTurn = new Float64Array(64);

    return {
      score(_request, candidates, out) {
        const { length, slots } = candidates;
        const order = candidates.column('candidate.declared_order');
        for (let i = 0; i < length; i++) {
          const slot = slots[i]!;
          const turn = slot < lastTurn.length ? lastTurn[slot]! : 0;
          const place = order[slot]!;
          out[i] = turn > 0 ? turn : NO_TURN + (place === place ? place : slot);
        }
      },
      picked(slot) {
        if (slot >= lastTurn.length) {
          const wider = new Float64Array(2 * (slot + 1));
          wider.set(lastTurn);
          lastTurn = wider;
        }
        lastTurn[slot] = ++turns;
      },
      forget(slot) {
        if (slot < lastTurn.length) lastTurn[slot] = 0;
      },
    };
  },
};
