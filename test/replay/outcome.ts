/** What became of one request. Milliseconds of the trace's clock, counted from the instant at which it was due. */
export interface Outcome {
  readonly index: number;
  readonly ttftMs: number;
  readonly latencyMs: number;
}
