import { createReplayer, explainRecord } from '@signalbox/core';
import type { Explanation, PolicyVersion } from '@signalbox/core';
import type { DecisionRecord } from '@signalbox/telemetry';

/** A recorded decision explained by the rules of the version that made it, where that is one of those held; else by its record alone. */
export function explainHeld(
  record: DecisionRecord,
  versions: readonly PolicyVersion[],
  environment: { readonly [name: string]: string | undefined } = process.env,
): Explanation {
  const version = versions.findLast(({ id }) => id === record.policy);
  if (version === undefined) return explainRecord(record);
  const { program, plugins } = version;
  const replayer = createReplayer({ program, plugins, environment: (name) => environment[name] });
  try {
    return replayer.explain(record);
  } finally {
    replayer.close();
  }
}
