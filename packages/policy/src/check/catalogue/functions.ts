const AGGREGATES = ['min', 'max', 'avg', 'sum', 'count', 'any', 'all'] as const;
export type Aggregate = (typeof AGGREGATES)[number];
const CONVERSIONS = ['number', 'duration', 'bool', 'list', 'lower'] as const;
export type Conversion = (typeof CONVERSIONS)[number];

export const isAggregate = (name: string): name is Aggregate => (AGGREGATES as readonly string[]).includes(name);
export const isConversion = (name: string): name is Conversion => (CONVERSIONS as readonly string[]).includes(name);

/** Functions that are part of the language itself. */
export const functionNames: ReadonlySet<string> = new Set<string>([...AGGREGATES, ...CONVERSIONS, 'clamp']);
