import type { Span } from './span.ts';

/*
 * The tree of one `.route` file, as written: names are not resolved, units are converted, parentheses are kept. Every node
 * is plain data with a `kind` and a `span`; a node never shares children with another. The depth of an expression is
 * bounded by the parser (brackets 64, operators 256), so recursive walks need no guard.
 */

interface NodeBase {
  readonly span: Span;
}

// File

export interface FileNode extends NodeBase {
  readonly kind: 'file';
  /** The id under which the text was parsed: a path, or any other stable name. */
  readonly file: string;
  readonly text: string;
  readonly language?: LanguageNode;
  readonly statements: readonly StatementNode[];
  /** Every comment of the file in order, doc comments included. */
  readonly comments: readonly CommentNode[];
}

export interface LanguageNode extends NodeBase {
  readonly kind: 'language';
  readonly version: NumberNode;
}

export interface CommentNode extends NodeBase {
  readonly kind: 'comment';
  /** The comment as written, from its `#` to the last character that is not white space. */
  readonly text: string;
  /** Begins with `##`. */
  readonly doc: boolean;
}

// Statements

export type StatementNode =
  | ImportNode
  | UseNode
  | DefineNode
  | LetNode
  | GroupNode
  | RouteNode
  | DefaultNode
  | AdmissionNode
  | TestNode
  | EnsureNode
  | BrokenStatementNode;

interface StatementBase extends NodeBase {
  /** Keyword and label (or name): where a finding about the statement as a whole stands. */
  readonly head: Span;
  readonly annotations: readonly AnnotationNode[];
  /** Text of the `##` lines directly above, without the marks, joined by line breaks. */
  readonly doc?: string;
}

/** `@owner("x")`. Only `args` of calls have positional and named parts; see ArgsNode. */
export interface AnnotationNode extends NodeBase {
  readonly kind: 'annotation';
  readonly name: IdentNode;
  readonly args?: ArgsNode;
}

export interface ImportNode extends StatementBase {
  readonly kind: 'import';
  readonly path: StringNode;
  readonly alias?: IdentNode;
}

export interface UseNode extends StatementBase {
  readonly kind: 'use';
  readonly package: StringNode;
  readonly alias?: IdentNode;
  readonly options?: ObjectNode;
}

/** `define tier "70B" { … }`: `definedKind` is `tier`, `name` is `"70B"`; `define gateway { … }` has no name. */
export interface DefineNode extends StatementBase {
  readonly kind: 'define';
  readonly definedKind: IdentNode;
  readonly name?: StringNode;
  readonly body: ObjectNode;
}

export interface LetNode extends StatementBase {
  readonly kind: 'let';
  readonly name: IdentNode;
  readonly type?: TypeNode;
  readonly value: ExprNode;
}

export interface TypeNode extends NodeBase {
  readonly kind: 'type';
  readonly name: IdentNode;
  /** `list[number]` has the element type `number`. */
  readonly element?: TypeNode;
}

export interface GroupNode extends StatementBase {
  readonly kind: 'group';
  readonly label: StringNode;
  readonly when?: ExprNode;
  readonly with?: WithNode;
  readonly statements: readonly StatementNode[];
}

export interface RouteNode extends StatementBase {
  readonly kind: 'route';
  readonly label?: StringNode;
  readonly when?: ExprNode;
  readonly destination: DestinationNode;
  readonly otherwise: readonly ElseNode[];
}

export interface DefaultNode extends StatementBase {
  readonly kind: 'default';
  readonly action: DestinationNode | VerdictNode;
  /** Empty where the action is a verdict. */
  readonly otherwise: readonly ElseNode[];
}

export type Verb = 'admit' | 'reject' | 'queue';

export interface AdmissionNode extends StatementBase {
  readonly kind: 'admission';
  readonly verb: Verb;
  readonly label?: StringNode;
  readonly when?: ExprNode;
  readonly by?: ByNode;
  readonly with?: WithNode;
}

export interface TestNode extends StatementBase {
  readonly kind: 'test';
  readonly label: StringNode;
  /** In the order written. */
  readonly steps: readonly (GivenObjectNode | GivenFactsNode | ExpectNode)[];
}

/** `given endpoint "gpu-a" { tier: "70B" }`. */
export interface GivenObjectNode extends NodeBase {
  readonly kind: 'given-object';
  readonly definedKind: IdentNode;
  readonly name: StringNode;
  readonly body: ObjectNode;
}

/** `given complexity = 72, header["x"] = "y"`. */
export interface GivenFactsNode extends NodeBase {
  readonly kind: 'given-facts';
  readonly facts: readonly FactNode[];
}

export interface FactNode extends NodeBase {
  readonly kind: 'fact';
  readonly name: NameNode;
  readonly index?: StringNode;
  readonly value: ExprNode;
}

export interface ExpectNode extends NodeBase {
  readonly kind: 'expect';
  readonly negated: boolean;
  readonly outcome: OutcomeNode;
}

export interface EnsureNode extends StatementBase {
  readonly kind: 'ensure';
  readonly label: StringNode;
  readonly when?: ExprNode;
  readonly mode: 'always' | 'never';
  readonly outcome: OutcomeNode;
}

/** What a request comes to: `route "x" [to target]`, `to target`, a verdict, or `default`. */
export type OutcomeNode =
  | (NodeBase & { readonly kind: 'outcome-route'; readonly label: StringNode; readonly target?: TargetNode })
  | (NodeBase & { readonly kind: 'outcome-target'; readonly target: TargetNode })
  | (NodeBase & { readonly kind: 'outcome-verdict'; readonly verdict: VerdictNode })
  | (NodeBase & { readonly kind: 'outcome-default' });

/**
 * A statement that did not parse; its one finding is already reported. It keeps what could still be recognised, so that
 * nothing else is reported because of it: a broken `default` still counts as a default, a broken `let x` still declares `x`.
 */
export interface BrokenStatementNode extends StatementBase {
  readonly kind: 'broken';
  /** The source text, verbatim, from its first to its last token (annotations included). */
  readonly text: string;
  /** The statement word that was meant, if any could be guessed: `defualt` gives `default`. */
  readonly keyword?: StatementKeyword;
  /** The label or name that follows the keyword, for `define` the one after the kind. */
  readonly label?: StringNode;
  /** For `define`, its kind; for `let`, its name; for `use` and `import`, the alias. */
  readonly name?: IdentNode;
  /** The statements inside a group whose head is broken: each is parsed, and may be broken in turn. */
  readonly statements: readonly StatementNode[];
}

export type StatementKeyword =
  | 'language'
  | 'import'
  | 'use'
  | 'define'
  | 'let'
  | 'group'
  | 'route'
  | 'default'
  | 'admit'
  | 'reject'
  | 'queue'
  | 'test'
  | 'ensure';

// Clauses

/** `to targets [where] [by] [pick] [with]`. */
export interface DestinationNode extends NodeBase {
  readonly kind: 'destination';
  /** At least one. */
  readonly targets: readonly TargetNode[];
  readonly where?: ExprNode;
  readonly by?: ByNode;
  readonly pick?: PickNode;
  readonly with?: WithNode;
}

/** `tier "70B"`, `5% tier "next"`, `any`, a let-bound name. */
export interface TargetNode extends NodeBase {
  readonly kind: 'target';
  readonly share?: PercentNode;
  readonly name: NameNode;
  readonly label?: StringNode;
}

export interface ElseNode extends NodeBase {
  readonly kind: 'else';
  readonly action: DestinationNode | VerdictNode | NextNode;
}

export interface NextNode extends NodeBase {
  readonly kind: 'next';
}

export interface VerdictNode extends NodeBase {
  readonly kind: 'verdict';
  readonly verb: Verb;
  readonly by?: ByNode;
  readonly with?: WithNode;
}

/** `by a then b`: the first expression is the score, each further one breaks the ties of those before. */
export interface ByNode extends NodeBase {
  readonly kind: 'by';
  /** At least one. */
  readonly tiers: readonly ExprNode[];
}

export interface PickNode extends NodeBase {
  readonly kind: 'pick';
  readonly name: NameNode;
  readonly args?: ArgsNode;
}

export interface WithNode extends NodeBase {
  readonly kind: 'with';
  /** At least one. */
  readonly modifiers: readonly ModifierNode[];
}

/** `fallback tier "34B" (on: [error])`: name `fallback`, parts `tier` and `"34B"`, the second with arguments. */
export interface ModifierNode extends NodeBase {
  readonly kind: 'modifier';
  readonly name: NameNode;
  /** Arguments that stand right after the name: `retry_after(5s)`. */
  readonly args?: ArgsNode;
  readonly parts: readonly ModifierPartNode[];
}

export interface ModifierPartNode extends NodeBase {
  readonly kind: 'modifier-part';
  readonly value: LiteralNode | NameNode | ListNode;
  readonly args?: ArgsNode;
}

// Objects and arguments

export interface ObjectNode extends NodeBase {
  readonly kind: 'object';
  /** In the order written; a key may stand twice, which is for the checker to report. */
  readonly entries: readonly EntryNode[];
}

export interface EntryNode extends NodeBase {
  readonly kind: 'entry';
  readonly key: KeyNode;
  /** An expression or a nested object. */
  readonly value: ExprNode;
}

export interface KeyNode extends NodeBase {
  readonly kind: 'key';
  readonly text: string;
  readonly quoted: boolean;
}

export interface ArgsNode extends NodeBase {
  readonly kind: 'args';
  readonly items: readonly ArgNode[];
}

export interface ArgNode extends NodeBase {
  readonly kind: 'arg';
  /** Present for a named argument. */
  readonly name?: IdentNode;
  readonly value: ExprNode;
}

// Names

export interface IdentNode extends NodeBase {
  readonly kind: 'ident';
  readonly text: string;
}

/** `tenant.region`: two parts. The span covers all of them. */
export interface NameNode extends NodeBase {
  readonly kind: 'name';
  /** At least one. */
  readonly parts: readonly IdentNode[];
  /** The parts joined by dots. */
  readonly text: string;
}

// Literals: `value` is canonical, `raw` is the source text

export type LiteralNode =
  | NumberNode
  | StringNode
  | RegexNode
  | DurationNode
  | CountNode
  | BytesNode
  | RateNode
  | PercentNode
  | MoneyNode
  | BoolNode;

export interface NumberNode extends NodeBase {
  readonly kind: 'number';
  readonly value: number;
  readonly raw: string;
}

export interface StringNode extends NodeBase {
  readonly kind: 'string';
  /** With its escapes resolved. */
  readonly value: string;
  readonly raw: string;
}

export interface RegexNode extends NodeBase {
  readonly kind: 'regex';
  /** Between the quotes, with `\"` turned into `"` and all else as written. */
  readonly source: string;
  /** A subset of `ims`, each at most once. */
  readonly flags: string;
  readonly raw: string;
}

export interface DurationNode extends NodeBase {
  readonly kind: 'duration';
  /** Seconds: `90ms` is 0.09. */
  readonly value: number;
  readonly raw: string;
}

/** A plain number with a spelling: `32k` is 32000, `2Ki` is 2048, `70B` is 70e9. */
export interface CountNode extends NodeBase {
  readonly kind: 'count';
  readonly value: number;
  readonly raw: string;
}

export interface BytesNode extends NodeBase {
  readonly kind: 'bytes';
  /** Bytes: `1KB` is 1000, `1KiB` is 1024. */
  readonly value: number;
  readonly raw: string;
}

export interface RateNode extends NodeBase {
  readonly kind: 'rate';
  /** Per second: `60/min` is 1, `$3600/h` is 1 dollar per second. */
  readonly value: number;
  readonly of: 'count' | 'money';
  readonly raw: string;
}

export interface PercentNode extends NodeBase {
  readonly kind: 'percent';
  /** A fraction: `95%` is 0.95. */
  readonly value: number;
  readonly raw: string;
}

export interface MoneyNode extends NodeBase {
  readonly kind: 'money';
  /** Dollars. */
  readonly value: number;
  readonly raw: string;
}

export interface BoolNode extends NodeBase {
  readonly kind: 'bool';
  readonly value: boolean;
  readonly raw: string;
}

// Expressions

export type ExprNode =
  | LiteralNode
  | NameNode
  | CallNode
  | IndexNode
  | RefNode
  | ListNode
  | ObjectNode
  | ParenNode
  | NegateNode
  | ArithmeticNode
  | CoalesceNode
  | CompareNode
  | InNode
  | MatchesNode
  | ContainsNode
  | ExistsNode
  | NotNode
  | LogicNode;

/** `min(kv_cache_used, tier "70B")`. */
export interface CallNode extends NodeBase {
  readonly kind: 'call';
  readonly callee: NameNode;
  readonly args: ArgsNode;
}

/** `header["x-slo"]`. */
export interface IndexNode extends NodeBase {
  readonly kind: 'index';
  readonly object: NameNode;
  readonly index: ExprNode;
}

/** `tier "70B"` as a value. */
export interface RefNode extends NodeBase {
  readonly kind: 'ref';
  readonly name: NameNode;
  readonly label: StringNode;
}

/** At most 10,000 items. Objects stand only in lists that are values of an object: `endpoints: [{ url: "…" }]`. */
export interface ListNode extends NodeBase {
  readonly kind: 'list';
  readonly items: readonly ExprNode[];
}

export interface ParenNode extends NodeBase {
  readonly kind: 'paren';
  readonly inner: ExprNode;
}

export interface NegateNode extends NodeBase {
  readonly kind: 'negate';
  readonly operand: ExprNode;
}

export type ArithmeticOperator = '+' | '-' | '*' | '/';

/** Left-associative. */
export interface ArithmeticNode extends NodeBase {
  readonly kind: 'arithmetic';
  readonly operator: ArithmeticOperator;
  readonly operatorSpan: Span;
  readonly left: ExprNode;
  readonly right: ExprNode;
}

/** `a ?? b ?? c`: at least two operands, the first known one counts. */
export interface CoalesceNode extends NodeBase {
  readonly kind: 'coalesce';
  readonly operands: readonly ExprNode[];
}

export type CompareOperator = '==' | '!=' | '<' | '<=' | '>' | '>=';

export interface CompareNode extends NodeBase {
  readonly kind: 'compare';
  readonly operator: CompareOperator;
  readonly operatorSpan: Span;
  readonly left: ExprNode;
  readonly right: ExprNode;
}

/** `x in list`, `x not in a..b`. */
export interface InNode extends NodeBase {
  readonly kind: 'in';
  readonly negated: boolean;
  readonly subject: ExprNode;
  readonly set: ExprNode | RangeNode;
}

/** `0..250`, both ends included. Stands only to the right of `in`. */
export interface RangeNode extends NodeBase {
  readonly kind: 'range';
  readonly low: ExprNode;
  readonly high: ExprNode;
}

export interface MatchesNode extends NodeBase {
  readonly kind: 'matches';
  readonly subject: ExprNode;
  readonly regex: RegexNode;
}

export interface ContainsNode extends NodeBase {
  readonly kind: 'contains';
  readonly subject: ExprNode;
  readonly item: ExprNode;
}

export interface ExistsNode extends NodeBase {
  readonly kind: 'exists';
  readonly subject: ExprNode;
}

export interface NotNode extends NodeBase {
  readonly kind: 'not';
  readonly operand: ExprNode;
}

/** `a and b and c` is one node with three operands (at least two). Mixed operators nest, `and` inside `or`. */
export interface LogicNode extends NodeBase {
  readonly kind: 'and' | 'or';
  readonly operands: readonly ExprNode[];
}

export type Node =
  | FileNode
  | LanguageNode
  | CommentNode
  | StatementNode
  | AnnotationNode
  | TypeNode
  | GivenObjectNode
  | GivenFactsNode
  | FactNode
  | ExpectNode
  | OutcomeNode
  | DestinationNode
  | TargetNode
  | ElseNode
  | NextNode
  | VerdictNode
  | ByNode
  | PickNode
  | WithNode
  | ModifierNode
  | ModifierPartNode
  | EntryNode
  | KeyNode
  | ArgsNode
  | ArgNode
  | IdentNode
  | ExprNode
  | RangeNode;

/** The expression without the parentheses around it. */
export const withoutParens = (expr: ExprNode): ExprNode => {
  let inner = expr;
  while (inner.kind === 'paren') inner = inner.inner;
  return inner;
};

export const isLiteral = (expr: ExprNode): expr is LiteralNode => {
  switch (expr.kind) {
    case 'number':
    case 'string':
    case 'regex':
    case 'duration':
    case 'count':
    case 'bytes':
    case 'rate':
    case 'percent':
    case 'money':
    case 'bool':
      return true;
    default:
      return false;
  }
};
