/** Endpoints in a process of their own: `upstream-process.ts TIER …` starts one for each name, and sends their addresses to its parent. */
import { startSeededUpstream } from './seeded-upstream.ts';

const upstreams = await Promise.all(process.argv.slice(2).map(startSeededUpstream));
process.send?.(upstreams.map(({ url }) => url));
process.once('disconnect', () => process.exit());
