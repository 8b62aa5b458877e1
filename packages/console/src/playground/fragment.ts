import { readState } from './state.ts';
import type { PlaygroundState } from './state.ts';

/** Links of this version carry the state as JSON, deflated (RFC 1951), in base64url (RFC 4648) behind `v1.`. */
const VERSION = 'v1';
/** Characters of a fragment that is read at all, and bytes that it may unfold to. */
const MOST_CHARACTERS = 2 ** 20;
const MOST_BYTES = 4 * 2 ** 20;

export type ReadFragment =
  | { readonly kind: 'none' }
  | { readonly kind: 'state'; readonly state: PlaygroundState }
  /** It is a link of ours or none, and cannot be opened. */
  | { readonly kind: 'unreadable'; readonly message: string };

/** The fragment of a link that holds the state, without `#`. */
export async function writeFragment(state: PlaygroundState): Promise<string> {
  const deflated = await pump(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream('deflate-raw'));
  return `${VERSION}.${toBase64Url(deflated)}`;
}

/** What a page's fragment holds. Never throws: rubbish is said to be rubbish. */
export async function readFragment(fragment: string): Promise<ReadFragment> {
  const text = fragment.startsWith('#') ? fragment.slice(1) : fragment;
  if (text === '') return { kind: 'none' };
  if (text.length > MOST_CHARACTERS) return unreadable('it is longer than any link that the playground makes');
  const [, version, data] = /^(v\d+)\.([\w-]*)$/.exec(text) ?? [];
  if (version === undefined || data === undefined)
    return unreadable('it is not one that the playground made, or part of it was lost when it was copied');
  if (version !== VERSION)
    return unreadable(`it was made by another version of the playground (${version}; this one reads ${VERSION})`);
  try {
    const inflated = await pump(fromBase64Url(data), new DecompressionStream('deflate-raw'), MOST_BYTES);
    const state = readState(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(inflated)));
    if (state !== undefined) return { kind: 'state', state };
  } catch {
    // Whatever is wrong with it, its reader can do only one thing.
  }
  return unreadable('it is damaged: part of it was lost or changed when it was copied');
}

function unreadable(reason: string): ReadFragment {
  return {
    kind: 'unreadable',
    message: `The link could not be opened: ${reason}. Ask for it again; what you had is untouched.`,
  };
}

/** All bytes behind a transformation. Throws a RangeError past `most`. */
async function pump(
  bytes: Uint8Array<ArrayBuffer>,
  through: CompressionStream | DecompressionStream,
  most: number = Number.POSITIVE_INFINITY,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of new Blob([bytes]).stream().pipeThrough(through)) {
    length += chunk.byteLength;
    if (length > most) throw new RangeError(`more than ${most} bytes`);
    chunks.push(chunk);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

function toBase64Url(bytes: Uint8Array): string {
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (character) => character.charCodeAt(0));
}
