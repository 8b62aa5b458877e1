/** Who caused an error: the caller, this gateway, a plugin, or an endpoint. */
export type ErrorSource = 'client' | 'gateway' | 'plugin' | 'endpoint';

const brand = Symbol.for('signalbox.error');

export interface SignalboxErrorOptions {
  /** A stable code in lower_snake_case, listed in docs/reference/errors.md. */
  readonly code: string;
  readonly source: ErrorSource;
  readonly retryable?: boolean;
  /** The HTTP status that a client should see, where it has one. */
  readonly status?: number;
  /** Facts for the log. Never sent to clients. */
  readonly details?: { readonly [name: string]: unknown };
  readonly cause?: unknown;
}

/**
 * The error base of Signalbox. Its message says what was wrong, where, what was expected and what to do. `isSignalboxError` recognises
 * it by a registered symbol, so two copies of this package in one process agree.
 */
export class SignalboxError extends Error {
  readonly code: string;
  readonly source: ErrorSource;
  readonly retryable: boolean;
  readonly status: number | undefined;
  readonly details: { readonly [name: string]: unknown };

  constructor(message: string, options: SignalboxErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'SignalboxError';
    this.code = options.code;
    this.source = options.source;
    this.retryable = options.retryable ?? false;
    this.status = options.status;
    this.details = options.details ?? {};
    Object.defineProperty(this, brand, { value: true });
  }
}

/** Whether `value` is a SignalboxError, of this copy of the package or of another. */
export function isSignalboxError(value: unknown): value is SignalboxError {
  return typeof value === 'object' && value !== null && (value as { readonly [key: symbol]: unknown })[brand] === true;
}
