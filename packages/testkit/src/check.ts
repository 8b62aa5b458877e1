/** What a check found out beyond having passed, such as a measured time. */
export interface CheckNote {
  readonly note: string;
}

/**
 * One check of a contract, for any test runner: `for (const check of checks) test(check.name, () => void check.run())`. `run` throws a
 * ContractViolation when the plugin breaks the contract.
 */
export interface Check {
  readonly name: string;
  run(): CheckNote | undefined;
}

/** A plugin breaks its contract. The message says in what, with the values that show it. */
export class ContractViolation extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ContractViolation';
  }
}

/** Throws a ContractViolation unless `condition` holds. */
export function demand(condition: boolean, message: string | (() => string)): asserts condition {
  if (!condition) throw new ContractViolation(typeof message === 'string' ? message : message());
}

/** A check from a body; what it returns as text becomes the note. */
export function check(name: string, body: () => string | void): Check {
  return {
    name,
    run() {
      const note = body();
      return typeof note === 'string' ? { note } : undefined;
    },
  };
}

/** A check by function that an entry given as expression cannot have: it passes and says why it looked no further. */
export function onlyManifest(kind: string, name: string): Check {
  return check(`${kind} ${name}: its expression runs in a compiled policy only; the manifest form was checked`, () => {
    return 'expressions are compiled into policies; test their values by a policy test (`signalbox test`)';
  });
}
