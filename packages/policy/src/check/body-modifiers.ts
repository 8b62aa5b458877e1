import { withoutParens } from '../syntax/ast.ts';
import type { ExprNode, LiteralNode, ListNode, NameNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { modifierTable } from './catalogue/modifiers.ts';
import type { Work } from './modifier-forms.ts';
import { positional, wrongForm, missingValue, surplus } from './modifier-forms.ts';

export const FORBIDDEN_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'connection',
  'content-length',
  'content-encoding',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export const HEADER_NAME: RegExp = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

export const checkField = (work: Work, field: string, span: Span): boolean => {
  if (field === '') return wrongForm(work, span, 'an empty field');
  if (field === 'model') {
    work.session.report('E0416', span, 'the field `model` is changed by the modifier `model`', {
      help: 'write `model "…"`',
    });
    return false;
  }
  if (field === 'messages' || field === 'prompt' || field === 'input' || field === 'stream') {
    work.session.report('E0416', span, `the field \`${field}\` may not be changed`, {
      help: 'it decides how the request was routed and is answered',
    });
    return false;
  }
  return true;
};

export const checkDrop = (work: Work): boolean => {
  const nodes: (LiteralNode | NameNode | ListNode | ExprNode)[] =
    work.node.parts.length > 0
      ? work.node.parts.map((part) => part.value)
      : positional(work.node.args).map((item) => item.value);
  if (nodes.length === 0) return missingValue(work);
  let fine = true;
  const fields: string[] = [];
  for (const node of nodes.flatMap((one) => (one.kind === 'list' ? one.items : [one]))) {
    const inner = withoutParens(node);
    if (inner.kind !== 'string') {
      fine =
        inner.kind === 'name' && modifierTable.has(inner.text) && work.node.parts.some((part) => part.value === inner)
          ? surplus(work, { kind: 'modifier-part', value: inner, span: inner.span })
          : wrongForm(work, node.span, `\`${work.session.textOf(node.span)}\``);
    } else if (checkField(work, inner.value, inner.span)) fields.push(inner.value);
    else fine = false;
  }
  if (fine) work.draft.drop = [...(work.draft.drop ?? []), ...fields];
  return fine;
};
