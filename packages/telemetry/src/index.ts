export type { AttemptRecord, DecisionRecord, DecisionSink, ShortlistRecord } from './decision-record.ts';
