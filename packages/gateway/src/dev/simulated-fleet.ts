import type { EndpointDefinition, PolicyProgram } from '@signalbox/policy';
import type { Pacer, SimulatedEngine, SimulatedEngineOptions } from '@signalbox/simulator';
import { createPacer, startSimulatedEngine } from '@signalbox/simulator';

/**
 * Simulated engines in the place of a policy's endpoints, one for each, with the speed of the GPU that its tier names. Keyed by the
 * endpoint's URL, so that a reload keeps the engines of endpoints that stay as they are.
 */
export interface SimulatedFleet {
  /** The program with every endpoint's URL replaced by that of its engine; starts what is new and stops what is gone. */
  stand(program: PolicyProgram): Promise<PolicyProgram>;
  readonly engines: ReadonlyMap<string, SimulatedEngine>;
  close(): Promise<void>;
}

export interface SimulatedFleetOptions {
  /** How many times faster than real the engines run. */
  readonly timeScale: number;
}

const DEFAULT_SPEED = { tokensPerSecond: 60, prefillTokensPerSecond: 8000 };

export function createSimulatedFleet({ timeScale }: SimulatedFleetOptions): SimulatedFleet {
  const pacer = createPacer();
  const engines = new Map<string, SimulatedEngine>();
  /** What each engine was started for. */
  const facts = new Map<string, string>();
  const retiring = new Set<SimulatedEngine>();

  async function stand(program: PolicyProgram): Promise<PolicyProgram> {
    const wanted = new Map(
      program.definitions.tiers.flatMap((tier) => tier.endpoints.map((endpoint) => [endpoint.url, endpoint] as const)),
    );
    for (const [url, engine] of engines) {
      const endpoint = wanted.get(url);
      if (endpoint !== undefined && factsOf(endpoint) === facts.get(url)) continue;
      engines.delete(url);
      // a stopped engine would cut the streams that it still serves
      retiring.add(engine);
      void closeWhenIdle(engine).then(() => retiring.delete(engine));
    }
    for (const [url, endpoint] of wanted) {
      if (engines.has(url)) continue;
      engines.set(url, await startSimulatedEngine(engineOptions(endpoint, timeScale, pacer)));
      facts.set(url, factsOf(endpoint));
    }
    const tiers = program.definitions.tiers.map((tier) => ({
      ...tier,
      endpoints: tier.endpoints.map((endpoint) => ({
        ...endpoint,
        url: engines.get(endpoint.url)?.url ?? endpoint.url,
      })),
    }));
    return { ...program, definitions: { ...program.definitions, tiers } };
  }

  return {
    stand,
    engines,
    async close() {
      await Promise.all([...engines.values(), ...retiring].map((engine) => engine.close()));
      engines.clear();
    },
  };
}

/** What of an endpoint makes its engine, as text. */
function factsOf({ gpu, gpuCount, model, modelSize, precision, maxBatch, contextWindow }: EndpointDefinition): string {
  return JSON.stringify([gpu, gpuCount, model, modelSize, precision, maxBatch, contextWindow]);
}

const IDLE_LOOK_MS = 500;

/** Waits first: until the program with its successor is in force, requests still go to it. */
async function closeWhenIdle(engine: SimulatedEngine): Promise<void> {
  do {
    await new Promise((resolve) => setTimeout(resolve, IDLE_LOOK_MS).unref());
  } while (engine.engine.state().running + engine.engine.state().waiting > 0);
  await engine.close();
}

function engineOptions(endpoint: EndpointDefinition, timeScale: number, pacer: Pacer): SimulatedEngineOptions {
  const { gpu, gpuCount, model, modelSize, precision, maxBatch, contextWindow } = endpoint;
  const speed =
    gpu === undefined
      ? DEFAULT_SPEED
      : {
          gpu,
          ...(gpuCount === undefined ? {} : { gpuCount }),
          ...(modelSize === undefined ? {} : { modelSize }),
          ...(model === undefined ? {} : { modelName: model }),
          ...(precision === undefined ? {} : { precision }),
        };
  return {
    model: model ?? 'simulated',
    speed,
    // a model whose name does not tell its size, or a GPU that nobody has measured
    speedIfUnknown: DEFAULT_SPEED,
    timeScale,
    pacer,
    ...(maxBatch === undefined ? {} : { maxBatch }),
    ...(contextWindow === undefined ? {} : { maxModelLen: contextWindow }),
  };
}
