import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { SignalboxError } from '@signalbox/plugin-api';
import type { GatewayDefinition } from '@signalbox/policy';

/** PEM texts of a listener's certificate chain and its key. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

/**
 * The certificate and key that a gateway names, paths from `folder`; undefined if it names none. Throws a SignalboxError for a file that
 * cannot be read, is no PEM, and for a key that is not the certificate's.
 */
export function readTlsFiles({ tls }: GatewayDefinition, folder: string): TlsFiles | undefined {
  if (tls === undefined) return undefined;
  const files = { cert: textOf(tls.cert, folder), key: textOf(tls.key, folder) };
  try {
    createSecureContext(files);
  } catch (cause) {
    throw new SignalboxError(
      `the TLS files ${tls.cert} and ${tls.key} do not make a listener: ${(cause as Error).message}; a certificate chain and its key are expected, both in PEM`,
      { code: 'tls_invalid', source: 'gateway', cause },
    );
  }
  return files;
}

/** The files of a gateway's TLS, to be watched. */
export function tlsPaths({ tls }: GatewayDefinition, folder: string): readonly string[] {
  return tls === undefined ? [] : [resolve(folder, tls.cert), resolve(folder, tls.key)];
}

function textOf(path: string, folder: string): string {
  try {
    return readFileSync(resolve(folder, path), 'utf8');
  } catch (cause) {
    throw new SignalboxError(`the TLS file ${path} cannot be read: ${(cause as Error).message}`, {
      code: 'tls_unreadable',
      source: 'gateway',
      cause,
    });
  }
}
