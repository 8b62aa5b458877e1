/** Question marks of a text, full-width ones among them. */
export function countQuestions(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const c = text.charCodeAt(at);
    if (c === 0x3f || c === 0xff1f) count++;
  }
  return count;
}

/** Words of a text: runs of anything but white space. */
export function countWords(text: string): number {
  let count = 0;
  let inside = false;
  for (let at = 0; at < text.length; at++) {
    const c = text.charCodeAt(at);
    const space = c === 0x20 || (c >= 0x09 && c <= 0x0d) || c === 0xa0 || c === 0x3000 || c === 0x2028 || c === 0x2029;
    if (!space && !inside) count++;
    inside = !space;
  }
  return count;
}
