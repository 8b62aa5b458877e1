export { applyOptionDefaults } from './json-schema.ts';
export type { CheckOptions, Json, OptionProblem, OptionSchema, OptionUnit } from './json-schema.ts';
export { definePlugin, PLUGIN_KINDS } from './define-plugin.ts';
export { isSignalboxError, SignalboxError } from './error.ts';
export type { ErrorSource, SignalboxErrorOptions } from './error.ts';
export { silentLogger } from './host.ts';
export type { Clock, LogFields, Logger, RandomSource } from './host.ts';
export { toManifest } from './manifest.ts';
export type { ManifestEntry, PluginManifest } from './manifest.ts';
export type { ParsedMessage, ParsedRequest, RequestKind } from './parsed-request.ts';
export { API_VERSION } from './plugin.ts';
export type {
  AdmissionArgument,
  AdmissionArguments,
  AdmissionDefinition,
  AdmissionInstance,
  AsyncSignalInstance,
  ByExpression,
  Closeable,
  FilterDefinition,
  FilterInstance,
  PickerDefinition,
  PickerInstance,
  Plugin,
  PluginKind,
  PropertyDefinition,
  PropertyInstance,
  Provided,
  Provides,
  ScorerDefinition,
  ScorerInstance,
  SetupContext,
  SignalDefinition,
  SignalInstance,
} from './plugin.ts';
export { clampScores, normaliseCosts, normaliseGains } from './scoring.ts';
export { isKnown, isNumericType } from './value.ts';
export type { Value, ValueType } from './value.ts';
export type { AttemptOutcome, CandidateView, NumberColumn, RequestView, ValueColumn } from './views.ts';
