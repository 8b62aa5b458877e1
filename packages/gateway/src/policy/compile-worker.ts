import { parentPort, workerData } from 'node:worker_threads';
import { createOptionChecker } from '@signalbox/config';
import type { CompileJob } from './compile-job.ts';
import { runCompileJob } from './compile-job.ts';

/* The thread that `compileAside` starts: one job, one answer. */
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a message port, which has no origins
parentPort?.postMessage(runCompileJob(workerData as CompileJob, createOptionChecker()));
