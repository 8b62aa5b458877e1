import type { SignalDefinition, SignalInstance } from '@signalbox/plugin-api';

const READ_CHARS = 8192;

/** Signs of source code, each a line of its own kind. Two different ones make a text code; a fence is enough alone. */
const SIGNS: readonly RegExp[] = [
  /^\s*(?:import|from|#include|using|package|require)\b.*[\w>'";]$/m,
  /^\s*(?:export |public |private |protected |static |async |pub )*(?:def|class|function|fn|func|interface|struct|enum|impl|trait) \w+/m,
  /^\s*(?:const|let|var|val|int|float|double|string|bool|auto) \w+\s*(?::[^=\n]{1,40})?=/im,
  /^\s*(?:if|for|while|switch|elif|else if)\b.*[:{]\s*$/m,
  /[;{}]\s*$\n?^.*[;{}]\s*$/m,
  /^\s*(?:return|throw|raise|yield|print|console\.log)\b.*[);\w]$/m,
  /\b(?:SELECT\b[^\n]{1,200}\bFROM|INSERT INTO|UPDATE \w+ SET|CREATE TABLE)\b/i,
  /\w\([^()\n]{0,80}\)\s*(?:=>|->|\{)/,
  /^\s*at [\w.$<>]+ ?\([^)\n]*:\d+(?::\d+)?\)|^Traceback \(most recent call last\)|^\s*File "[^"\n]+", line \d+/m,
  /<\/\w{1,20}>/,
];

/** Whether the last user message holds source code or a stack trace: a code fence, or two different signs in its first 8,192 characters. */
export const code: SignalDefinition = {
  doc: 'Whether the last user message holds source code or a stack trace.',
  type: 'bool',
  known: 'maybe',
  setup(): SignalInstance {
    return {
      evaluate(request) {
        const text = request.lastUserMessage();
        return text === undefined ? undefined : holdsCode(text);
      },
    };
  },
};

/** Whether a text holds source code. */
export function holdsCode(text: string): boolean {
  const read = text.length > READ_CHARS ? text.slice(0, READ_CHARS) : text;
  if (/^\s*(?:```|~~~)/m.test(read)) return true;
  let signs = 0;
  for (const sign of SIGNS) {
    if (sign.test(read) && ++signs === 2) return true;
  }
  return false;
}
