import type { ValueType } from '@signalbox/plugin-api';

/** A type as the language writes it: `duration`, `list[string]`; an enumeration by its members. */
export const typeText = (type: ValueType): string => {
  if (typeof type === 'string') return type;
  if ('list' in type) return `list[${typeText(type.list)}]`;
  return type.enum.map((member) => JSON.stringify(member)).join(' | ');
};

/** How a literal of the type is written, for people; undefined where the type says it all. */
export const unitText = (type: ValueType): string | undefined => {
  switch (type) {
    case 'duration':
      return 'written as `500ms`, `2s`, `5m`, `1h`';
    case 'percent':
      return 'written as `90%`';
    case 'count':
      return 'a number, written as `500`, `32k`, `8M`, `70B`';
    case 'bytes':
      return 'written as `512KB`, `20MiB`';
    case 'rate':
      return 'written as `60/min`, `10/s`';
    case 'money':
      return 'written as `$0.5`';
    default:
      return undefined;
  }
};
