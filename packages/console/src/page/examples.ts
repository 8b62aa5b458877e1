import admission from '../../../../examples/policies/admission.route';
import canary from '../../../../examples/policies/canary.route';
import latency from '../../../../examples/policies/latency-aware.route';
import affinity from '../../../../examples/policies/session-affinity.route';
import sla from '../../../../examples/policies/sla-fallback.route';
import tiers from '../../../../examples/policies/complexity-tiers.route';
import tour from '../../../../examples/policies/tour.route';
import { EXAMPLES } from '../playground/examples.ts';
import type { ExampleName } from '../playground/examples.ts';
import { EMPTY_STATE } from '../playground/state.ts';
import type { PlaygroundState } from '../playground/state.ts';

const POLICIES: { readonly [name in ExampleName]: string } = {
  tour,
  'complexity-tiers': tiers,
  'sla-fallback': sla,
  'session-affinity': affinity,
  'latency-aware': latency,
  canary,
  admission,
};

/** What the playground shows of an example: its policy with a request and a fleet that it decides. */
export function exampleState(name: ExampleName): PlaygroundState {
  const { title: _title, ...given } = EXAMPLES[name];
  return { ...EMPTY_STATE, ...given, policy: POLICIES[name] };
}
