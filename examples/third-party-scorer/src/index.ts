import { definePlugin } from '@signalbox/plugin-api';
import type { Plugin, ScorerInstance, SetupContext } from '@signalbox/plugin-api';

/** What a policy writes behind `use`. */
interface CarbonOptions {
  readonly grams_per_kwh: number;
  readonly regions: { readonly [region: string]: number };
}

/** Work of a prompt token, an output token being 1. */
const PROMPT_WEIGHT = 0.1;
const JOULES_PER_KWH = 3.6e6;

/**
 * Grams of CO2 that a request causes at an endpoint: its seconds of work, times the watts of the endpoint, times the grams for each
 * kilowatt-hour of its region. The seconds are (0.1 · prompt tokens + output tokens) ÷ throughput.
 */
const plugin: Plugin = definePlugin({
  name: 'least-grams',
  apiVersion: 1,
  doc: 'Prefers endpoints that emit little CO2 for a request.',
  options: {
    type: 'object',
    properties: {
      grams_per_kwh: {
        type: 'number',
        minimum: 0,
        default: 400,
        description: 'Grams of CO2 for each kWh where a region is not listed.',
      },
      regions: {
        type: 'object',
        default: {},
        additionalProperties: { type: 'number', minimum: 0 },
        description: 'Grams of CO2 for each kWh by region.',
      },
    },
    additionalProperties: false,
  },
  provides: {
    scorer: {
      least_grams: {
        doc: "Grams of CO2 that this request causes at the endpoint, fewest best: watts · seconds · the region's grams for each kWh.",
        cost: true,
        reads: [
          'request.prompt_tokens',
          'request.output_tokens',
          'candidate.power',
          'candidate.throughput',
          'candidate.region',
        ],
        setup({ options }: SetupContext<CarbonOptions>): ScorerInstance {
          const regions = new Map(Object.entries(options.regions));
          return {
            score(request, candidates, out) {
              const tokens =
                PROMPT_WEIGHT * request.number('request.prompt_tokens') + request.number('request.output_tokens');
              const power = candidates.column('candidate.power');
              const throughput = candidates.column('candidate.throughput');
              const region = candidates.values('candidate.region');
              for (let i = 0; i < candidates.length; i++) {
                const slot = candidates.slots[i] ?? 0;
                const where = region[slot];
                const grams = (typeof where === 'string' ? regions.get(where) : undefined) ?? options.grams_per_kwh;
                // Unknown power or throughput is NaN, and so is the cost: the host then puts the endpoint last.
                out[i] = ((tokens / (throughput[slot] ?? NaN)) * (power[slot] ?? NaN) * grams) / JOULES_PER_KWH;
              }
            },
          };
        },
      },
    },
  },
});

export default plugin;
