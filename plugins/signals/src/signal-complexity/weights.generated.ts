// Written by scripts/train-complexity.ts from data/; do not edit.

/** Weights of the features, in the order of `FEATURES`. */
export const WEIGHTS: readonly number[] = Object.freeze([
  0.26716, // words: ln(1 + words)
  0.04356, // sentences: ln(1 + sentences)
  -0.09676, // lines: ln(1 + line breaks)
  -0.05797, // word length: mean letters per word
  -1.36285, // long words: share of words with nine letters or more
  0.20065, // questions: ln(1 + question marks)
  0.14889, // numbers: ln(1 + runs of digits)
  -0.20497, // number share: runs of digits per word
  0.24157, // mathematics: ln(1 + signs such as = + ^ < ∑)
  -0.05030, // brackets: ln(1 + opening brackets)
  0.11747, // code: 1 if there is a code fence, a back-tick, or a line that ends in ; or {
  0.12713, // quantities: ln(1 + words such as each, total, twice)
  0.25163, // logic: ln(1 + words such as if, not, unless, therefore)
  0.05275, // conditions: ln(1 + words such as must, exactly, without)
  3.27330, // analysis: ln(1 + sentences or clauses that open with a verb such as analyze, compare, prove)
  1.24209, // making: ln(1 + sentences or clauses that open with a verb such as write, draft, implement)
  -1.71982, // look-up: 1 if it opens like a question for one fact (who, is, when …), is short and asks for no analysis or making
  -0.25306, // choices: 1 if lines begin with A. or B) as in multiple choice
  0.10398, // names: share of words with a capital letter inside a sentence
  0.46000, // commas: commas per sentence, at most 6
]);

export const BIAS: number = -1.50215;
