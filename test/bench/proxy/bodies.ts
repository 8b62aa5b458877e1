/** Chat requests that the mock understands: `max_tokens` is the number of events, `seed` the µs between them. */

const WORDS =
  'the gateway routes every request to one of several model servers by policy, load and cached prefix; "quoted" text\nand new lines occur, as do names like Zoë and 北京 now and then '.split(
    ' ',
  );

/** The model that every body asks for and every subject routes. */
const MODEL = 'llama-3.1-8b';

export interface BodyOptions {
  /** Size wanted, in bytes; met within a few per cent. */
  readonly bytes: number;
  readonly stream?: boolean;
  readonly events?: number;
  readonly eventGapUs?: number;
}

/** The text of one request: a system prompt and as many turns as make up the size, the same on every call. */
export function chatBody({ bytes, stream = false, events = 150, eventGapUs = 0 }: BodyOptions): string {
  let state = 7;
  const text = (length: number): string => {
    let words = '';
    while (words.length < length) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7f_ff_ff_ff;
      words += `${WORDS[state % WORDS.length]} `;
    }
    return words;
  };
  const messages = [{ role: 'system', content: 'You are a helpful assistant.' }];
  const body = { model: MODEL, max_tokens: events, seed: eventGapUs, stream, temperature: 0.7, top_p: 0.95, messages };
  const frame = JSON.stringify(body).length;
  const turns = Math.max(1, Math.min(20, Math.round(bytes / 700)));
  for (let turn = 0; turn < turns; turn++) {
    messages.push({
      role: turn % 2 === 1 ? 'assistant' : 'user',
      content: text(Math.max(1, (bytes - frame) / turns - 45)),
    });
  }
  return JSON.stringify(body);
}
