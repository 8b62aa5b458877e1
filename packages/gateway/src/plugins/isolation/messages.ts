import type { AdmissionArguments, AttemptOutcome, Json, LogFields, ParsedMessage, Value } from '@signalbox/plugin-api';
import type { PluginKind, Provided } from '@signalbox/plugin-api';

/** A definition without its functions. */
export type DefinitionData = Provided & { readonly [field: string]: unknown };

/** A plugin without its functions, as its process tells it after the import. */
export interface PluginData {
  readonly name: unknown;
  readonly apiVersion: unknown;
  readonly doc?: string;
  readonly options?: { readonly [name: string]: Json };
  readonly provides: { readonly [kind: string]: { readonly [name: string]: DefinitionData } } | undefined;
}

/** What a plugin sees of a request, by declared key. */
export interface RequestData {
  readonly seed: number;
  readonly values: { readonly [key: string]: Value };
}

/** The candidates: slots and columns, all by position. A column of numbers has NaN where unknown. */
export interface CandidatesData {
  readonly slots: Int32Array;
  readonly columns: { readonly [key: string]: Float64Array | readonly (Value | undefined)[] };
}

/** A text of a request: the index of the message that has it, else the text. */
export type TextData = number | string | undefined;

/** A parsed request with all that its methods give. */
export interface ParsedData {
  readonly fields: { readonly [field: string]: unknown };
  readonly metadata: { readonly [key: string]: string };
  readonly toolNames: readonly string[];
  readonly messages: readonly ParsedMessage[];
  readonly prompt: TextData;
  readonly systemPrompt: TextData;
  readonly firstUserMessage: TextData;
  readonly lastUserMessage: TextData;
}

/** One call of a method of an instance, by kind of method. */
export type CallData =
  | {
      readonly method: 'score' | 'fill' | 'filter';
      readonly request: RequestData;
      readonly candidates: CandidatesData;
    }
  | { readonly method: 'sample'; readonly candidates: CandidatesData; readonly draws: Float64Array }
  | {
      readonly method: 'pick';
      readonly candidates: CandidatesData;
      readonly scores: Float64Array;
      readonly k: number;
      readonly draws: Float64Array;
    }
  | {
      readonly method: 'holds';
      readonly request: RequestData;
      readonly candidates: CandidatesData;
      readonly args: AdmissionArguments;
    }
  | { readonly method: 'evaluate'; readonly request: RequestData; readonly parsed: ParsedData };

/** What an instance learns; nobody waits for it. */
export type NoteData =
  | { readonly method: 'picked' | 'forget'; readonly slot: number }
  | { readonly method: 'ended'; readonly slot: number; readonly outcome: AttemptOutcome };

/** How an instance is set up, and again after each restart of its process. */
export interface SetupData {
  readonly id: number;
  readonly kind: PluginKind;
  readonly name: string;
  readonly options: { readonly [name: string]: Json };
  readonly seed: number;
}

/** What a plugin's process is told. */
export type ToProcess =
  | { readonly type: 'import'; readonly seq: number; readonly entry: string }
  | { readonly type: 'setup'; readonly seq: number; readonly setup: SetupData }
  | { readonly type: 'call'; readonly seq: number; readonly id: number; readonly call: CallData }
  | { readonly type: 'note'; readonly id: number; readonly note: NoteData }
  | { readonly type: 'abort'; readonly call: number }
  | { readonly type: 'close'; readonly id: number }
  | { readonly type: 'ping'; readonly seq: number };

/** An answer to the message of the same `seq`. */
export type Reply = { readonly type: 'reply'; readonly seq: number } & (
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string }
);

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** A line of a plugin's log; without an id it is what the process wrote to its output, or what befell it. */
export interface LogLine {
  readonly type: 'log';
  readonly id?: number;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields?: LogFields;
}

export type FromProcess = Reply | LogLine;

/** What the gateway tells the thread that keeps the process. */
export type ToKeeper =
  | { readonly type: 'ask'; readonly sync: boolean; readonly message: Extract<ToProcess, { readonly seq: number }> }
  | { readonly type: 'tell'; readonly message: Exclude<ToProcess, { readonly seq: number }> }
  | { readonly type: 'fail'; readonly why: string }
  | { readonly type: 'end' };

/** Limits of an isolated plugin. */
export interface IsolationLimits {
  /** Milliseconds of one call. */
  readonly callMs: number;
  /** Milliseconds of an instance's first call, whose code is cold. */
  readonly firstCallMs: number;
  /** Milliseconds of the import, of one `setup`, and of silence while anything is asked. */
  readonly setupMs: number;
  /** Megabytes of the JavaScript heap. */
  readonly heapMb: number;
  /** Megabytes of the whole process; watched where the system tells it (Linux). */
  readonly residentMb: number;
  /** Milliseconds before the first restart; doubled for each failure after another. */
  readonly backOffMs: number;
  readonly mostBackOffMs: number;
}

/** What the keeper starts with. */
export interface KeeperData {
  readonly entry: string;
  readonly limits: IsolationLimits;
  /** [answers so far, state]. */
  readonly shared: Int32Array;
  readonly answers: import('node:worker_threads').MessagePort;
}

/** Places and states in `KeeperData.shared`. */
export const ANSWERS = 0;
export const STATE = 1;
export const AWAY = 0;
export const UP = 1;
