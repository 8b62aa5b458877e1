import { findProfile } from '../../packages/hardware-profiles/src/index.ts';
import type { Profile } from '../../packages/hardware-profiles/src/index.ts';
import { createPacer, startSimulatedEngine } from '../../packages/simulator/src/index.ts';
import type { SimulatedEngine } from '../../packages/simulator/src/index.ts';

/** One model server of the replay. */
export interface ReplayEndpoint {
  readonly name: string;
  readonly gpu: string;
  readonly gpuCount: number;
  readonly profile: Profile;
  /** Most sequences in its batch, vLLM's `--max-num-seqs`. */
  readonly maxBatch: number;
  readonly kvBlocks: number;
}

/** The model that all endpoints serve. Both profiles of it are fitted to measurements of just these machines. */
export const replayModel = 'llama2-70b';

const gpuCount = 4;
const blockSize = 16;
export const defaultMaxBatch = 16;

/**
 * Four servers of one model on two kinds of machine, declared in turn: two of four H100 each, two of four A100 each — the two kinds that
 * the paper of the trace is about. An H100 server ends about 1.7 times as many of the trace's requests per second as an A100 server.
 * @param maxBatch most sequences in a server's batch
 */
export function replayEndpoints(maxBatch: number = defaultMaxBatch): readonly ReplayEndpoint[] {
  return [
    endpoint('h100-1', 'H100', maxBatch),
    endpoint('a100-1', 'A100', maxBatch),
    endpoint('h100-2', 'H100', maxBatch),
    endpoint('a100-2', 'A100', maxBatch),
  ];
}

/** The kind whose capacity the load is stated against. */
export const slowGpu = 'A100';

function endpoint(name: string, gpu: string, maxBatch: number): ReplayEndpoint {
  const profile = findProfile({ gpu, gpuCount, modelName: replayModel });
  if (profile === undefined) throw new Error(`no profile of ${replayModel} on ${gpuCount} ${gpu}`);
  return Object.freeze({
    name,
    gpu,
    gpuCount,
    profile,
    maxBatch,
    kvBlocks: Math.floor(profile.kvTokensCapacity / blockSize),
  });
}

/** Starts the servers on 127.0.0.1, their clocks `compression` times as fast as real, and one timer for all of them. */
export async function startReplayFleet(
  endpoints: readonly ReplayEndpoint[],
  compression: number,
): Promise<readonly SimulatedEngine[]> {
  // A shorter interval than the default, since a step of the fast engines takes 3 to 5 ms of compressed time.
  const pacer = createPacer({ shortestIntervalMs: 1 });
  return Promise.all(
    endpoints.map(({ profile, maxBatch, kvBlocks }) =>
      startSimulatedEngine({
        model: replayModel,
        speed: profile,
        maxBatch,
        kvBlocks,
        blockSize,
        timeScale: compression,
        pacer,
        keepRequests: 1,
      }),
    ),
  );
}
