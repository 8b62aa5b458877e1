/** Why a request body was refused, in the terms of the error envelope. */
export interface WireError {
  readonly kind: 'error';
  /** 400, 413 or 415. */
  readonly status: number;
  readonly code: string;
  /** Says what was wrong, where, and what was expected; never quotes the body. */
  readonly message: string;
  /** The field at fault, null if it is the body as a whole. */
  readonly param: string | null;
}

export function wireError(status: number, code: string, message: string, param: string | null = null): WireError {
  return { kind: 'error', status, code, message, param };
}
