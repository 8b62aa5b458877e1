/**
 * The UTF-8 bytes of a string, in a fresh array. A lone surrogate, which UTF-8 has no form for, is written as the three
 * bytes its code would have (WTF-8), so that different strings never give the same bytes.
 */
export function toUtf8(text: string): Uint8Array {
  const length = text.length;
  const bytes = new Uint8Array(length);
  for (let index = 0; index < length; index++) {
    const code = text.charCodeAt(index);
    if (code > 0x7f) return encodeWide(text);
    bytes[index] = code;
  }
  return bytes;
}

function encodeWide(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length * 3);
  let at = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.codePointAt(index) ?? 0;
    if (code < 0x80) {
      bytes[at++] = code;
    } else if (code < 0x800) {
      bytes[at++] = 0xc0 | (code >> 6);
      bytes[at++] = 0x80 | (code & 0x3f);
    } else if (code < 0x10000) {
      bytes[at++] = 0xe0 | (code >> 12);
      bytes[at++] = 0x80 | ((code >> 6) & 0x3f);
      bytes[at++] = 0x80 | (code & 0x3f);
    } else {
      bytes[at++] = 0xf0 | (code >> 18);
      bytes[at++] = 0x80 | ((code >> 12) & 0x3f);
      bytes[at++] = 0x80 | ((code >> 6) & 0x3f);
      bytes[at++] = 0x80 | (code & 0x3f);
      index++;
    }
  }
  return bytes.subarray(0, at);
}
