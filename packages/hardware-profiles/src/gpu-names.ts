import type { GpuSpec } from './profile.ts';
import { gpuSpecs } from './profiles.generated.ts';

/** Names in use for an accelerator, normalised (lower case, letters and digits only) → id in the specification table. */
const aliases: Readonly<Record<string, string>> = Object.freeze({
  a100: 'A100-80GB-SXM',
  a10080gb: 'A100-80GB-SXM',
  a100sxm: 'A100-80GB-SXM',
  a100sxm480gb: 'A100-80GB-SXM',
  a100pcie: 'A100-80GB-PCIe',
  a30: 'A30-24GB',
  b200: 'B200-SXM-180GB',
  b200sxm: 'B200-SXM-180GB',
  b300: 'B300-SXM',
  h100: 'H100-80GB-SXM',
  h10080gb: 'H100-80GB-SXM',
  h100sxm: 'H100-80GB-SXM',
  h100sxm5: 'H100-80GB-SXM',
  h10080gbhbm3: 'H100-80GB-SXM',
  h100pcie: 'H100-80GB-PCIe',
  h200: 'H200-141GB-SXM',
  h200sxm: 'H200-141GB-SXM',
  l4: 'L4-24GB',
  l40s: 'L40S-48GB',
  rtxpro6000: 'RTX-PRO-6000-Blackwell-Server',
  rtx4090: 'RTX-4090-24GB',
  geforcertx4090: 'RTX-4090-24GB',
  arcprob60: 'Intel-Arc-Pro-B60',
  mi300x: 'MI300X-192GB',
  mi325x: 'MI325X-256GB',
  mi355x: 'MI355X-288GB',
  tpuv5e: 'TPU-v5e',
  v5e: 'TPU-v5e',
  tpuv6e: 'TPU-v6e',
  v6e: 'TPU-v6e',
  trillium: 'TPU-v6e',
  t4: 'T4-16GB',
  teslat4: 'T4-16GB',
  v100: 'V100-SXM-32GB',
  v100sxm: 'V100-SXM-32GB',
});

/**
 * The specification of an accelerator by any usual name: `H100`, `h100_sxm`, `NVIDIA-H100-80GB-HBM3`, `nvidia l4`. Undefined when
 * the name is unknown or no source states the rates that a latency model needs; `knownGpus` lists what is known.
 */
export function findGpu(name: string): GpuSpec | undefined {
  const key = normalise(name);
  const id = aliases[key];
  const spec = gpuSpecs.find((gpu) => gpu.id === id || normalise(gpu.id) === key);
  return spec?.tflops16 === undefined ? undefined : spec;
}

/** Ids of all accelerators that `findGpu` and `findProfile` know, in alphabetical order. */
export function knownGpus(): readonly string[] {
  return gpuSpecs
    .filter((gpu) => gpu.tflops16 !== undefined)
    .map((gpu) => gpu.id)
    .sort();
}

/** Up to three ids of `knownGpus` closest to an unknown name, best first: for an error message. */
export function suggestGpus(name: string): readonly string[] {
  const key = normalise(name);
  return knownGpus()
    .map((id) => {
      const names = [normalise(id), ...Object.keys(aliases).filter((alias) => aliases[alias] === id)];
      return { id, distance: Math.min(...names.map((known) => editDistance(key, known))) };
    })
    .sort((x, y) => x.distance - y.distance || (x.id < y.id ? -1 : 1))
    .slice(0, 3)
    .map(({ id }) => id);
}

function normalise(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '')
    .replace(/^(nvidia|amd|google|intel)(?=.)/, '')
    .replace(/^(instinct|tesla)(?=.)/, '');
}

function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, i) => i);
  for (let i = 1; i <= left.length; i++) {
    const row = [i];
    for (let j = 1; j <= right.length; j++) {
      const substitute = (previous[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1);
      row.push(Math.min(substitute, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    previous = row;
  }
  return previous[right.length] ?? 0;
}
