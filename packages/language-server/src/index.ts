export { startLanguageServer } from './start-language-server.ts';
export type { ServerStreams } from './start-language-server.ts';
export type { Cancel, LanguageHost } from './language-host.ts';
