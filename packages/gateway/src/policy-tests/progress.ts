/** How often a long run says how far it is, in milliseconds; short ones say nothing. */
const EVERY_MS = 2000;

/** Tells how far a run is, every two seconds. To be called with each result. */
export function createProgress(write: (text: string) => void, now: () => number): (done: number, of: number) => void {
  let toldMs = now();
  return (done, of) => {
    const nowMs = now();
    if (nowMs - toldMs < EVERY_MS || done === of) return;
    toldMs = nowMs;
    write(`${done} of ${of} done\n`);
  };
}
