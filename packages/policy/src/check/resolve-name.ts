import { foreignValues } from '../syntax/foreign-words.ts';
import type { DiagnosticDetails } from '../diagnostics/diagnostic.ts';
import { suggest } from '../diagnostics/suggest.ts';
import type { NameNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import type { NameTable } from './catalogue/catalogue.ts';
import { firstPartyNames } from './catalogue/first-party-names.ts';
import { findBinding } from './session.ts';
import type { Binding, Block, Session } from './session.ts';

/** A name as resolved: a binding of the policy, or an entry of the catalogue or of a plugin in use. */
export type Resolved =
  | { readonly kind: 'binding'; readonly binding: Binding }
  | { readonly kind: 'table'; readonly table: NameTable; readonly name: string }
  | { readonly kind: 'missing' }
  /** An error about it is reported, or stands elsewhere. */
  | { readonly kind: 'poison' };

/**
 * Follows a dotted name to what it stands for. `table` says in which names the last part is to be looked up by whoever knows which
 * kind the place needs. Marks what it passes as used.
 */
export const resolveName = (session: Session, block: Block, node: NameNode): Resolved => {
  const resolved = follow(session, block, node);
  session.observer?.name(node, resolved);
  return resolved;
};

const follow = (session: Session, block: Block, node: NameNode): Resolved => {
  const [first, ...rest] = node.parts;
  if (first === undefined) return { kind: 'poison' };
  const binding = findBinding(block, first.text);
  if (binding === undefined) return { kind: 'table', table: session.catalogue, name: node.text };
  binding.used = true;
  if (binding.kind === 'poison') return { kind: 'poison' };
  if (binding.kind === 'plugin') {
    if (rest.length === 0) return { kind: 'binding', binding };
    return { kind: 'table', table: binding.table, name: rest.map((part) => part.text).join('.') };
  }
  if (binding.kind === 'import') {
    if (rest.length === 0) return { kind: 'binding', binding };
    const member = binding.exports.get(rest.map((part) => part.text).join('.'));
    if (member === undefined) return { kind: 'missing' };
    member.used = true;
    return member.kind === 'poison' ? { kind: 'poison' } : { kind: 'binding', binding: member };
  }
  return rest.length === 0 ? { kind: 'binding', binding } : { kind: 'missing' };
};

/** Reports a name that nothing knows: a member of something known, a name of a plugin this build lacks, or an unknown one. */
export const reportUnknownName = (
  session: Session,
  block: Block,
  node: NameNode,
  span: Span,
  options: {
    readonly code: 'E0201' | 'E0204' | 'E0205' | 'E0206' | 'E0208';
    readonly what: string;
    readonly candidates: readonly (readonly string[])[];
  },
): void => {
  const [first, ...rest] = node.parts;
  if (first === undefined) return;
  for (let at: Block | undefined = block; at !== undefined; at = at.parent) {
    const later = at.declared.get(node.text);
    if (later !== undefined && later.start > span.start && !at.bindings.has(node.text)) {
      session.report('E0210', span, `\`${node.text}\` is used above its \`let\``, {
        labels: [{ span: later, message: 'declared here' }],
        help: 'move the `let` up',
      });
      return;
    }
  }
  const binding = findBinding(block, first.text);
  if (binding !== undefined && rest.length > 0) {
    const member = rest.map((part) => part.text).join('.');
    const last = rest[rest.length - 1] ?? first;
    const members =
      binding.kind === 'import' ? [...binding.exports.keys()] : binding.kind === 'plugin' ? namesOf(binding.table) : [];
    const near = suggest(member, members);
    const what = binding.kind === 'import' ? 'import' : binding.kind === 'plugin' ? 'plugin' : 'name';
    session.report(
      'E0225',
      { ...last.span, start: rest[0]?.span.start ?? last.span.start },
      `the ${what} \`${first.text}\` has no \`${member}\``,
      {
        labels: [{ span: binding.span, message: `\`${first.text}\` stands for this` }],
        ...nearHelp(near, members, { ...last.span, start: rest[0]?.span.start ?? last.span.start }),
      },
    );
    return;
  }
  const kind = firstPartyNames[node.text];
  if (Object.hasOwn(firstPartyNames, node.text) && kind !== undefined) {
    session.report(
      'E0232',
      span,
      `\`${node.text}\` is a first-party ${kind === 'admission' ? 'admission rule' : kind} that this build does not have`,
      {
        help: 'use a build that has it, or another name',
      },
    );
    return;
  }
  const fact = factNames[node.text];
  if (Object.hasOwn(factNames, node.text) && fact !== undefined) {
    session.report(options.code, span, `\`${node.text}\` stands in a \`define\`, not in a rule`, { help: fact });
    return;
  }
  const foreign = foreignValues.get(node.text);
  if (foreign !== undefined) {
    session.report(options.code, span, `unknown ${options.what} \`${node.text}\``, {
      help: foreign.help,
      ...(foreign.write === undefined
        ? {}
        : { fix: { message: `write \`${foreign.write}\``, edits: [{ span, text: foreign.write }] } }),
    });
    return;
  }
  const near = suggest(node.text, ...options.candidates);
  if ((session.incomplete || session.defined.lost.has('let')) && near === undefined) return;
  session.report(
    options.code,
    span,
    `unknown ${options.what} \`${node.text}\``,
    near === undefined
      ? {}
      : {
          help: `did you mean \`${near}\`?`,
          fix: { message: `write \`${near}\``, edits: [{ span, text: near }] },
        },
  );
};

/** Names that stand in a `define` only, with where to write them. */
const factNames: { readonly [name: string]: string } = Object.freeze({
  adaptive_limit: 'it is a fact of endpoints: write `define tier "…" { …, adaptive_limit: true }`',
});

const namesOf = (table: NameTable): readonly string[] => [
  ...table.values.keys(),
  ...table.scorers.keys(),
  ...table.pickers.keys(),
  ...table.admissions.keys(),
];

const nearHelp = (near: string | undefined, all: readonly string[], span: Span): DiagnosticDetails => {
  if (near !== undefined)
    return { help: `did you mean \`${near}\`?`, fix: { message: `write \`${near}\``, edits: [{ span, text: near }] } };
  if (all.length === 0) return {};
  const shown = all.slice(0, 8).map((name) => `\`${name}\``);
  return { help: `it has ${shown.join(', ')}${all.length > 8 ? ' …' : ''}` };
};
