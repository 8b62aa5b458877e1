import type { GatewayDefinition } from '@signalbox/policy';

/** What a gateway settles when it starts, by the keys of `define gateway`. TLS files are read again; whether TLS is spoken is not. */
const START_ONLY: { readonly [key: string]: (definition: GatewayDefinition) => unknown } = {
  listen: ({ listen }) => listen,
  admin: ({ admin }) => admin,
  body_limit: ({ bodyLimit }) => bodyLimit,
  tls: ({ tls }) => tls !== undefined,
  audit: ({ audit }) => audit,
};

/** A note for each key in which a reloaded definition differs from the one that was started with, and which is without effect until then. */
export function startOnlyNotes(started: GatewayDefinition, reloaded: GatewayDefinition): string {
  return Object.entries(START_ONLY)
    .filter(([, read]) => JSON.stringify(read(started)) !== JSON.stringify(read(reloaded)))
    .map(([key]) => `note: \`${key}\` in define gateway was changed, which takes effect at the next start\n`)
    .join('');
}
