// perf: one pass over the characters and one set look-up per word, for every request whose policy reads `complexity`.

/** Characters of a text that are looked at, from its start; what lies behind counts for length only. */
export const READ_CHARS = 8192;

/** What each entry of the feature vector holds, in order. Counts go in as ln(1 + n). */
export const FEATURES: readonly string[] = Object.freeze([
  'words: ln(1 + words)',
  'sentences: ln(1 + sentences)',
  'lines: ln(1 + line breaks)',
  'word length: mean letters per word',
  'long words: share of words with nine letters or more',
  'questions: ln(1 + question marks)',
  'numbers: ln(1 + runs of digits)',
  'number share: runs of digits per word',
  'mathematics: ln(1 + signs such as = + ^ < ∑)',
  'brackets: ln(1 + opening brackets)',
  'code: 1 if there is a code fence, a back-tick, or a line that ends in ; or {',
  'quantities: ln(1 + words such as each, total, twice)',
  'logic: ln(1 + words such as if, not, unless, therefore)',
  'conditions: ln(1 + words such as must, exactly, without)',
  'analysis: ln(1 + sentences or clauses that open with a verb such as analyze, compare, prove)',
  'making: ln(1 + sentences or clauses that open with a verb such as write, draft, implement)',
  'look-up: 1 if it opens like a question for one fact (who, is, when …), is short and asks for no analysis or making',
  'choices: 1 if lines begin with A. or B) as in multiple choice',
  'names: share of words with a capital letter inside a sentence',
  'commas: commas per sentence, at most 6',
]);

const QUANTITY = 1;
const LOGIC = 2;
const CONDITION = 3;
const ANALYSIS = 4;
const MAKING = 5;
/** Words after which a clause still begins: please, can you, and. */
const LEAD = 6;

const lists: readonly (readonly [number, string])[] = [
  [
    QUANTITY,
    'many much total each every per half twice times double triple remaining left altogether sum difference average percent cost costs rate speed hours minutes days weeks',
  ],
  [
    LOGIC,
    'if then not all some none only either neither unless implies therefore suppose assume false true statement contradiction valid every whether otherwise',
  ],
  [
    CONDITION,
    'must should exactly without within least most except ensure avoid using include including step steps constraint constraints requirement requirements given',
  ],
  [
    ANALYSIS,
    'analyze analyse assess compare contrast critique debug defend derive design diagnose discuss estimate evaluate examine explain forecast interpret investigate justify optimise optimize propose prove reason recommend reconstruct review synthesise synthesize weigh',
  ],
  [
    MAKING,
    'build code compose craft create develop draft generate implement outline plan refactor rewrite summarise summarize write',
  ],
  [LEAD, 'please kindly can could would will you to me us help and then also now first next finally'],
];
const kinds: ReadonlyMap<string, number> = new Map(
  lists.flatMap(([kind, words]) => words.split(' ').map((word) => [word, kind] as const)),
);
const openers: ReadonlySet<string> = new Set(
  'who whom whose when where which what how is are was were do does did can has have name define list hi hello hey thanks thank good'.split(
    ' ',
  ),
);

/** The length of the longest listed word; longer words need no look-up. */
const LONGEST = 14;

/** Writes the features of `text` to `out`, which has `FEATURES.length` places. Plain arithmetic: the same everywhere. */
export function readFeatures(text: string, out: Float64Array): void {
  const end = Math.min(text.length, READ_CHARS);
  let words = 0;
  let letters = 0;
  let longWords = 0;
  let sentences = 0;
  let lines = 0;
  let questions = 0;
  let numbers = 0;
  let mathematics = 0;
  let brackets = 0;
  let code = 0;
  let commas = 0;
  let names = 0;
  let choices = 0;
  let opener = false;
  const counts = [0, 0, 0, 0, 0, 0, 0];
  let clauseStart = true;
  let sentenceStart = true;
  let at = 0;
  while (at < end) {
    const c = text.charCodeAt(at);
    if (isLetter(c)) {
      const start = at;
      at++;
      while (at < end && isLetter(text.charCodeAt(at))) at++;
      const length = at - start;
      words++;
      letters += length;
      if (length >= 9) longWords++;
      if (length >= 2 && length <= LONGEST) {
        const word = text.slice(start, at).toLowerCase();
        const kind = kinds.get(word);
        if (kind !== undefined && (clauseStart || kind < ANALYSIS)) counts[kind] = counts[kind]! + 1;
        if (words === 1) opener = openers.has(word);
        clauseStart = kind === LEAD;
      } else clauseStart = false;
      if (!sentenceStart && c >= 65 && c <= 90) names++;
      if (length === 1 && c >= 65 && c <= 69 && (start === 0 || text.charCodeAt(start - 1) === 10)) {
        const next = text.charCodeAt(at);
        if (next === 46 || next === 41) choices++;
      }
      sentenceStart = false;
      continue;
    }
    if (c >= 48 && c <= 57) {
      at++;
      while (at < end && isNumberPart(text.charCodeAt(at))) at++;
      numbers++;
      words++;
      sentenceStart = false;
      clauseStart = false;
      continue;
    }
    switch (c) {
      case 10: // line feed
        lines++;
        clauseStart = true;
        if (isCodeEnd(text.charCodeAt(at - 1))) code = 1;
        break;
      case 33: // !
      case 46: // .
      case 0x3002: // ideographic full stop
        sentences++;
        sentenceStart = true;
        clauseStart = true;
        break;
      case 63: // ?
      case 0xff1f: // full-width ?
        questions++;
        sentences++;
        sentenceStart = true;
        clauseStart = true;
        break;
      case 44: // ,
        commas++;
        clauseStart = true;
        break;
      case 96: // `
        code = 1;
        break;
      case 40: // (
      case 91: // [
      case 123: // {
        brackets++;
        break;
      default:
        if (isMathematics(c)) mathematics++;
    }
    at++;
  }
  const read = end === 0 ? 1 : end;
  out[0] = Math.log1p((words * text.length) / read);
  out[1] = Math.log1p(sentences);
  out[2] = Math.log1p(lines);
  out[3] = words === 0 ? 0 : letters / words;
  out[4] = words === 0 ? 0 : longWords / words;
  out[5] = Math.log1p(questions);
  out[6] = Math.log1p(numbers);
  out[7] = words === 0 ? 0 : numbers / words;
  out[8] = Math.log1p(mathematics);
  out[9] = Math.log1p(brackets);
  out[10] = code;
  out[11] = Math.log1p(counts[QUANTITY]!);
  out[12] = Math.log1p(counts[LOGIC]!);
  out[13] = Math.log1p(counts[CONDITION]!);
  out[14] = Math.log1p(counts[ANALYSIS]!);
  out[15] = Math.log1p(counts[MAKING]!);
  out[16] = opener && words <= 12 && !(counts[ANALYSIS]! > 0 || counts[MAKING]! > 0) ? 1 : 0;
  out[17] = choices >= 2 ? 1 : 0;
  out[18] = words === 0 ? 0 : names / words;
  out[19] = Math.min(6, commas / Math.max(1, sentences));
}

/** Latin letters with accents, and every letter above: scripts without capitals count as running text. */
function isLetter(c: number): boolean {
  return (
    (c >= 97 && c <= 122) ||
    (c >= 65 && c <= 90) ||
    (c >= 0xc0 && c !== 0xd7 && c !== 0xf7 && !(c >= 0x2000 && c <= 0x303f) && c < 0xff00)
  );
}

function isNumberPart(c: number): boolean {
  return (c >= 48 && c <= 57) || c === 46 || c === 44;
}

function isCodeEnd(c: number): boolean {
  return c === 59 || c === 123;
}

/** = + ^ < > * / % $ \ | ~ and the Unicode blocks of arrows and mathematical operators. */
function isMathematics(c: number): boolean {
  return (
    c === 61 ||
    c === 43 ||
    c === 94 ||
    c === 60 ||
    c === 62 ||
    c === 42 ||
    c === 47 ||
    c === 37 ||
    c === 36 ||
    c === 92 ||
    c === 124 ||
    c === 126 ||
    (c >= 0x2190 && c <= 0x22ff)
  );
}
