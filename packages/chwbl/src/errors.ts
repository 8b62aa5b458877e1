/**
 * Codes of the errors that this package throws. All of them are mistakes of the calling program, found at the call.
 *
 * - `ERR_CHWBL_BOUND`: the bound is not a finite number of at least 1, or its unit is unknown.
 * - `ERR_CHWBL_NODE`: a node without a usable id or weight, the same id twice, or an id that is not there.
 * - `ERR_CHWBL_LOAD`: a load that cannot be counted: negative, not finite, or a fraction of a request.
 * - `ERR_CHWBL_ARGUMENT`: any other number out of range (vnodes, seed, modulus, capacity, k).
 */
export type ChwblErrorCode = 'ERR_CHWBL_BOUND' | 'ERR_CHWBL_NODE' | 'ERR_CHWBL_LOAD' | 'ERR_CHWBL_ARGUMENT';

/** A value out of its range. `code` is stable; the message says what was given, what was expected and what to do. */
export class ChwblError extends RangeError {
  override readonly name: string = 'ChwblError';
  readonly code: ChwblErrorCode;

  constructor(code: ChwblErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
