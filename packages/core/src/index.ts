export type {
  Attempt,
  AttemptFailure,
  EndpointTarget,
  Forward,
  ModelInfo,
  NextStep,
  Refusal,
  RequestEnd,
  RouteOutcome,
  Router,
  RouteRequest,
} from './router.ts';
