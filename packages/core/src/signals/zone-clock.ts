/** Wall time in one time zone. */
export interface ZoneTime {
  /** 0 is Monday. */
  readonly weekday: number;
  readonly hour: number;
  /** Minutes since midnight. */
  readonly minuteOfDay: number;
}

/** Wall time in a zone at an epoch time in milliseconds; remembers the minute that it last worked out. */
export type ZoneClock = (epochMs: number) => ZoneTime;

export const WEEKDAYS: readonly string[] = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];

const MINUTE_MS = 60_000;

/** The clock of an IANA time zone such as `Europe/Berlin`. Throws RangeError for one that the platform does not know. */
export function createZoneClock(zone: string): ZoneClock {
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    weekday: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  });
  let minute = Number.NaN;
  let time: ZoneTime = { weekday: 0, hour: 0, minuteOfDay: 0 };
  return (epochMs) => {
    const asked = Math.floor(epochMs / MINUTE_MS);
    if (asked === minute) return time;
    const parts: { [type: string]: string } = {};
    for (const part of format.formatToParts(epochMs)) parts[part.type] = part.value;
    const hour = Number(parts['hour']);
    time = {
      weekday: WEEKDAYS.indexOf((parts['weekday'] ?? '').toLowerCase()),
      hour,
      minuteOfDay: hour * 60 + Number(parts['minute']),
    };
    minute = asked;
    return time;
  };
}

/** Whether a wall time lies in a window. */
export type TimeWindow = (time: ZoneTime) => boolean;

const RANGE = /^(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})$/;

/**
 * A window such as `mon-fri 22:00-06:00`, `sat,sun` or `08:00-12:00`: days (all if left out), then a time of day (all if left out), start
 * included, end not. A window over midnight belongs to the day on which it starts. Undefined for a text of another form.
 */
export function parseTimeWindow(text: string): TimeWindow | undefined {
  const words = text.trim().toLowerCase().split(/\s+/);
  const days = new Set<number>();
  let from = 0;
  let to = 24 * 60;
  let timed = false;
  for (const word of words) {
    const range = RANGE.exec(word);
    if (range !== null) {
      if (timed) return undefined;
      timed = true;
      from = Number(range[1]) * 60 + Number(range[2]);
      to = Number(range[3]) * 60 + Number(range[4]);
      if (from >= 24 * 60 || to > 24 * 60) return undefined;
      continue;
    }
    for (const part of word.split(',')) {
      const ends = part.split('-').map((day) => WEEKDAYS.indexOf(day));
      const first = ends[0];
      const last = ends.at(-1);
      if (ends.length > 2 || first === undefined || last === undefined || first < 0 || last < 0) return undefined;
      for (let day = first; ; day = (day + 1) % 7) {
        days.add(day);
        if (day === last) break;
      }
    }
  }
  const onDay = (day: number): boolean => days.size === 0 || days.has(day);
  if (to > from) return (time) => onDay(time.weekday) && time.minuteOfDay >= from && time.minuteOfDay < to;
  return (time) =>
    (time.minuteOfDay >= from && onDay(time.weekday)) || (time.minuteOfDay < to && onDay((time.weekday + 6) % 7));
}
