/** What a list of keys says of one of them. */
export interface KeyEntry {
  /** SHA-256 of the key: 64 lower-case hexadecimal digits. */
  readonly hash: string;
  readonly tenant: string | undefined;
  /** For `api_key.name`; the first eight digits of the hash unless written. */
  readonly name: string;
  /** Where it stands, for messages: `line 3`. */
  readonly place: string;
}

export interface KeyList {
  readonly entries: readonly KeyEntry[];
  /** What is wrong, a sentence each. They never repeat what stands in the list: it may be a key. */
  readonly faults: readonly string[];
}

const HASH = /^(?:sha256:)?([0-9a-f]{64})$/i;
const WORD = /\s*(?:(tenant|name)=(?:"([^"]*)"|([^\s"]+))(?=\s|$)|(\S+))/gy;
const PRINTABLE = /^[^\p{Cc}]{1,128}$/u;

/** The name that a key has if none is written. */
export function nameOfHash(hash: string): string {
  return hash.slice(0, 8);
}

/**
 * Reads a list of API keys: one to a line (in one line, separated by `;`), as `HASH [tenant=NAME] [name=NAME]`, names with spaces in double
 * quotes. HASH is the SHA-256 of the key in hexadecimal, with or without `sha256:` before it. `#` begins a comment.
 */
export function parseKeyList(text: string): KeyList {
  const entries: KeyEntry[] = [];
  const faults: string[] = [];
  text
    .replace(/^\uFEFF/, '')
    .split(/\r\n|[\r\n;]/)
    .forEach((line, at) => {
      const written = line.replace(/(?:^|\s)#.*$/, '').trim();
      if (written === '') return;
      const entry = parseEntry(written, `line ${at + 1}`);
      if (typeof entry === 'string') faults.push(entry);
      else entries.push(entry);
    });
  return { entries, faults };
}

function parseEntry(written: string, place: string): KeyEntry | string {
  const [first = ''] = written.split(/\s/, 1);
  const hash = HASH.exec(first)?.[1]?.toLowerCase();
  if (hash === undefined) {
    return `${place} does not begin with the SHA-256 hash of a key, 64 hexadecimal digits; if a key itself stands there, put in its place what \`signalbox key hash\` prints for it`;
  }
  let tenant: string | undefined;
  let name: string | undefined;
  for (const [, field, quoted, bare, other] of written.slice(first.length).matchAll(WORD)) {
    const value = quoted ?? bare ?? '';
    if (other !== undefined) return `${place} has something behind the hash that is neither tenant=NAME nor name=NAME`;
    if (!PRINTABLE.test(value))
      return `the ${field} on ${place} is empty, longer than 128 characters, or has characters that cannot be shown`;
    if ((field === 'tenant' ? tenant : name) !== undefined) return `${place} names its ${field} twice`;
    if (field === 'tenant') tenant = value;
    else name = value;
  }
  return { hash, tenant, name: name ?? nameOfHash(hash), place };
}

/** A line of a key list, as `parseKeyList` reads it. */
export function keyLine(hash: string, tenant: string | undefined, name: string | undefined): string {
  const field = (key: string, value: string | undefined): string =>
    value === undefined ? '' : ` ${key}=${/^[^\s"#;]+$/.test(value) ? value : `"${value}"`}`;
  return `sha256:${hash}${field('tenant', tenant)}${field('name', name)}`;
}
