// perf: one pass over at most READ_CHARS characters; a set look-up per short word.

const READ_CHARS = 2048;

/** Frequent short words that few of the other languages share. A word of several languages counts for each. */
const STOP_WORDS: { readonly [language: string]: string } = {
  en: 'the of and is are was were with for that this what how you your from have which an it be by not or at i we my can',
  de: 'der die das und ist sind nicht mit von auf ein eine einen dem den des für wie was ich wir sie im zu auch als bei es bitte wird',
  fr: 'le la les des et est sont une du que qui dans pour pas sur avec ce cette il elle nous vous je au aux plus comment un en de quelle',
  es: 'el la los las y es son una que en por para con no del se lo como más su al esta este qué un de cómo cuál',
  it: 'il lo la gli le e è sono una che di per con non del della nel si come più questo questa un in i quale',
  pt: 'o a os as e é são uma que em por para com não do da dos das se como mais um no na isso você qual',
  nl: 'de het een en is zijn niet met van op voor dat die wat hoe ik wij je aan ook als bij naar door te er in',
  sv: 'och är det att en ett som på för med inte av den till jag du vi har hur vad om från så i kan',
  pl: 'i w na jest nie się z że do to jak co czy dla przez od po jego są o oraz który ten',
  tr: 've bir bu için ile ne nasıl değil mi da de çok olarak daha gibi en ben sen var kadar nedir mı',
};
const languages: readonly string[] = Object.keys(STOP_WORDS);
const byWord: ReadonlyMap<string, readonly number[]> = languages.reduce((map, language, index) => {
  for (const word of (STOP_WORDS[language] ?? '').split(' ')) map.set(word, [...(map.get(word) ?? []), index]);
  return map;
}, new Map<string, readonly number[]>());

/** First and last code unit of a script's block, and the language to take it for. Scripts with several languages are settled below. */
const SCRIPTS: readonly (readonly [number, number, string])[] = [
  [0x0370, 0x03ff, 'el'],
  [0x0400, 0x04ff, 'ru'],
  [0x0590, 0x05ff, 'he'],
  [0x0600, 0x06ff, 'ar'],
  [0x0900, 0x097f, 'hi'],
  [0x0e00, 0x0e7f, 'th'],
  [0x3040, 0x30ff, 'ja'],
  [0x4e00, 0x9fff, 'zh'],
  [0xac00, 0xd7af, 'ko'],
];

/**
 * The language of a text as a two-letter code: by script where the script tells it, by frequent words for ten languages in Latin letters;
 * undefined where neither says (too short, mixed, or a language outside the list). Japanese is Han with kana, Ukrainian and Persian are
 * told by letters that Russian and Arabic lack.
 */
export function languageOf(text: string): string | undefined {
  const end = Math.min(text.length, READ_CHARS);
  const scripts = new Int32Array(SCRIPTS.length);
  let latin = 0;
  let ukrainian = 0;
  let persian = 0;
  for (let at = 0; at < end; at++) {
    const c = text.charCodeAt(at);
    if ((c >= 0x61 && c <= 0x7a) || (c >= 0x41 && c <= 0x5a) || (c >= 0xc0 && c <= 0x24f)) {
      latin++;
      continue;
    }
    if (c < 0x370) continue;
    if (c === 0x456 || c === 0x457 || c === 0x454 || c === 0x491) ukrainian++;
    if (c === 0x67e || c === 0x686 || c === 0x698 || c === 0x6af) persian++;
    for (let s = 0; s < SCRIPTS.length; s++) {
      const [low, high] = SCRIPTS[s]!;
      if (c >= low && c <= high) {
        scripts[s] = scripts[s]! + 1;
        break;
      }
    }
  }
  let most = 0;
  let other = 0;
  for (let s = 0; s < scripts.length; s++) {
    other += scripts[s]!;
    if (scripts[s]! > scripts[most]!) most = s;
  }
  // One Han or Hangul sign says about as much as two or three letters.
  if (2 * other > latin) {
    const language = SCRIPTS[most]![2];
    if (language === 'zh' && scripts[6]! > 0.1 * scripts[7]!) return 'ja';
    if (language === 'ru' && ukrainian > 0) return 'uk';
    if (language === 'ar' && persian > 0) return 'fa';
    return language;
  }
  return latin === 0 ? undefined : byStopWords(text.slice(0, end));
}

function byStopWords(text: string): string | undefined {
  const found = new Int32Array(languages.length);
  let words = 0;
  for (const word of text.toLowerCase().split(/[^\p{L}]+/u)) {
    if (word === '') continue;
    words++;
    for (const language of byWord.get(word) ?? []) found[language] = found[language]! + 1;
  }
  let best = 0;
  let second = -1;
  for (let language = 1; language < found.length; language++) {
    if (found[language]! > found[best]!) {
      second = best;
      best = language;
    } else if (second < 0 || found[language]! > found[second]!) second = language;
  }
  // A single frequent word in a long text is chance, and a tie says nothing.
  const most = found[best] ?? 0;
  if (most === 0 || most < 0.08 * words || most === found[second]) return undefined;
  return languages[best];
}
