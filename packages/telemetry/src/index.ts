export { createDecisionHistory } from './decision-history.ts';
export type { DecisionHistory } from './decision-history.ts';
export { decisionText } from './decision-line.ts';
export type { AttemptRecord, DecisionRecord, DecisionSink, ShortlistRecord } from './decision-record.ts';
export { createDecisionLog, createLogger, createLogStream, LOG_LEVELS } from './logger.ts';
export type { LoggerOptions, LogLevel, LogStream } from './logger.ts';
export { createMetrics } from './metrics.ts';
export type { ConfigState, EndpointGauges, Metrics, MetricsSource, QueueGauges } from './metrics.ts';
