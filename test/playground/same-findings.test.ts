import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createOptionChecker } from '../../packages/config/src/index.ts';
import { createPolicyService } from '../../packages/console/src/playground/policy-service.ts';
import { EMPTY_STATE } from '../../packages/console/src/playground/state.ts';
import { createPolicyLoader } from '../../packages/gateway/src/policy/load-policy.ts';
import { expect, test } from 'vitest';

const folder = fileURLToPath(new URL('../../examples/policies/', import.meta.url));
const check = createOptionChecker();
const service = createPolicyService({ askOptionCheck: async (schema, value) => check(schema, value) });
const loader = createPolicyLoader({ cwd: folder, allowPlugins: [] });

test.each(readdirSync(folder).filter((name) => /^[^.]+\.route$/.test(name)))(
  '%s has the findings in the playground that the gateway has when it loads it',
  async (name) => {
    const policy = readFileSync(folder + name, 'utf8');
    const { findings } = await service.evaluate({ ...EMPTY_STATE, policy });
    const told = loader.load(name).diagnostics.map(({ code, message, help, severity, span }) => ({
      code,
      message,
      severity,
      ...(help === undefined ? {} : { help }),
      from: span.start,
      to: span.end,
    }));
    expect(findings.map(({ line: _line, column: _column, labels: _labels, fix: _fix, ...rest }) => rest)).toEqual(told);
  },
);
