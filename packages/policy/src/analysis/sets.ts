type Texts = ReadonlySet<string>;

export const union = (a: Texts, b: Texts): Texts => new Set([...a, ...b]);
export const difference = (a: Texts, b: Texts): Texts => new Set([...a].filter((member) => !b.has(member)));
export const intersection = (a: Texts, b: Texts): Texts => new Set([...a].filter((member) => b.has(member)));

export function isSubset(a: Texts, b: Texts): boolean {
  if (a.size > b.size) return false;
  for (const member of a) if (!b.has(member)) return false;
  return true;
}

export function haveNoneInCommon(a: Texts, b: Texts): boolean {
  const [small, large] = a.size <= b.size ? [a, b] : [b, a];
  for (const member of small) if (large.has(member)) return false;
  return true;
}
