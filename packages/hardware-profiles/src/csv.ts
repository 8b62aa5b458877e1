/**
 * The records of a CSV text (RFC 4180 quoting, a header line, LF or CRLF), in order: one object per line, keyed by header.
 * A field missing at the end of a line is the empty string.
 */
export function parseCsv(text: string): readonly Readonly<Record<string, string>>[] {
  const lines = splitRecords(text);
  const header = lines[0] ?? [];
  return lines.slice(1).map((fields) => Object.fromEntries(header.map((name, i) => [name, fields[i] ?? ''])));
}

function splitRecords(text: string): string[][] {
  const records: string[][] = [];
  let fields: string[] = [];
  let field = '';
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const ch = text[i];
    if (quoted) {
      if (ch !== '"') field += ch;
      else if (text[i + 1] === '"') {
        field += '"';
        i++;
      } else quoted = false;
    } else if (ch === '"') quoted = true;
    else if (ch === ',') {
      fields.push(field);
      field = '';
    } else if (ch === '\n') {
      fields.push(field);
      records.push(fields);
      fields = [];
      field = '';
    } else if (ch !== '\r') field += ch;
  }
  if (field !== '' || fields.length > 0) records.push([...fields, field]);
  return records;
}
