/**
 * The simulated tokeniser: no vocabulary, one token for each four UTF-16 units of a text, the rest of a text being a token of its own.
 * Its id is a hash of those units, so equal text at equal places gives equal ids everywhere. A generated token's text is exactly four
 * units long, so an answer sent back in a later prompt gives the very ids it was generated with, and its KV blocks are found again.
 */
const unitsPerToken = 4;

/** Ids of the tokens of a text, appended to `into`. */
export function tokenizeText(text: string, into: number[] = []): number[] {
  for (let at = 0; at < text.length; at += unitsPerToken) into.push(tokenIdOf(text.slice(at, at + unitsPerToken)));
  return into;
}

/** The id of one token's text: 31 bits, never negative. */
export function tokenIdOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) & 0x7fffffff;
}

/** One message of a chat, already reduced to text. */
export interface ChatTurn {
  readonly role: string;
  readonly text: string;
  /** Images in it: 256 tokens each, by their address. */
  readonly images?: readonly string[];
}

/** Ids of a chat prompt: a token for each role, the text, a token for the end of the turn, and the role token that opens the answer. */
export function tokenizeChat(turns: readonly ChatTurn[], tools: string): number[] {
  const ids: number[] = [];
  if (tools !== '') tokenizeText(tools, ids);
  for (const { role, text, images = [] } of turns) {
    ids.push(tokenIdOf(`<|${role}|>`));
    tokenizeText(text, ids);
    for (const image of images) {
      const id = tokenIdOf(image);
      for (let i = 0; i < 256; i++) ids.push((id + Math.imul(i, 0x9e3779b1)) & 0x7fffffff);
    }
    ids.push(endOfTurn);
  }
  ids.push(tokenIdOf('<|assistant|>'));
  return ids;
}

const endOfTurn: number = tokenIdOf('<|end|>');
