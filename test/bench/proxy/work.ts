/** How much is sent in a round. */
export interface Work {
  /** Replies before measuring; Node still gains speed after tens of thousands. */
  readonly warmReplies: number;
  readonly replies: number;
  readonly warmFrames: number;
  readonly frames: number;
  /** Replies on one connection. */
  readonly singles: number;
  readonly pacedSeconds: number;
}

const FULL: Work = {
  warmReplies: 50_000,
  replies: 40_000,
  warmFrames: 60_000,
  frames: 60_000,
  singles: 2000,
  pacedSeconds: 4,
};
const SMOKE: Work = { warmReplies: 300, replies: 500, warmFrames: 2000, frames: 3000, singles: 100, pacedSeconds: 1 };

/** Enough for a figure, or just enough to show that it runs; `effort` is a share of it, above 0 and at most 1. */
export function workOf(smoke: boolean, effort: number): Work {
  const work = smoke ? SMOKE : FULL;
  const share = (count: number): number => Math.ceil(count * effort);
  return {
    warmReplies: share(work.warmReplies),
    replies: share(work.replies),
    warmFrames: share(work.warmFrames),
    frames: share(work.frames),
    singles: share(work.singles),
    pacedSeconds: work.pacedSeconds,
  };
}
