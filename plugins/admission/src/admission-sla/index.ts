// perf: runs over the target's endpoints for every request whose policy asks for sla().
import type { AdmissionDefinition, AdmissionInstance } from '@signalbox/plugin-api';

/**
 * Whether at least one endpoint of the target is predicted to meet every objective that the slo states, each strictly below its limit.
 * Unknown where no endpoint is known to meet it and some endpoint's prediction is unknown; false for a target without endpoints.
 */
export const sla: AdmissionDefinition = {
  doc: 'Whether some endpoint of the target is predicted to meet the service-level objective: `sla("interactive", tier "70B")`.',
  arguments: [
    { name: 'slo', kind: 'slo' },
    { name: 'target', kind: 'target', optional: true },
  ],
  reads: ['candidate.predicted_ttft', 'candidate.predicted_tpot', 'candidate.predicted_latency'],
  setup(): AdmissionInstance {
    return {
      holds(_request, candidates, { slo }) {
        if (slo === undefined) return undefined;
        const ttft = candidates.column('candidate.predicted_ttft');
        const tpot = candidates.column('candidate.predicted_tpot');
        const latency = candidates.column('candidate.predicted_latency');
        let unknown = false;
        for (let i = 0; i < candidates.length; i++) {
          const slot = candidates.slots[i]!;
          const missed =
            exceeds(ttft[slot]!, slo.ttft) || exceeds(tpot[slot]!, slo.tpot) || exceeds(latency[slot]!, slo.latency);
          if (missed) continue;
          const known =
            isKnown(ttft[slot]!, slo.ttft) && isKnown(tpot[slot]!, slo.tpot) && isKnown(latency[slot]!, slo.latency);
          if (known) return true;
          unknown = true;
        }
        return unknown ? undefined : false;
      },
    };
  },
};

/** Whether a known prediction misses a stated objective. */
function exceeds(predicted: number, objective: number): boolean {
  return predicted >= objective;
}

/** Whether the prediction is known, or is not needed because nothing is stated. */
function isKnown(predicted: number, objective: number): boolean {
  return objective !== objective || predicted === predicted;
}
