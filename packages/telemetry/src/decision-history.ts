import type { DecisionRecord } from './decision-record.ts';

/** The last decisions of the process, oldest overwritten first. */
export interface DecisionHistory {
  add(record: DecisionRecord): void;
  /** Newest first, at most `limit`. */
  recent(limit: number): DecisionRecord[];
  /** The newest record with this request id (ids come from clients and may repeat). */
  find(requestId: string): DecisionRecord | undefined;
}

export function createDecisionHistory(capacity: number): DecisionHistory {
  const ring: (DecisionRecord | undefined)[] = Array.from({ length: capacity }, () => undefined);
  let next = 0;
  const at = (age: number): DecisionRecord | undefined => ring[(((next - 1 - age) % capacity) + capacity) % capacity];
  return {
    add(record) {
      ring[next] = record;
      next = (next + 1) % capacity;
    },
    recent(limit) {
      const found: DecisionRecord[] = [];
      for (let age = 0; age < Math.min(limit, capacity); age++) {
        const record = at(age);
        if (record === undefined) break;
        found.push(record);
      }
      return found;
    },
    find(requestId) {
      for (let age = 0; age < capacity; age++) {
        const record = at(age);
        if (record === undefined) return undefined;
        if (record.requestId === requestId) return record;
      }
      return undefined;
    },
  };
}
