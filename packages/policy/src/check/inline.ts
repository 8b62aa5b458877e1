import type { Json, ValueType } from '@signalbox/plugin-api';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { createDiagnostic } from '../diagnostics/diagnostic.ts';
import type { Expression, PropertyRef } from '../ir.ts';
import type { ExprNode } from '../syntax/ast.ts';
import { parsePolicy } from '../syntax/parse-policy.ts';
import type { Span } from '../syntax/span.ts';
import type { CheckedArguments } from './arguments.ts';
import type { CatalogueEntry, PropertyEntry, ScorerEntry } from './catalogue/entries.ts';
import { operandsOf } from '../operands-of.ts';
import { typeOfSchema } from './options.ts';
import { createBlock, elaborate } from './session.ts';
import type { Place, Session } from './session.ts';
import { describeType, isNumeric, sameDimension } from './value-types.ts';

const MAX_DEPTH = 16;
const PREFIX = 'let expression = ';

/** The tree of an expression that stands alone, as in a plugin's manifest. */
const parseExpressionText = (
  text: string,
  file: string,
): { readonly node: ExprNode } | { readonly problem: string } => {
  const { file: tree, diagnostics } = parsePolicy(PREFIX + text, { file });
  const [first] = diagnostics.filter((diagnostic) => diagnostic.severity === 'error');
  if (first !== undefined) return { problem: first.message };
  const [statement, ...more] = tree.statements;
  return statement?.kind === 'let' && more.length === 0
    ? { node: statement.value }
    : { problem: 'it is no expression' };
};

type Constant = { readonly type: ValueType; readonly value: number | string | boolean };

const constantsOf = (entry: CatalogueEntry, checked: CheckedArguments): ReadonlyMap<string, Constant | undefined> => {
  const constants = new Map<string, Constant | undefined>();
  const put = (name: string, value: Json | undefined, type: ValueType | undefined): void => {
    const scalar = typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean';
    constants.set(
      name,
      scalar
        ? {
            value,
            type: type ?? (typeof value === 'number' ? 'number' : typeof value === 'string' ? 'string' : 'bool'),
          }
        : undefined,
    );
  };
  for (const [name, schema] of Object.entries(entry.options?.properties ?? {}))
    put(name, checked.options?.[name], typeOfSchema(schema));
  for (const argument of checked.arguments) {
    if (argument.kind !== 'value' || argument.name === undefined || typeof argument.value === 'object') continue;
    put(argument.name, argument.value, entry.parameters.find((parameter) => parameter.name === argument.name)?.type);
  }
  return constants;
};

/** Puts the expression of a catalogue entry in the place of its name, options as constants. All its spans become the use's. */
const inlineExpression = (
  session: Session,
  place: Place,
  entry: PropertyEntry | ScorerEntry,
  text: string,
  span: Span,
  checked: CheckedArguments,
): Expression | undefined => {
  const owner = entry.provider.kind === 'plugin' ? `plugin:${entry.provider.plugin}` : 'catalogue';
  const file = `${owner}/${entry.kind}/${entry.name}`;
  const cacheKey = `${file}\n${text}`;
  let parsed = session.inlineCache.get(cacheKey);
  if (parsed === undefined) {
    parsed = parseExpressionText(text, file);
    session.inlineCache.set(cacheKey, parsed);
    session.texts.set(file, PREFIX + text);
  }
  const report = (problem: string): undefined => {
    session.report('E0510', span, `\`${entry.name}\` is given as \`${text}\`, which does not compile: ${problem}`, {
      help:
        entry.provider.kind === 'plugin'
          ? `this is a fault of the plugin \`${entry.provider.plugin}\``
          : 'this is a fault of the built-in catalogue',
    });
    return undefined;
  };
  if (parsed.node === undefined) return report(parsed.problem ?? 'it is no expression');
  const found: Diagnostic[] = [];
  const inner: Session = {
    ...session,
    report(code, at, message, details) {
      found.push(createDiagnostic(code, at, message, details));
    },
  };
  const constants = constantsOf(entry, checked);
  // An expression of the catalogue sees catalogue names only, never a `let` of the policy that happens to share one.
  const innerPlace: Place = {
    scope: 'candidate',
    block: createBlock(),
    clause: place.clause,
    inlineAt: place.inlineAt ?? span,
    constants,
    inlineDepth: (place.inlineDepth ?? 0) + 1,
    ...(place.insideAggregate === undefined ? {} : { insideAggregate: place.insideAggregate }),
  };
  if (innerPlace.inlineDepth === MAX_DEPTH) return report('it refers to itself');
  const expression = elaborate(inner, innerPlace, parsed.node);
  const [problem] = found;
  if (problem !== undefined) return report(problem.message);
  return expression;
};

const propertiesOf = (expression: Expression): readonly number[] =>
  expression.kind === 'property' ? [expression.index] : operandsOf(expression).flatMap(propertiesOf);

const isUnfed = (session: Session, ref: PropertyRef | undefined): boolean =>
  ref?.provider.kind === 'builtin' && session.unprovided.has(`candidate.${ref.key}`);

/** A property or filter that the catalogue gives as an expression. */
export const inlineValue = (
  session: Session,
  place: Place,
  entry: PropertyEntry,
  text: string,
  span: Span,
  checked: CheckedArguments,
): Expression | undefined => {
  const expression = inlineExpression(session, place, entry, text, span, checked);
  if (expression === undefined) return undefined;
  const fits = isNumeric(entry.type) ? isNumeric(expression.type) : sameDimension(entry.type, expression.type);
  if (!fits) {
    session.report(
      'E0510',
      span,
      `\`${entry.name}\` is given as \`${text}\`, which is ${describeType(expression.type)} and not ${describeType(entry.type)}`,
    );
    return undefined;
  }
  const read = propertiesOf(expression).map((index) => session.properties[index]);
  if (place.inlineAt === undefined && read.length > 0 && read.every((ref) => isUnfed(session, ref)))
    session.report(
      'W0516',
      span,
      `nothing feeds what \`${entry.name}\` reads in this build or fleet, so it is always unknown`,
    );
  // The catalogue states the type: `load` is a percent though its formula divides two counts.
  return { ...expression, type: entry.type, scope: 'candidate' };
};

/** A scorer that the catalogue gives as an expression. */
export const inlineScorer = (
  session: Session,
  place: Place,
  entry: ScorerEntry,
  text: string,
  span: Span,
  checked: CheckedArguments,
): Expression | undefined => {
  const expression = inlineExpression(session, place, entry, text, span, checked);
  if (expression === undefined) return undefined;
  if (!isNumeric(expression.type)) {
    session.report(
      'E0510',
      span,
      `\`${entry.name}\` is given as \`${text}\`, which is ${describeType(expression.type)} and no number`,
    );
    return undefined;
  }
  return expression;
};
