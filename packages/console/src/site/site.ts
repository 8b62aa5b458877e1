import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A file of the playground as it goes to browsers. */
export interface SiteFile {
  /** Relative to the folder that the page stands in: `index.html`. */
  readonly path: string;
  /** Media type with its charset. */
  readonly type: string;
  /** What its own response may do in the browser, for `content-security-policy`. */
  readonly contentSecurityPolicy: string;
  /** Its name changes with its content, so that it can be kept for ever. */
  readonly isImmutable: boolean;
  /** Strong, in quotes. */
  readonly etag: string;
  readonly bytes: Uint8Array;
}

/** What the build writes beside the files: everything of them but their bytes. */
export type SiteManifest = { readonly files: readonly Omit<SiteFile, 'bytes'>[] };

const FOLDER = new URL('../../dist/playground/', import.meta.url);

/** The built playground, read whole; undefined where it was not built. */
export function readSite(folder: URL = FOLDER): readonly SiteFile[] | undefined {
  let manifest: string;
  try {
    manifest = readFileSync(fileURLToPath(new URL('site.json', folder)), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  return (JSON.parse(manifest) as SiteManifest).files.map((file) => ({
    ...file,
    bytes: readFileSync(fileURLToPath(new URL(file.path, folder))),
  }));
}
