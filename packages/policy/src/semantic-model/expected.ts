import type { ValueType } from '@signalbox/plugin-api';
import type { TokenType } from 'chevrotain';
import type { ModifierPlace } from '../check/catalogue/modifiers.ts';
import { tokenize } from '../syntax/lexer.ts';
import { statementStarts } from '../syntax/statement-bounds.ts';
import * as t from '../syntax/token-types.ts';
import type { LexToken } from '../syntax/token-types.ts';

/*
 * What may stand at a place in unfinished text. The statement that holds the place is read from its first word by the same grammar as the
 * parser's, up to the place; each alternative that is tried there is one that may come. Where the text before is itself wrong, reading goes on
 * at the last clause word, so that a slip in `when` does not leave `with` without completion.
 */

/** What an expression at the place may read. `ranked`: it is the operand of an aggregate or a ranking, about one endpoint. */
export type ValueScope = 'constant' | 'request' | 'cluster' | 'candidate' | 'ranked';

/** Whose keys an object holds. */
export interface ObjectOwner {
  readonly kind: 'define' | 'use' | 'given';
  /** The kind that is defined or given, or the package. */
  readonly name: string;
}

/** What kind of value fits best. */
export type Wanted =
  | { readonly kind: 'any' }
  | { readonly kind: 'condition' }
  | { readonly kind: 'scorer' }
  | { readonly kind: 'order' }
  /** Compared with, or one of, what `text` is. `member`: the list it is, or the text, holds the value. */
  | { readonly kind: 'like'; readonly text: string; readonly member?: boolean }
  | {
      readonly kind: 'argument';
      readonly callee: string;
      readonly index: number;
      readonly name?: string;
      readonly role: ArgumentRole;
    }
  | { readonly kind: 'entry'; readonly owner: ObjectOwner; readonly path: readonly string[] }
  | { readonly kind: 'modifier'; readonly name: string; readonly index: number }
  | { readonly kind: 'type'; readonly type: ValueType };

type ArgumentRole = 'value' | 'scorer' | 'picker' | 'order' | 'modifier' | 'annotation';

/** What a text in quotes at the place names. */
export type StringRole = 'tier' | 'endpoint' | 'route' | 'file' | 'package' | 'label' | 'header' | 'key' | 'definition';

export type Expectation =
  | { readonly kind: 'statement'; readonly inGroup: boolean; readonly annotated: boolean }
  | { readonly kind: 'word'; readonly word: string }
  | { readonly kind: 'sign'; readonly sign: string }
  | { readonly kind: 'value'; readonly scope: ValueScope; readonly wanted: Wanted }
  | { readonly kind: 'target'; readonly shares: boolean }
  | { readonly kind: 'picker' }
  | { readonly kind: 'modifier'; readonly place: ModifierPlace; readonly present: readonly string[] }
  | {
      readonly kind: 'argument-name';
      readonly callee: string;
      readonly role: ArgumentRole;
      readonly present: readonly string[];
    }
  | {
      readonly kind: 'key';
      readonly owner: ObjectOwner;
      readonly path: readonly string[];
      readonly present: readonly string[];
    }
  | { readonly kind: 'string'; readonly role: StringRole }
  | { readonly kind: 'regex' }
  | { readonly kind: 'number' }
  | { readonly kind: 'define-kind' }
  | { readonly kind: 'given' }
  | { readonly kind: 'type' }
  | { readonly kind: 'annotation' }
  | { readonly kind: 'new-name' };

/** The end of the text, or a token that fits nowhere: reading cannot go on. One object, for it carries no trace. */
class CannotGoOn extends Error {}
const cannotGoOn = new CannotGoOn('reading stopped');

interface Context {
  readonly scope: ValueScope;
  readonly wanted: Wanted;
  readonly inObject?: boolean;
}

const clauseWords: ReadonlySet<TokenType> = new Set([t.When, t.To, t.Where, t.By, t.Then, t.Pick, t.With, t.Else]);
const verbs: readonly ['admit', 'reject', 'queue'] = ['admit', 'reject', 'queue'];
const comparisons = ['==', '!=', '<', '<=', '>', '>='];

const isOf = (token: LexToken | undefined, type: TokenType): boolean =>
  token !== undefined && (token.tokenType === type || token.tokenType.CATEGORIES?.includes(type) === true);

class Reader {
  readonly found: Expectation[] = [];
  private at = 0;
  private readonly tokens: readonly LexToken[];
  private readonly text: string;
  private place: ModifierPlace = 'destination';

  constructor(tokens: readonly LexToken[], text: string) {
    this.tokens = tokens;
    this.text = text;
  }

  /** Reads one statement and gives whether it is complete where the tokens end. */
  readStatement(inGroup: boolean): boolean {
    try {
      this.statement(inGroup);
      return this.atEnd() || this.resume();
    } catch (error) {
      if (error !== cannotGoOn) throw error;
      return this.atEnd() ? false : this.resume();
    }
  }

  /** Goes on at the last clause word of a statement that does not read. */
  private resume(): boolean {
    const from = this.at;
    let index = this.tokens.length - 1;
    while (index >= from && !clauseWords.has(this.tokens[index]?.tokenType ?? t.Unknown)) index -= 1;
    if (index < from) return false;
    this.at = index;
    try {
      this.clausesFrom(this.tokens[index]?.tokenType ?? t.Unknown);
      return this.atEnd();
    } catch (error) {
      if (error !== cannotGoOn) throw error;
      return false;
    }
  }

  private clausesFrom(type: TokenType): void {
    const isAdmission = isOf(this.tokens[0], t.VerbWord);
    if (type === t.When) {
      this.when();
      if (isAdmission) this.verdictTail();
      else if (this.tokens[0]?.tokenType === t.Ensure) this.always();
      else this.destinationAndElse();
    } else if (type === t.To) this.destinationAndElse();
    else if (type === t.Else) this.elses();
    else if (isAdmission) this.verdictTail();
    else {
      if (type === t.Then) this.order({ scope: 'candidate', wanted: { kind: 'scorer' } });
      this.destinationTail();
      this.elses();
    }
  }

  private atEnd(): boolean {
    return this.at >= this.tokens.length;
  }

  private peek(ahead = 0): LexToken | undefined {
    return this.tokens[this.at + ahead];
  }

  private offer(...expectations: readonly Expectation[]): void {
    if (this.atEnd()) this.found.push(...expectations);
  }

  private take(type: TokenType): LexToken | undefined {
    const token = this.peek();
    if (!isOf(token, type)) return undefined;
    this.at += 1;
    return token;
  }

  /** A word or sign that may come. */
  private may(type: TokenType): boolean {
    this.offer(t.isKeyword(type) ? { kind: 'word', word: type.name } : { kind: 'sign', sign: type.name });
    return this.take(type) !== undefined;
  }

  /** A word or sign that must come. */
  private must(type: TokenType): void {
    if (!this.may(type)) throw cannotGoOn;
  }

  private mustBe(type: TokenType, ...expectations: readonly Expectation[]): LexToken {
    this.offer(...expectations);
    const token = this.take(type);
    if (token === undefined) throw cannotGoOn;
    return token;
  }

  private mayBe(type: TokenType, ...expectations: readonly Expectation[]): LexToken | undefined {
    this.offer(...expectations);
    return this.take(type);
  }

  private string(role: StringRole): string {
    return valueOf(this.mustBe(t.StringLiteral, { kind: 'string', role }));
  }

  private maybeString(role: StringRole): string | undefined {
    const token = this.mayBe(t.StringLiteral, { kind: 'string', role });
    return token === undefined ? undefined : valueOf(token);
  }

  private readonly starts: ReadonlyMap<TokenType, () => void> = new Map<TokenType, () => void>([
    [t.Language, () => void this.mustBe(t.PlainNumber, { kind: 'number' })],
    [
      t.Import,
      () => {
        this.string('file');
        this.alias();
      },
    ],
    [
      t.Use,
      () => {
        const name = this.string('package');
        this.alias();
        if (this.peekOrOffer(t.LCurly)) this.object({ kind: 'use', name }, [], 'constant');
      },
    ],
    [t.Define, () => this.define()],
    [t.Let, () => this.let()],
    [
      t.Group,
      () => {
        this.string('label');
        this.maybeWhen();
        this.maybeWith('destination');
        this.must(t.LCurly);
      },
    ],
    [
      t.Route,
      () => {
        this.maybeString('label');
        this.maybeWhen();
        this.destinationAndElse();
      },
    ],
    [
      t.Default,
      () => {
        if (this.peekOrOffer(t.To)) this.destinationAndElse();
        else this.verdict();
      },
    ],
    [t.Test, () => this.test()],
    [
      t.Ensure,
      () => {
        this.string('label');
        this.maybeWhen();
        this.always();
      },
    ],
  ]);

  private statement(inGroup: boolean): void {
    let annotated = false;
    while (this.take(t.At) !== undefined) {
      annotated = true;
      const name = this.mustBe(t.Ident, { kind: 'annotation' });
      if (this.peekOrOffer(t.LParen))
        this.args(name.image, 'annotation', { scope: 'constant', wanted: { kind: 'any' } });
    }
    this.offer({ kind: 'statement', inGroup, annotated }, { kind: 'sign', sign: '@' });
    const token = this.peek();
    if (token === undefined) throw cannotGoOn;
    if (isOf(token, t.VerbWord)) {
      this.at += 1;
      this.place = token.image as ModifierPlace;
      this.maybeString('label');
      this.maybeWhen();
      this.verdictTail();
      return;
    }
    const read = this.starts.get(token.tokenType);
    if (read === undefined) throw cannotGoOn;
    this.at += 1;
    read();
  }

  private peekOrOffer(type: TokenType): boolean {
    this.offer(t.isKeyword(type) ? { kind: 'word', word: type.name } : { kind: 'sign', sign: type.name });
    return isOf(this.peek(), type);
  }

  private alias(): void {
    if (this.may(t.As)) this.mustBe(t.Ident, { kind: 'new-name' });
  }

  private define(): void {
    const kind = this.mustBe(t.Ident, { kind: 'define-kind' }).image;
    this.maybeString('definition');
    this.object({ kind: 'define', name: kind }, [], 'constant');
  }

  private let(): void {
    this.mustBe(t.Ident, { kind: 'new-name' });
    let wanted: Wanted = { kind: 'any' };
    if (this.may(t.Colon)) {
      const type = this.mustBe(t.Ident, { kind: 'type' }).image;
      if (this.may(t.LSquare)) {
        this.mustBe(t.Ident, { kind: 'type' });
        this.must(t.RSquare);
      } else if (type !== 'list') wanted = { kind: 'type', type: type as ValueType };
    }
    this.must(t.Assign);
    this.expression({ scope: 'candidate', wanted });
  }

  private test(): void {
    this.string('label');
    this.must(t.LCurly);
    for (;;) {
      if (this.may(t.Given)) this.given();
      else if (this.may(t.Expect)) {
        this.may(t.Not);
        this.outcome();
      } else break;
    }
    this.must(t.RCurly);
  }

  private given(): void {
    this.offer({ kind: 'given' });
    if (
      isOf(this.peek(), t.Ident) &&
      (this.peek(1)?.tokenType === t.StringLiteral || this.at + 1 === this.tokens.length)
    ) {
      const kind = this.mustBe(t.Ident).image;
      if (this.atEnd()) this.factRest(kind);
      this.string(kind === 'tenant' ? 'definition' : 'endpoint');
      this.object({ kind: 'given', name: kind }, [], 'constant');
      return;
    }
    do {
      this.offer({ kind: 'value', scope: 'request', wanted: { kind: 'any' } });
      this.factRest(this.name());
    } while (this.may(t.Comma));
  }

  private factRest(name: string): void {
    let text = name;
    this.offer({ kind: 'sign', sign: '.' }, { kind: 'sign', sign: '[' }, { kind: 'sign', sign: '=' });
    if (this.atEnd()) {
      this.offer({ kind: 'string', role: 'endpoint' });
      throw cannotGoOn;
    }
    if (this.take(t.LSquare) !== undefined) {
      text = `${name}[${JSON.stringify(this.string('header'))}]`;
      this.must(t.RSquare);
    }
    this.must(t.Assign);
    this.expression({ scope: 'constant', wanted: { kind: 'like', text } });
  }

  private always(): void {
    if (!this.may(t.Always)) this.must(t.Never);
    this.outcome();
  }

  private outcome(): void {
    if (this.may(t.Route)) {
      this.string('route');
      if (this.may(t.To)) this.target();
    } else if (this.may(t.To)) this.target();
    else if (!this.may(t.Default)) this.verdict();
  }

  // Clauses

  private maybeWhen(): void {
    if (this.peekOrOffer(t.When)) this.when();
  }

  private when(): void {
    this.must(t.When);
    this.expression({ scope: 'request', wanted: { kind: 'condition' } });
  }

  private destinationAndElse(): void {
    this.must(t.To);
    do {
      this.target();
      // `and` between targets is read as a comma by the parser, which reports it.
    } while (this.may(t.Comma) || this.take(t.And) !== undefined);
    this.destinationTail();
    this.elses();
  }

  private destinationTail(): void {
    if (this.may(t.Where)) this.expression({ scope: 'candidate', wanted: { kind: 'condition' } });
    if (this.may(t.By)) this.order({ scope: 'candidate', wanted: { kind: 'scorer' } });
    if (this.may(t.Pick)) this.pick();
    this.maybeWith('destination');
  }

  private elses(): void {
    while (this.may(t.Else)) {
      if (this.peekOrOffer(t.To)) {
        this.must(t.To);
        do this.target();
        while (this.may(t.Comma) || this.take(t.And) !== undefined);
        this.destinationTail();
      } else if (!this.may(t.Next)) this.verdict();
    }
  }

  private target(): void {
    const share = this.take(t.PercentLiteral);
    this.offer({ kind: 'target', shares: share === undefined });
    const name = this.name();
    if (this.atEnd() && (name === 'tier' || name === 'endpoint')) this.offer({ kind: 'string', role: name });
    this.take(t.StringLiteral);
  }

  private verdict(): void {
    for (const verb of verbs) this.offer({ kind: 'word', word: verb });
    const token = this.take(t.VerbWord);
    if (token === undefined) throw cannotGoOn;
    this.place = token.image as ModifierPlace;
    this.verdictTail();
  }

  private verdictTail(): void {
    if (this.place === 'queue' || isOf(this.peek(), t.By)) {
      if (this.may(t.By)) this.order({ scope: 'request', wanted: { kind: 'order' } });
    }
    this.maybeWith(this.place);
  }

  /** `a then b` after `by`, or after a `then`. */
  private order(context: Context): void {
    if (this.peek()?.tokenType === t.Then) this.at += 1;
    do this.sum(context);
    while (this.may(t.Then));
  }

  private pick(): void {
    this.offer({ kind: 'picker' });
    const name = this.name();
    if (this.peekOrOffer(t.LParen)) this.args(name, 'picker', { scope: 'constant', wanted: { kind: 'any' } });
  }

  private maybeWith(place: ModifierPlace): void {
    if (!this.may(t.With)) return;
    const present: string[] = [];
    do {
      this.offer({ kind: 'modifier', place, present: [...present] });
      const name = this.name();
      present.push(name);
      this.modifierRest(name);
    } while (this.may(t.Comma) || this.take(t.And) !== undefined);
  }

  private modifierRest(name: string): void {
    const context = (index: number): Context => ({ scope: 'request', wanted: { kind: 'modifier', name, index } });
    if (this.peekOrOffer(t.LParen)) this.args(name, 'modifier', context(0));
    let last = '';
    for (let index = 0; ; index += 1) {
      if (last === 'tier' || last === 'endpoint') this.offer({ kind: 'string', role: last });
      else this.offer({ kind: 'value', scope: 'request', wanted: { kind: 'modifier', name, index } });
      const literal = this.take(t.Literal);
      last = '';
      if (literal === undefined) {
        if (isOf(this.peek(), t.Ident)) last = this.name();
        else if (isOf(this.peek(), t.LSquare)) this.list(context(index));
        else return;
      }
      if (this.peekOrOffer(t.LParen)) {
        // `(on: …)` belongs to the modifier, `prefix(2k)` to the name.
        this.args(last === '' ? name : last, last === '' ? 'modifier' : 'value', context(index), name);
      }
    }
  }

  // Objects, arguments, lists, names

  private name(): string {
    let text = this.mustBe(t.Ident).image;
    for (;;) {
      this.offer({ kind: 'sign', sign: '.' });
      if (this.take(t.Dot) === undefined) return text;
      text += `.${this.mustBe(t.Word).image}`;
    }
  }

  private object(owner: ObjectOwner, path: readonly string[], scope: ValueScope): void {
    this.must(t.LCurly);
    const present: string[] = [];
    for (;;) {
      this.offer({ kind: 'key', owner, path, present: [...present] }, { kind: 'sign', sign: '}' });
      if (this.take(t.RCurly) !== undefined) return;
      const key = this.take(t.Word) ?? this.take(t.StringLiteral);
      if (key === undefined) throw cannotGoOn;
      const name = key.tokenType === t.StringLiteral ? valueOf(key) : key.image;
      present.push(name);
      this.must(t.Colon);
      this.entry(owner, [...path, name], scope);
      this.may(t.Comma);
    }
  }

  private entry(owner: ObjectOwner, path: readonly string[], scope: ValueScope): void {
    this.offer({ kind: 'sign', sign: '{' });
    if (isOf(this.peek(), t.LCurly)) this.object(owner, path, scope);
    else
      this.expression({
        scope: scopeOfEntry(owner, path, scope),
        wanted: { kind: 'entry', owner, path },
        inObject: true,
      });
  }

  private list(context: Context): void {
    this.must(t.LSquare);
    this.offer({ kind: 'sign', sign: ']' });
    if (this.take(t.RSquare) !== undefined) return;
    do {
      const { wanted } = context;
      if (context.inObject === true && wanted.kind === 'entry')
        this.entry(wanted.owner, [...wanted.path, '[]'], context.scope);
      else this.expression(context);
    } while (this.may(t.Comma));
    this.must(t.RSquare);
  }

  /** `modifier` is the one that an argument list behind one of its parts may belong to. */
  private args(callee: string, role: ArgumentRole, context: Context, modifier?: string): void {
    this.must(t.LParen);
    const present: string[] = [];
    this.offer({ kind: 'sign', sign: ')' });
    if (this.take(t.RParen) !== undefined) return;
    let index = 0;
    const scope = scopeOfArgument(callee, role, context.scope);
    do {
      this.offer({ kind: 'argument-name', callee, role, present: [...present] });
      if (modifier !== undefined && modifier !== callee)
        this.offer({ kind: 'argument-name', callee: modifier, role: 'modifier', present: [...present] });
      if (isOf(this.peek(), t.Word) && this.peek(1)?.tokenType === t.Colon) {
        const name = this.mustBe(t.Word).image;
        present.push(name);
        this.must(t.Colon);
        const isOwn = modifier === undefined || !MODIFIER_ARGUMENTS.has(name);
        this.expression({
          scope,
          wanted: { kind: 'argument', callee: isOwn ? callee : modifier, index, name, role: isOwn ? role : 'modifier' },
        });
      } else {
        if (isOf(this.peek(), t.Word) && this.at + 1 === this.tokens.length)
          this.found.push({ kind: 'sign', sign: ':' });
        this.expression({
          scope: index > 0 && scope === 'ranked' ? context.scope : scope,
          wanted: role === 'modifier' && index === 0 ? context.wanted : { kind: 'argument', callee, index, role },
        });
      }
      index += 1;
    } while (this.may(t.Comma));
    this.must(t.RParen);
  }

  // Expressions

  private expression(context: Context): void {
    do {
      do {
        while (this.may(t.Not));
        this.comparison(context);
      } while (this.may(t.And));
    } while (this.may(t.Or));
  }

  private comparison(context: Context): void {
    const start = this.at;
    this.coalesce(context);
    const text = this.textFrom(start);
    for (const sign of comparisons) this.offer({ kind: 'sign', sign });
    const behind: Context = { ...context, scope: context.scope === 'ranked' ? 'candidate' : context.scope };
    const like: Context = { ...behind, wanted: { kind: 'like', text } };
    if (
      this.take(t.Comparison) !== undefined ||
      (context.wanted.kind === 'condition' && this.take(t.Assign) !== undefined)
    ) {
      this.coalesce(like);
      return;
    }
    this.offer({ kind: 'word', word: 'not' });
    if (this.peek()?.tokenType === t.Not) {
      this.at += 1;
      this.must(t.In);
    } else if (!this.may(t.In)) {
      if (this.may(t.Matches)) this.mustBe(t.RegexLiteral, { kind: 'regex' });
      else if (this.may(t.Contains)) this.coalesce({ ...behind, wanted: { kind: 'like', text, member: true } });
      else this.may(t.Exists);
      return;
    }
    this.coalesce(like);
    if (this.may(t.Range)) this.coalesce(like);
  }

  private textFrom(index: number): string {
    const first = this.tokens[index];
    const last = this.tokens[this.at - 1];
    return first === undefined || last === undefined ? '' : this.text.slice(first.startOffset, t.endOf(last));
  }

  private coalesce(context: Context): void {
    const start = this.at;
    this.sum(context);
    const text = this.textFrom(start);
    while (this.may(t.Fallback)) this.sum({ ...context, wanted: { kind: 'like', text } });
  }

  private sum(context: Context): void {
    let operand = context;
    for (;;) {
      do this.unary(operand);
      while (this.operator(t.Star, t.Slash));
      if (!this.operator(t.Plus, t.Minus)) return;
      operand = context.scope === 'ranked' ? { ...context, scope: 'candidate' } : context;
    }
  }

  private operator(...types: readonly TokenType[]): boolean {
    return types.map((type) => this.may(type)).includes(true);
  }

  private unary(context: Context): void {
    while (this.may(t.Minus));
    this.primary(context);
  }

  private primary(context: Context): void {
    this.offer(
      { kind: 'value', scope: context.scope, wanted: context.wanted },
      { kind: 'sign', sign: '(' },
      { kind: 'sign', sign: '[' },
    );
    if (this.take(t.Literal) !== undefined) return;
    if (isOf(this.peek(), t.LSquare)) {
      this.list(context);
      return;
    }
    if (this.take(t.LParen) !== undefined) {
      this.expression(context);
      this.must(t.RParen);
      return;
    }
    const name = this.name();
    if (this.peekOrOffer(t.LParen)) {
      const { wanted } = context;
      const role = wanted.kind === 'scorer' || wanted.kind === 'order' ? wanted.kind : 'value';
      this.args(name, role, { ...context, wanted: { kind: 'any' } });
      return;
    }
    if (this.may(t.LSquare)) {
      this.string(name === 'header' ? 'header' : 'key');
      this.must(t.RSquare);
      return;
    }
    if (this.atEnd() && (name === 'tier' || name === 'endpoint')) this.offer({ kind: 'string', role: name });
    // In an object whose entries have no commas between them, a text after a name is the next key.
    if (this.peek()?.tokenType === t.StringLiteral && this.peek(1)?.tokenType !== t.Colon) this.at += 1;
  }
}

const MODIFIER_ARGUMENTS: ReadonlySet<string> = new Set(['on', 'bound', 'unit', 'method', 'share', 'after']);
const RANKED: ReadonlySet<string> = new Set(['min', 'max', 'avg', 'sum', 'count', 'any', 'all', 'lowest', 'highest']);

const scopeOfArgument = (callee: string, role: ArgumentRole, scope: ValueScope): ValueScope => {
  if (role === 'order') return 'request';
  if (RANKED.has(callee) && scope !== 'constant') return 'ranked';
  return role === 'scorer' || role === 'picker' || role === 'annotation' ? 'constant' : scope;
};

const scopeOfEntry = (owner: ObjectOwner, path: readonly string[], scope: ValueScope): ValueScope => {
  if (owner.kind !== 'define' || path.length === 0) return scope;
  const [key] = path;
  if (owner.name === 'limit' && (key === 'key' || key === 'when')) return 'request';
  return owner.name === 'alarm' && (key === 'when' || key === 'until') ? 'cluster' : scope;
};

const valueOf = (token: LexToken): string => (token.literal?.kind === 'string' ? token.literal.value : '');

/** Whether the place after the tokens lies in the braces of a group: the innermost brace that is open is a group's. */
const isInGroup = (tokens: readonly LexToken[], starts: ReadonlySet<number>): boolean => {
  const open: boolean[] = [];
  let isGroup = false;
  for (const [index, token] of tokens.entries()) {
    if (starts.has(index) && token.tokenType !== t.At) isGroup = token.tokenType === t.Group;
    if (token.tokenType === t.LCurly) open.push(isGroup);
    else if (token.tokenType === t.RCurly) open.pop();
  }
  return open.at(-1) === true;
};

/** Where the annotations before a statement begin. */
const withAnnotations = (tokens: readonly LexToken[], starts: readonly number[]): number => {
  let index = starts.length - 1;
  while (index > 0 && tokens[starts[index - 1] ?? 0]?.tokenType === t.At) index -= 1;
  return starts[index] ?? 0;
};

/**
 * All that may stand at the end of `before`, the text up to the place. The place must not lie in a comment; where it lies in a word, a number
 * or a text in quotes, `before` ends where that begins.
 */
export const expectedAfter = (before: string): readonly Expectation[] => {
  const { tokens } = tokenize(before, '');
  const starts = statementStarts(tokens);
  const inGroup = isInGroup(tokens, new Set(starts));
  const next: readonly Expectation[] = [
    { kind: 'statement', inGroup, annotated: false },
    { kind: 'sign', sign: '@' },
    ...(inGroup ? [{ kind: 'sign', sign: '}' } as const] : []),
  ];
  const closed = tokens.at(-1)?.tokenType === t.RCurly;
  const statement = tokens.slice(withAnnotations(tokens, starts));
  if (statement.length === 0) return next;
  // The brace that ends a group stands behind the last statement inside.
  const own = closed && bracesOf(statement) < 0 ? statement.slice(0, -1) : statement;
  const reader = new Reader(own, before);
  const complete = reader.readStatement(inGroup);
  if (own !== statement || (own.length === 1 && own[0]?.tokenType === t.RCurly)) return next;
  return complete ? [...reader.found, ...next] : reader.found;
};

const bracesOf = (tokens: readonly LexToken[]): number =>
  tokens.reduce((sum, { tokenType }) => sum + (tokenType === t.LCurly ? 1 : tokenType === t.RCurly ? -1 : 0), 0);
