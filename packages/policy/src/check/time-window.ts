import { WEEKDAYS } from './catalogue/built-in-signals.ts';

const TIME = /^([01]?[0-9]|2[0-4]):([0-5][0-9])$/;

const pad = (text: string): string => text.padStart(2, '0');

/**
 * A window of time in one spelling: days as a list of names, a space, `HH:MM-HH:MM`. Days may be left out (every day), written as a
 * name, a span (`mon-fri`, `sat-mon`) or a list; the times may be left out (the whole day). What is wrong comes back as `problem`.
 */
export const normaliseWindow = (text: string): string | { readonly problem: string } => {
  const parts = text
    .trim()
    .toLowerCase()
    .split(/\s+/)
    .filter((part) => part !== '');
  if (parts.length === 0) return { problem: 'it is empty' };
  if (parts.length > 2) return { problem: 'it has more than days and times' };
  const days = new Set<string>();
  let times: string | undefined;
  for (const [index, part] of parts.entries()) {
    if (part.includes(':')) {
      if (index < parts.length - 1) return { problem: 'the times follow the days' };
      const [from, to, ...more] = part.split('-');
      if (from === undefined || to === undefined || more.length > 0)
        return { problem: `\`${part}\` is no span of times` };
      const start = TIME.exec(from);
      const end = TIME.exec(to);
      if (start === null || end === null) return { problem: `\`${start === null ? from : to}\` is no time of day` };
      const clock = [start, end].map((match) => `${pad(match[1] ?? '')}:${match[2] ?? ''}`);
      if (clock.some((time) => time > '24:00')) return { problem: 'the day ends at `24:00`' };
      if (clock[0] === clock[1]) return { problem: 'it starts when it ends' };
      times = clock.join('-');
      continue;
    }
    if (index > 0) return { problem: `\`${part}\` is no span of times` };
    for (const span of part.split(',')) {
      const [from, to, ...more] = span.split('-');
      const first = WEEKDAYS.indexOf(from ?? '');
      const last = to === undefined ? first : WEEKDAYS.indexOf(to);
      if (first < 0 || last < 0 || more.length > 0)
        return { problem: `\`${first < 0 ? (from ?? span) : (to ?? span)}\` is no day of the week` };
      for (let day = first; ; day = (day + 1) % 7) {
        days.add(WEEKDAYS[day] ?? '');
        if (day === last) break;
      }
    }
  }
  const ordered = days.size === 0 ? WEEKDAYS : WEEKDAYS.filter((day) => days.has(day));
  return `${ordered.join(',')} ${times ?? '00:00-24:00'}`;
};

/** Whether the runtime knows the zone by its IANA name. */
export const isTimeZone = (zone: string): boolean => {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: zone }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
};
