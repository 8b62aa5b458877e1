import { fileURLToPath, pathToFileURL } from 'node:url';

/**
 * The path under which the compiler knows a document. Files have their own, with `/` between folders; a document that is no file (an unsaved
 * one) has one below a folder that no file is in, so that its imports find nothing.
 */
export const pathOfUri = (uri: string): string => {
  if (uri.startsWith('file:')) {
    try {
      const path = fileURLToPath(uri).replaceAll('\\', '/');
      return path.startsWith('/') ? path : `/${path}`;
    } catch {
      // A file of another host: it is told apart by its address, and not read.
    }
  }
  return `/${encodeURIComponent(uri)}/${encodeURIComponent(uri.split('/').pop() ?? '')}`;
};

export const uriOfPath = (path: string): string => {
  const [, first = ''] = path.split('/');
  const decoded = /^[a-z][a-z0-9+.-]*%3A/i.test(first) ? decodeURIComponent(first) : undefined;
  if (decoded !== undefined) return decoded;
  return pathToFileURL(/^\/[A-Za-z]:\//.test(path) ? path.slice(1) : path).href;
};

/** The folder that holds a path. */
export const folderOf = (path: string): string => path.slice(0, Math.max(1, path.lastIndexOf('/')));
