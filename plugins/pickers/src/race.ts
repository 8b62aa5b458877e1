// perf: called once for every decision of a rule with a random picker.

/** Working memory of a race, grown as needed and reused. */
export interface Race {
  /** Keys by position; the highest come first. Valid until the next `begin`. */
  readonly keys: Float64Array;
}

/** Memory for races, which `begin` hands out. One race at a time. */
export interface RaceTrack {
  begin(length: number): Race;
}

/** An empty track. */
export function createRaceTrack(): RaceTrack {
  let race: Race = { keys: new Float64Array(64) };
  return {
    begin(length) {
      if (race.keys.length < length) race = { keys: new Float64Array(2 * length) };
      return race;
    },
  };
}

/**
 * Writes the positions of the k highest keys among the first `length` to `out`, highest first, ties by the lower position. Keys are
 * overwritten. Returns how many were written.
 */
export function takeHighest(race: Race, length: number, k: number, out: Int32Array): number {
  const { keys } = race;
  const wanted = Math.min(k, length);
  for (let place = 0; place < wanted; place++) {
    let highest = 0;
    for (let i = 1; i < length; i++) {
      // A taken position holds NaN, which is no more than anything.
      if (keys[i]! > keys[highest]! || keys[highest]! !== keys[highest]!) highest = i;
    }
    out[place] = highest;
    keys[highest] = NaN;
  }
  return wanted;
}
