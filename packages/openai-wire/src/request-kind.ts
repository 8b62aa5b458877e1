import type { RequestKind } from '@signalbox/plugin-api';

/** The kind of request that `path` (without query) takes. */
export function kindOf(path: string): RequestKind {
  switch (path) {
    case '/v1/chat/completions':
      return 'chat';
    case '/v1/completions':
      return 'completion';
    case '/v1/embeddings':
      return 'embedding';
    default:
      return 'other';
  }
}
