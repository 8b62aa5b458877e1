export { createDecisionHistory } from './decision-history.ts';
export type { DecisionHistory } from './decision-history.ts';
export { decisionLogFields, decisionText } from './decision-line.ts';
export type { AttemptRecord, DecisionRecord, DecisionSink, ShortlistRecord } from './decision-record.ts';
export { createLogger, LOG_LEVELS } from './logger.ts';
export type { LoggerOptions, LogLevel } from './logger.ts';
export { createMetrics } from './metrics.ts';
export type { ConfigState, EndpointGauges, Metrics, MetricsSource, QueueGauges } from './metrics.ts';
