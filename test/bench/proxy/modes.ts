/** The modes of the proxy bench: what each sends, and the figures that come of it. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Suite } from '../report.ts';
import { describeFaults, drive } from './drive.ts';
import type { Run } from './drive.ts';
import { residentBytes } from './processes.ts';

export const PROXY_MODES = ['json', 'sse', 'latency', 'memory'] as const;
export type ProxyMode = (typeof PROXY_MODES)[number];

/** Where CPU time is compared, mock and load do not sleep: a subject that leaves them idle would pay for waking them up. */
export const AWAKE_MODES: ReadonlySet<ProxyMode> = new Set<ProxyMode>(['json', 'sse']);

const OTHERS = { key: 'othersPercent', label: 'other load, %', digits: 0 };
const BASELINES = ['nginx', 'bare relay'];

export const SUITES: Readonly<Record<ProxyMode, Suite>> = {
  json: {
    name: 'proxy-json',
    title: 'Proxy, JSON replies: 64 connections, closed loop',
    figures: [
      { key: 'cpuUs', label: 'CPU µs / request', digits: 0 },
      { key: 'requestsPerSecond', label: 'requests/s', digits: 0 },
      { key: 'p50Us', label: 'p50 µs', digits: 0 },
      { key: 'p99Us', label: 'p99 µs', digits: 0 },
      { key: 'residentMiB', label: 'RSS MiB', digits: 0 },
      OTHERS,
    ],
    compared: 'cpuUs',
    baselines: [...BASELINES, 'reading relay'],
    goals: [
      { subject: 'signalbox', figure: 'cpuUs', atMost: 1.35, times: 'reading relay' },
      { subject: 'signalbox', figure: 'cpuUs', atMost: 1.35, times: 'bare relay' },
      { subject: 'signalbox', figure: 'cpuUs', atMost: 3.5, times: 'nginx + Lua' },
      { subject: 'signalbox', figure: 'cpuUs', atMost: 0.125, times: 'portkey' },
    ],
  },
  sse: {
    name: 'proxy-sse',
    title: 'Proxy, event streams: paced frames on independent streams',
    figures: [
      { key: 'cpuUs', label: 'CPU µs / frame', digits: 1 },
      { key: 'framesPerSecond', label: 'frames/s', digits: 0 },
      { key: 'delayP50Us', label: 'frame delay p50 µs', digits: 0 },
      { key: 'delayP99Us', label: 'p99 µs', digits: 0 },
      OTHERS,
    ],
    compared: 'cpuUs',
    baselines: BASELINES,
    goals: [
      { subject: 'signalbox', figure: 'cpuUs', atMost: 1.4, times: 'raw net' },
      { subject: 'signalbox', figure: 'cpuUs', atMost: 0.333, times: 'portkey' },
    ],
  },
  latency: {
    name: 'proxy-latency',
    title: 'Proxy, latency: one connection, then 500 requests/s at fixed instants',
    figures: [
      { key: 'singleP50Us', label: 'one connection p50 µs', digits: 0 },
      { key: 'singleP99Us', label: 'p99 µs', digits: 0 },
      { key: 'pacedP50Us', label: '500/s p50 µs', digits: 0 },
      { key: 'pacedP99Us', label: 'p99 µs', digits: 0 },
      OTHERS,
    ],
    compared: 'singleP50Us',
    baselines: BASELINES,
    goals: [{ subject: 'signalbox', figure: 'singleP50Us', atMost: 4, times: 'nginx' }],
  },
  memory: {
    name: 'proxy-memory',
    title: 'Proxy, resident memory of open streams',
    figures: [
      { key: 'perStreamKB', label: 'KB / open stream', digits: 1 },
      { key: 'idleMiB', label: 'idle MiB', digits: 0 },
      { key: 'openMiB', label: 'with streams MiB', digits: 0 },
    ],
    compared: 'perStreamKB',
    baselines: BASELINES,
    goals: [{ subject: 'signalbox', figure: 'perStreamKB', atMost: 28 }],
  },
};

/** 100 streams × 1 frame per 10 ms: as much as the slowest subject carries without a queue on one core. */
export const SSE = { connections: 100, events: 150, eventGapUs: 10_000 };

export interface ModeResult {
  readonly case: string;
  readonly figures: Record<string, number>;
  readonly invalid: string | undefined;
}

export const MODES: Readonly<Record<ProxyMode, (run: Run) => Promise<ModeResult>>> = {
  async json(run) {
    const { warmReplies, replies } = run.work;
    const measured = await drive(run, 'json', ['-c', 64, '-W', warmReplies, '-N', replies, '-t', 60]);
    const { result } = measured;
    const figures = {
      cpuUs: measured.subjectCpuUs / result.replies,
      requestsPerSecond: result.replies / result.seconds,
      p50Us: result.p50,
      p99Us: result.p99,
      residentMiB: residentBytes(run.subject.pid) / 2 ** 20,
      othersPercent: measured.othersPercent,
    };
    return { case: '4 KB', figures, invalid: describeFaults(measured) };
  },

  async sse(run) {
    const { warmReplies, warmFrames, frames } = run.work;
    await drive(run, 'json', ['-c', 64, '-N', warmReplies, '-t', 60]);
    const rampMs = (SSE.events * SSE.eventGapUs) / 1000;
    const flags = ['-s', '-c', SSE.connections, '-o', rampMs, '-w', warmFrames, '-n', frames, '-t', 60];
    const measured = await drive(run, 'sse', flags);
    const { result } = measured;
    const figures = {
      cpuUs: measured.subjectCpuUs / result.events,
      framesPerSecond: result.events / result.seconds,
      delayP50Us: result.eventDelayP50,
      delayP99Us: result.eventDelayP99,
      othersPercent: measured.othersPercent,
    };
    const offered = (SSE.connections * 1e6) / SSE.eventGapUs;
    return {
      case: `${SSE.connections} streams, ${offered / 1000}k frames/s offered`,
      figures,
      invalid: describeFaults(measured),
    };
  },

  async latency(run) {
    const { warmReplies, singles, pacedSeconds } = run.work;
    await drive(run, 'json', ['-c', 16, '-N', warmReplies, '-t', 60]);
    const single = await drive(run, 'json', ['-c', 1, '-W', singles / 10, '-N', singles, '-t', 30]);
    const paced = await drive(run, 'json', ['-c', 32, '-r', 500, '-W', 100, '-t', pacedSeconds]);
    const figures = {
      singleP50Us: single.result.p50,
      singleP99Us: single.result.p99,
      pacedP50Us: paced.result.p50,
      pacedP99Us: paced.result.p99,
      othersPercent: Math.max(single.othersPercent, paced.othersPercent),
    };
    return { case: '4 KB', figures, invalid: describeFaults(single) ?? describeFaults(paced) };
  },

  async memory(run) {
    const { warmReplies } = run.work;
    const { streams } = run;
    await drive(run, 'json', ['-c', 8, '-N', Math.ceil(warmReplies / 4), '-t', 60]);
    await delay(500);
    const idle = residentBytes(run.subject.pid);
    let open = 0;
    const measured = await drive(run, 'hold', ['-s', '-O', '-c', streams, '-o', streams, '-t', 3], async () => {
      for (let reading = 0; reading < 4; reading++) {
        await delay(500);
        open = Math.max(open, residentBytes(run.subject.pid));
      }
    });
    const figures = { perStreamKB: (open - idle) / 1024 / streams, idleMiB: idle / 2 ** 20, openMiB: open / 2 ** 20 };
    const short =
      measured.result.open < streams ? `only ${measured.result.open} of ${streams} streams were open` : undefined;
    return { case: `${streams} streams`, figures, invalid: describeFaults(measured) ?? short };
  },
};
