import type { Expression, PolicyProgram } from '../ir.ts';
import type { GeneratedArtefact } from './artefact.ts';
import type { FunctionWriter, ModuleWriter } from './function-writer.ts';
import { createFunctionWriter, createModuleWriter } from './function-writer.ts';
import { numeric, truth, value } from './generate-expression.ts';
import { poolTargets } from './reads.ts';
import type { Role } from './roles.ts';
import { expressionRoles } from './roles.ts';

/** The evaluators of a program as JavaScript text and the constants it needs. The same program always gives the same artefact. */
export function generate(program: PolicyProgram): GeneratedArtefact {
  const module = createModuleWriter(poolTargets(program));
  const made: { readonly [name in Role]: Map<Expression, string> } = {
    predicate: new Map(),
    value: new Map(),
    filter: new Map(),
    score: new Map(),
  };
  const names = expressionRoles(program).map(({ expression, role }) => {
    let name = made[role].get(expression);
    if (name === undefined) {
      name = GENERATORS[role](module, expression);
      made[role].set(expression, name);
    }
    return name;
  });
  return module.finish(names);
}

const GENERATORS: { readonly [name in Role]: (module: ModuleWriter, expression: Expression) => string } = {
  predicate: (module, expression) => requestFunction(module, (w) => truth(w, expression, true)),
  value: (module, expression) => requestFunction(module, (w) => value(w, expression)),
  filter: (module, expression) => {
    const w = createFunctionWriter(module, true);
    const condition = truth(w, expression, true);
    // Writing before asking keeps the loop free of a branch around the store; a slot that fails is overwritten by the next.
    const loop = `for (let i = 0; i < l; i++) {\nconst e = s[i];\n${w.loads()}o[m] = e;\nif (${condition}) m++;\n}\n`;
    const body = `if (l === 0) return 0;\n${w.head()}${w.columns()}let m = 0;\n${loop}return m;\n`;
    return module.define('f', 'h, s, l, o', body);
  },
  score: (module, expression) => {
    const w = createFunctionWriter(module, true);
    const code = numeric(w, expression);
    const loop = `for (let i = 0; i < l; i++) {\nconst e = s[i];\n${w.loads()}o[i] = ${code};\n}\n`;
    return module.define('f', 'h, s, l, o', `if (l === 0) return;\n${w.head()}${w.columns()}${loop}`);
  },
};

function requestFunction(module: ModuleWriter, generateCode: (w: FunctionWriter) => string): string {
  const w = createFunctionWriter(module, false);
  const code = generateCode(w);
  return module.define('f', 'h', `${w.head()}return ${code};\n`);
}
