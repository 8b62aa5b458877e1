import { EmbeddedActionsParser, type IOrAlt, type IToken, type ParserMethod, type TokenType } from 'chevrotain';
import { createDiagnostic, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type {
  AnnotationNode,
  ArgNode,
  ArgsNode,
  ArithmeticOperator,
  ByNode,
  CompareOperator,
  DefineNode,
  DestinationNode,
  ElseNode,
  EntryNode,
  ExprNode,
  FactNode,
  IdentNode,
  KeyNode,
  LanguageNode,
  ListNode,
  LiteralNode,
  ModifierNode,
  ModifierPartNode,
  NameNode,
  NextNode,
  NumberNode,
  ObjectNode,
  OutcomeNode,
  PercentNode,
  PickNode,
  RangeNode,
  RegexNode,
  StatementNode,
  StringNode,
  TargetNode,
  TestNode,
  TypeNode,
  Verb,
  VerdictNode,
  WithNode,
} from './ast.ts';
import type { Span } from './span.ts';
import * as t from './token-types.ts';
import type { LexToken } from './token-types.ts';

/** How a statement failed to parse, in terms of tokens. The wording is made elsewhere. */
export interface SyntaxFailure {
  /** `mismatch`: one token type was due; `alternatives`: several were; `leftover`: the statement was complete. */
  readonly kind: 'mismatch' | 'alternatives' | 'leftover';
  /** The grammar rules that were open, outermost first. */
  readonly rules: readonly string[];
  /** Token types that could have come, where that is known. */
  readonly expected: readonly TokenType[];
  /** Index of the token found instead, in the statement's tokens; their count if they ended. */
  readonly index: number;
  /** The clause in which reading stood last. */
  readonly clause: Clause;
}

export type Clause = 'head' | 'when' | 'to' | 'where' | 'by' | 'pick' | 'with' | 'else';

export interface StatementReading<T> {
  readonly node?: T;
  readonly failure?: SyntaxFailure;
  /** Mistakes that could be read as what they mean. */
  readonly diagnostics: readonly Diagnostic[];
}

/** A group up to its `{`; its statements are read one by one. */
export type GroupHead = Extract<StatementNode, { kind: 'group' }>;
export type ReadStatement = Exclude<StatementNode, { kind: 'broken' }> | LanguageNode;

/** The deepest expression allowed, in operators. */
export const maxExpressionDepth = 256;

interface FailureSeen {
  readonly kind: 'mismatch' | 'alternatives';
  readonly expected: readonly TokenType[];
  /** How many tokens after the one reported the wrong one stands. */
  readonly offset: 0 | 1;
}

const isOf = (token: IToken, type: TokenType): boolean =>
  token.tokenType === type || token.tokenType.CATEGORIES?.includes(type) === true;

/** Where the first token fits some of the paths of two, the second is the wrong one. */
const expectedAmong = (paths: readonly (readonly TokenType[])[], actual: IToken | undefined): FailureSeen => {
  const begun = paths.filter(([first]) => first !== undefined && actual !== undefined && isOf(actual, first));
  const offset = begun.some((path) => path.length > 1) ? 1 : 0;
  const due = (offset === 1 ? begun : paths).flatMap((path) => path[offset] ?? []);
  return { kind: 'alternatives', expected: [...new Set(due)], offset };
};

type Rule<T> = ParserMethod<[], T>;
type Alternatives<T> = readonly IOrAlt<T>[];

/**
 * The grammar of one statement (a group ends at its `{`), LL(2), with the tree built on the way. It reports the first
 * failure and does not recover: the caller cuts the file into statements, so that one never disturbs another.
 *
 * A class because the parser library wants one; an instance serves any number of parses, one at a time.
 */
export class StatementParser extends EmbeddedActionsParser {
  private file = '';
  private found: Diagnostic[] = [];
  private seen: FailureSeen | undefined;
  private clause: Clause = 'head';
  private objectDepth = 0;
  private readonly depths = new Map<ExprNode, number>();
  private tooDeep: Span | undefined;

  constructor() {
    super([...t.allTokenTypes], {
      maxLookahead: 2,
      recoveryEnabled: false,
      errorMessageProvider: {
        buildMismatchTokenMessage: ({ expected }) => {
          this.seen = { kind: 'mismatch', expected: [expected], offset: 0 };
          return '';
        },
        buildNotAllInputParsedMessage: () => '',
        buildNoViableAltMessage: ({ expectedPathsPerAlt, actual }) => {
          this.seen = expectedAmong(expectedPathsPerAlt.flat(), actual[0]);
          return '';
        },
        buildEarlyExitMessage: () => '',
      },
    });
    this.performSelfAnalysis();
  }

  /** Reads one statement, which must take all the tokens. Annotations are not among them. */
  readStatement(tokens: readonly LexToken[], file: string): StatementReading<ReadStatement> {
    return this.read(tokens, file, () => this.statement());
  }

  /** Reads annotations, as many as there are; the rest of the tokens is left, `taken` says where. */
  readAnnotations(
    tokens: readonly LexToken[],
    file: string,
  ): StatementReading<readonly AnnotationNode[]> & { readonly taken: number } {
    let node: readonly AnnotationNode[] = [];
    const reading = this.read(tokens, file, () => {
      node = this.annotations();
      return node;
    });
    const { failure } = reading;
    if (failure !== undefined && failure.kind !== 'leftover') return { ...reading, taken: 0 };
    return { node, diagnostics: reading.diagnostics, taken: failure?.index ?? tokens.length };
  }

  private read<T>(tokens: readonly LexToken[], file: string, run: () => T): StatementReading<T> {
    this.input = [...tokens];
    this.file = file;
    this.found = [];
    this.seen = undefined;
    this.clause = 'head';
    this.objectDepth = 0;
    this.depths.clear();
    this.tooDeep = undefined;
    const node = run();
    const [error] = this.errors;
    const diagnostics = this.found;
    if (this.tooDeep !== undefined) {
      diagnostics.length = 0;
      diagnostics.push(
        createDiagnostic('E0142', this.tooDeep, `this expression is more than ${maxExpressionDepth} operators deep`, {
          help: 'name parts of it by `let`',
        }),
      );
      return { diagnostics };
    }
    if (error === undefined) return { node, diagnostics };
    const position = tokens.indexOf(error.token as LexToken);
    const seen = this.seen as FailureSeen | undefined;
    return {
      diagnostics,
      failure: {
        kind: error.name === 'NotAllInputParsedException' || seen === undefined ? 'leftover' : seen.kind,
        rules: error.context?.ruleStack ?? [],
        expected: seen?.expected ?? [],
        index: position === -1 ? tokens.length : Math.min(position + (seen?.offset ?? 0), tokens.length),
        clause: this.clause,
      },
    };
  }

  // Building

  private here(): number {
    return this.LA(1).startOffset;
  }

  private from(start: number): Span {
    return { file: this.file, start, end: t.endOf(this.LA(0)) };
  }

  private spanOf(token: IToken): Span {
    return { file: this.file, start: token.startOffset, end: t.endOf(token) };
  }

  private ident(token: IToken): IdentNode {
    return { kind: 'ident', span: this.spanOf(token), text: (token as LexToken).ascii ?? token.image };
  }

  /** The sign that a token stands for, which is not always the one written. */
  private signOf<T extends string>(token: IToken): T {
    return (this.RECORDING_PHASE ? token.image : token.tokenType.name) as T;
  }

  private literalOf<T extends LiteralNode>(token: IToken): T {
    return (token as LexToken).literal as T;
  }

  private enter(clause: Clause): void {
    this.clause = clause;
  }

  private report(token: IToken, code: 'E0109' | 'E0110', message: string, meant: string, fix: string): void {
    if (this.RECORDING_PHASE) return;
    const span = this.spanOf(token);
    this.found.push(createDiagnostic(code, span, message, { fix: { message: fix, edits: [{ span, text: meant }] } }));
  }

  /** Notes how deep an operator node is; leaves count 0. */
  private deepen<T extends ExprNode>(node: T, ...operands: readonly ExprNode[]): T {
    if (this.RECORDING_PHASE) return node;
    let depth = 0;
    for (const operand of operands) depth = Math.max(depth, this.depthOf(operand));
    return this.noteDepth(node, depth + 1);
  }

  /** The same for operands that are taken two by two from the left, as those of `??` are once they are checked. */
  private deepenInTurn<T extends ExprNode>(node: T, operands: readonly ExprNode[]): T {
    if (this.RECORDING_PHASE) return node;
    const depth = operands.reduce((sum, operand, i) => (i === 0 ? 0 : 1) + Math.max(sum, this.depthOf(operand)), 0);
    return this.noteDepth(node, depth);
  }

  private depthOf(node: ExprNode): number {
    return this.depths.get(node) ?? 0;
  }

  private noteDepth<T extends ExprNode>(node: T, depth: number): T {
    this.depths.set(node, depth);
    if (depth > maxExpressionDepth) this.tooDeep ??= node.span;
    return node;
  }

  // Statements

  private readonly statement: Rule<ReadStatement> = this.RULE<() => ReadStatement>('statement', () =>
    this.OR<Alternatives<ReadStatement>>([
      { ALT: () => this.SUBRULE(this.languageStatement) },
      { ALT: () => this.SUBRULE(this.importStatement) },
      { ALT: () => this.SUBRULE(this.useStatement) },
      { ALT: () => this.SUBRULE(this.defineStatement) },
      { ALT: () => this.SUBRULE(this.letStatement) },
      { ALT: () => this.SUBRULE(this.groupHead) },
      { ALT: () => this.SUBRULE(this.routeStatement) },
      { ALT: () => this.SUBRULE(this.defaultStatement) },
      { ALT: () => this.SUBRULE(this.admissionStatement) },
      { ALT: () => this.SUBRULE(this.testStatement) },
      { ALT: () => this.SUBRULE(this.ensureStatement) },
    ]),
  );

  private readonly annotations: Rule<readonly AnnotationNode[]> = this.RULE<() => readonly AnnotationNode[]>(
    'annotations',
    () => {
      const nodes: AnnotationNode[] = [];
      this.MANY(() => {
        const start = this.here();
        this.CONSUME(t.At);
        const name = this.ident(this.CONSUME(t.Ident));
        const args = this.OPTION(() => this.SUBRULE(this.args));
        nodes.push({ kind: 'annotation', span: this.from(start), name, ...(args === undefined ? {} : { args }) });
      });
      return nodes;
    },
  );

  private readonly languageStatement: Rule<LanguageNode> = this.RULE<() => LanguageNode>('languageStatement', () => {
    const start = this.here();
    this.CONSUME(t.Language);
    const version = this.literalOf<NumberNode>(this.CONSUME(t.PlainNumber));
    return { kind: 'language', span: this.from(start), version };
  });

  private readonly importStatement: Rule<ReadStatement> = this.RULE<() => ReadStatement>('importStatement', () => {
    const start = this.here();
    this.CONSUME(t.Import);
    const path = this.literalOf<StringNode>(this.CONSUME(t.StringLiteral));
    const head = this.from(start);
    const alias = this.OPTION(() => this.SUBRULE(this.alias));
    return {
      kind: 'import',
      span: this.from(start),
      head,
      annotations: [],
      path,
      ...(alias === undefined ? {} : { alias }),
    };
  });

  private readonly alias: Rule<IdentNode> = this.RULE<() => IdentNode>('alias', () => {
    this.CONSUME(t.As);
    return this.ident(this.CONSUME(t.Ident));
  });

  private readonly useStatement: Rule<ReadStatement> = this.RULE<() => ReadStatement>('useStatement', () => {
    const start = this.here();
    this.CONSUME(t.Use);
    const packageName = this.literalOf<StringNode>(this.CONSUME(t.StringLiteral));
    const head = this.from(start);
    const alias = this.OPTION(() => this.SUBRULE(this.alias));
    const options = this.OPTION2(() => this.SUBRULE(this.object));
    return {
      kind: 'use',
      span: this.from(start),
      head,
      annotations: [],
      package: packageName,
      ...(alias === undefined ? {} : { alias }),
      ...(options === undefined ? {} : { options }),
    };
  });

  private readonly defineStatement: Rule<DefineNode> = this.RULE<() => DefineNode>('defineStatement', () => {
    const start = this.here();
    this.CONSUME(t.Define);
    const definedKind = this.ident(this.CONSUME(t.Ident));
    const name = this.OPTION(() => this.literalOf<StringNode>(this.CONSUME(t.StringLiteral)));
    const head = this.from(start);
    const body = this.SUBRULE(this.object);
    return {
      kind: 'define',
      span: this.from(start),
      head,
      annotations: [],
      definedKind,
      body,
      ...(name === undefined ? {} : { name }),
    };
  });

  private readonly letStatement: Rule<ReadStatement> = this.RULE<() => ReadStatement>('letStatement', () => {
    const start = this.here();
    this.CONSUME(t.Let);
    const name = this.ident(this.CONSUME(t.Ident));
    const head = this.from(start);
    const type = this.OPTION(() => {
      this.CONSUME(t.Colon);
      return this.SUBRULE(this.type);
    });
    this.CONSUME(t.Assign);
    const value = this.SUBRULE(this.expr);
    return {
      kind: 'let',
      span: this.from(start),
      head,
      annotations: [],
      name,
      value,
      ...(type === undefined ? {} : { type }),
    };
  });

  private readonly type: Rule<TypeNode> = this.RULE<() => TypeNode>('type', () => {
    const start = this.here();
    const name = this.ident(this.CONSUME(t.Ident));
    const element = this.OPTION(() => {
      this.CONSUME(t.LSquare);
      const inner = this.SUBRULE(this.type);
      this.CONSUME(t.RSquare);
      return inner;
    });
    return { kind: 'type', span: this.from(start), name, ...(element === undefined ? {} : { element }) };
  });

  private readonly groupHead: Rule<GroupHead> = this.RULE<() => GroupHead>('groupHead', () => {
    const start = this.here();
    this.CONSUME(t.Group);
    const label = this.literalOf<StringNode>(this.CONSUME(t.StringLiteral));
    const head = this.from(start);
    const when = this.OPTION(() => this.SUBRULE(this.whenClause));
    const modifiers = this.OPTION2(() => this.SUBRULE(this.withClause));
    this.CONSUME(t.LCurly);
    return {
      kind: 'group',
      span: this.from(start),
      head,
      annotations: [],
      label,
      statements: [],
      ...(when === undefined ? {} : { when }),
      ...(modifiers === undefined ? {} : { with: modifiers }),
    };
  });

  private readonly routeStatement: Rule<ReadStatement> = this.RULE<() => ReadStatement>('routeStatement', () => {
    const start = this.here();
    this.CONSUME(t.Route);
    const label = this.OPTION(() => this.literalOf<StringNode>(this.CONSUME(t.StringLiteral)));
    const head = this.from(start);
    const when = this.OPTION2(() => this.SUBRULE(this.whenClause));
    const destination = this.SUBRULE(this.destination);
    const otherwise: ElseNode[] = [];
    this.MANY(() => {
      otherwise.push(this.SUBRULE(this.elseClause));
    });
    return {
      kind: 'route',
      span: this.from(start),
      head,
      annotations: [],
      destination,
      otherwise,
      ...(label === undefined ? {} : { label }),
      ...(when === undefined ? {} : { when }),
    };
  });

  private readonly defaultStatement: Rule<ReadStatement> = this.RULE<() => ReadStatement>('defaultStatement', () => {
    const start = this.here();
    this.CONSUME(t.Default);
    const head = this.from(start);
    const otherwise: ElseNode[] = [];
    const action = this.OR<Alternatives<DestinationNode | VerdictNode>>([
      {
        ALT: () => {
          const destination = this.SUBRULE(this.destination);
          this.MANY(() => {
            otherwise.push(this.SUBRULE(this.elseClause));
          });
          return destination;
        },
      },
      { ALT: () => this.SUBRULE(this.verdict) },
    ]);
    return { kind: 'default', span: this.from(start), head, annotations: [], action, otherwise };
  });

  private readonly admissionStatement: Rule<ReadStatement> = this.RULE<() => ReadStatement>(
    'admissionStatement',
    () => {
      const start = this.here();
      const verb = this.signOf<Verb>(this.CONSUME(t.VerbWord));
      const label = this.OPTION(() => this.literalOf<StringNode>(this.CONSUME(t.StringLiteral)));
      const head = this.from(start);
      const when = this.OPTION2(() => this.SUBRULE(this.whenClause));
      const by = this.OPTION3(() => this.SUBRULE(this.byClause));
      const modifiers = this.OPTION4(() => this.SUBRULE(this.withClause));
      return {
        kind: 'admission',
        span: this.from(start),
        head,
        annotations: [],
        verb,
        ...(label === undefined ? {} : { label }),
        ...(when === undefined ? {} : { when }),
        ...(by === undefined ? {} : { by }),
        ...(modifiers === undefined ? {} : { with: modifiers }),
      };
    },
  );

  private readonly testStatement: Rule<TestNode> = this.RULE<() => TestNode>('testStatement', () => {
    const start = this.here();
    this.CONSUME(t.Test);
    const label = this.literalOf<StringNode>(this.CONSUME(t.StringLiteral));
    const head = this.from(start);
    this.CONSUME(t.LCurly);
    const steps: TestNode['steps'][number][] = [];
    this.MANY(() => {
      steps.push(this.OR([{ ALT: () => this.SUBRULE(this.givenStep) }, { ALT: () => this.SUBRULE(this.expectStep) }]));
    });
    this.CONSUME(t.RCurly);
    return { kind: 'test', span: this.from(start), head, annotations: [], label, steps };
  });

  private readonly givenStep: Rule<TestNode['steps'][number]> = this.RULE<() => TestNode['steps'][number]>(
    'givenStep',
    () => {
      const start = this.here();
      this.CONSUME(t.Given);
      return this.OR<Alternatives<TestNode['steps'][number]>>([
        {
          ALT: () => {
            const definedKind = this.ident(this.CONSUME(t.Ident));
            const name = this.literalOf<StringNode>(this.CONSUME(t.StringLiteral));
            const body = this.SUBRULE(this.object);
            return { kind: 'given-object', span: this.from(start), definedKind, name, body };
          },
        },
        {
          ALT: () => {
            const facts: FactNode[] = [];
            this.AT_LEAST_ONE_SEP({
              SEP: t.Comma,
              DEF: () => {
                facts.push(this.SUBRULE(this.fact));
              },
            });
            return { kind: 'given-facts', span: this.from(start), facts };
          },
        },
      ]);
    },
  );

  private readonly fact: Rule<FactNode> = this.RULE<() => FactNode>('fact', () => {
    const start = this.here();
    const name = this.SUBRULE(this.nameRule);
    const index = this.OPTION(() => {
      this.CONSUME(t.LSquare);
      const key = this.literalOf<StringNode>(this.CONSUME(t.StringLiteral));
      this.CONSUME(t.RSquare);
      return key;
    });
    this.CONSUME(t.Assign);
    const value = this.SUBRULE(this.expr);
    return { kind: 'fact', span: this.from(start), name, value, ...(index === undefined ? {} : { index }) };
  });

  private readonly expectStep: Rule<TestNode['steps'][number]> = this.RULE<() => TestNode['steps'][number]>(
    'expectStep',
    () => {
      const start = this.here();
      this.CONSUME(t.Expect);
      const negated = this.OPTION(() => this.CONSUME(t.Not)) !== undefined;
      const outcome = this.SUBRULE(this.outcome);
      return { kind: 'expect', span: this.from(start), negated, outcome };
    },
  );

  private readonly ensureStatement: Rule<ReadStatement> = this.RULE<() => ReadStatement>('ensureStatement', () => {
    const start = this.here();
    this.CONSUME(t.Ensure);
    const label = this.literalOf<StringNode>(this.CONSUME(t.StringLiteral));
    const head = this.from(start);
    const when = this.OPTION(() => this.SUBRULE(this.whenClause));
    const mode = this.OR<Alternatives<'always' | 'never'>>([
      {
        ALT: () => {
          this.CONSUME(t.Always);
          return 'always';
        },
      },
      {
        ALT: () => {
          this.CONSUME(t.Never);
          return 'never';
        },
      },
    ]);
    const outcome = this.SUBRULE(this.outcome);
    return {
      kind: 'ensure',
      span: this.from(start),
      head,
      annotations: [],
      label,
      mode,
      outcome,
      ...(when === undefined ? {} : { when }),
    };
  });

  private readonly outcome: Rule<OutcomeNode> = this.RULE<() => OutcomeNode>('outcome', () => {
    const start = this.here();
    return this.OR<Alternatives<OutcomeNode>>([
      {
        ALT: () => {
          this.CONSUME(t.Route);
          const label = this.literalOf<StringNode>(this.CONSUME(t.StringLiteral));
          const target = this.OPTION(() => {
            this.CONSUME(t.To);
            return this.SUBRULE(this.target);
          });
          return { kind: 'outcome-route', span: this.from(start), label, ...(target === undefined ? {} : { target }) };
        },
      },
      {
        ALT: () => {
          this.CONSUME2(t.To);
          const target = this.SUBRULE2(this.target);
          return { kind: 'outcome-target', span: this.from(start), target };
        },
      },
      {
        ALT: () => {
          const verdict = this.SUBRULE(this.verdict);
          return { kind: 'outcome-verdict', span: this.from(start), verdict };
        },
      },
      {
        ALT: () => {
          this.CONSUME(t.Default);
          return { kind: 'outcome-default', span: this.from(start) };
        },
      },
    ]);
  });

  // Clauses

  private readonly whenClause: Rule<ExprNode> = this.RULE<() => ExprNode>('whenClause', () => {
    this.enter('when');
    this.CONSUME(t.When);
    return this.SUBRULE(this.expr);
  });

  private readonly destination: Rule<DestinationNode> = this.RULE<() => DestinationNode>('destination', () => {
    const start = this.here();
    const targets: TargetNode[] = [];
    this.CONSUME(t.To);
    this.enter('to');
    targets.push(this.SUBRULE(this.target));
    this.MANY(() => {
      this.SUBRULE(this.separator);
      targets.push(this.SUBRULE2(this.target));
    });
    const where = this.OPTION(() => this.SUBRULE(this.whereClause));
    const by = this.OPTION2(() => this.SUBRULE(this.byClause));
    const pick = this.OPTION3(() => this.SUBRULE(this.pickClause));
    const modifiers = this.OPTION4(() => this.SUBRULE(this.withClause));
    return {
      kind: 'destination',
      span: this.from(start),
      targets,
      ...(where === undefined ? {} : { where }),
      ...(by === undefined ? {} : { by }),
      ...(pick === undefined ? {} : { pick }),
      ...(modifiers === undefined ? {} : { with: modifiers }),
    };
  });

  /** A comma; `and` is read as one and reported. */
  private readonly separator: Rule<void> = this.RULE<() => void>('separator', () => {
    this.OR([
      { ALT: () => this.CONSUME(t.Comma) },
      {
        ALT: () => {
          const token = this.CONSUME(t.And);
          const what = this.clause === 'with' ? 'modifiers' : 'targets';
          this.report(token, 'E0110', `${what} are separated by commas, not by \`and\``, ',', 'use a comma');
        },
      },
    ]);
  });

  private readonly target: Rule<TargetNode> = this.RULE<() => TargetNode>('target', () => {
    const start = this.here();
    const share = this.OPTION(() => this.literalOf<PercentNode>(this.CONSUME(t.PercentLiteral)));
    const name = this.SUBRULE(this.nameRule);
    const label = this.OPTION2(() => this.literalOf<StringNode>(this.CONSUME(t.StringLiteral)));
    return {
      kind: 'target',
      span: this.from(start),
      name,
      ...(share === undefined ? {} : { share }),
      ...(label === undefined ? {} : { label }),
    };
  });

  private readonly whereClause: Rule<ExprNode> = this.RULE<() => ExprNode>('whereClause', () => {
    this.enter('where');
    this.CONSUME(t.Where);
    return this.SUBRULE(this.expr);
  });

  private readonly byClause: Rule<ByNode> = this.RULE<() => ByNode>('byClause', () => {
    const start = this.here();
    const tiers: ExprNode[] = [];
    this.enter('by');
    this.CONSUME(t.By);
    tiers.push(this.SUBRULE(this.sum));
    this.MANY(() => {
      this.CONSUME(t.Then);
      tiers.push(this.SUBRULE2(this.sum));
    });
    return { kind: 'by', span: this.from(start), tiers };
  });

  private readonly pickClause: Rule<PickNode> = this.RULE<() => PickNode>('pickClause', () => {
    const start = this.here();
    this.enter('pick');
    this.CONSUME(t.Pick);
    const name = this.SUBRULE(this.nameRule);
    const args = this.OPTION(() => this.SUBRULE(this.args));
    return { kind: 'pick', span: this.from(start), name, ...(args === undefined ? {} : { args }) };
  });

  private readonly withClause: Rule<WithNode> = this.RULE<() => WithNode>('withClause', () => {
    const start = this.here();
    const modifiers: ModifierNode[] = [];
    this.enter('with');
    this.CONSUME(t.With);
    modifiers.push(this.SUBRULE(this.modifier));
    this.MANY(() => {
      this.SUBRULE(this.separator);
      modifiers.push(this.SUBRULE2(this.modifier));
    });
    return { kind: 'with', span: this.from(start), modifiers };
  });

  private readonly modifier: Rule<ModifierNode> = this.RULE<() => ModifierNode>('modifier', () => {
    const start = this.here();
    const parts: ModifierPartNode[] = [];
    const name = this.SUBRULE(this.nameRule);
    const args = this.OPTION(() => this.SUBRULE(this.args));
    this.MANY(() => {
      parts.push(this.SUBRULE(this.modifierPart));
    });
    return { kind: 'modifier', span: this.from(start), name, parts, ...(args === undefined ? {} : { args }) };
  });

  private readonly modifierPart: Rule<ModifierPartNode> = this.RULE<() => ModifierPartNode>('modifierPart', () => {
    const start = this.here();
    const value = this.OR<Alternatives<ModifierPartNode['value']>>([
      { ALT: () => this.literalOf<LiteralNode>(this.CONSUME(t.Literal)) },
      { ALT: () => this.SUBRULE(this.nameRule) },
      { ALT: () => this.SUBRULE(this.list) },
    ]);
    const args = this.OPTION(() => this.SUBRULE(this.args));
    return { kind: 'modifier-part', span: this.from(start), value, ...(args === undefined ? {} : { args }) };
  });

  private readonly elseClause: Rule<ElseNode> = this.RULE<() => ElseNode>('elseClause', () => {
    const start = this.here();
    this.enter('else');
    this.CONSUME(t.Else);
    const action = this.OR<Alternatives<DestinationNode | VerdictNode | NextNode>>([
      { ALT: () => this.SUBRULE(this.destination) },
      { ALT: () => this.SUBRULE(this.verdict) },
      { ALT: () => ({ kind: 'next', span: this.spanOf(this.CONSUME(t.Next)) }) },
    ]);
    return { kind: 'else', span: this.from(start), action };
  });

  private readonly verdict: Rule<VerdictNode> = this.RULE<() => VerdictNode>('verdict', () => {
    const start = this.here();
    const verb = this.signOf<Verb>(this.CONSUME(t.VerbWord));
    const by = this.OPTION(() => this.SUBRULE(this.byClause));
    const modifiers = this.OPTION2(() => this.SUBRULE(this.withClause));
    return {
      kind: 'verdict',
      span: this.from(start),
      verb,
      ...(by === undefined ? {} : { by }),
      ...(modifiers === undefined ? {} : { with: modifiers }),
    };
  });

  // Objects, arguments, lists, names

  private readonly object: Rule<ObjectNode> = this.RULE<() => ObjectNode>('object', () => {
    const start = this.here();
    const entries: EntryNode[] = [];
    this.CONSUME(t.LCurly);
    this.objectDepth += 1;
    this.MANY(() => {
      entries.push(this.SUBRULE(this.entry));
      this.OPTION(() => this.CONSUME(t.Comma));
    });
    this.objectDepth -= 1;
    this.CONSUME(t.RCurly);
    return { kind: 'object', span: this.from(start), entries };
  });

  private readonly entry: Rule<EntryNode> = this.RULE<() => EntryNode>('entry', () => {
    const start = this.here();
    const key = this.OR<Alternatives<KeyNode>>([
      {
        ALT: () => {
          const token = this.CONSUME(t.Word);
          return { kind: 'key', span: this.spanOf(token), text: token.image, quoted: false };
        },
      },
      {
        ALT: () => {
          const token = this.CONSUME(t.StringLiteral);
          const text = this.RECORDING_PHASE ? '' : this.literalOf<StringNode>(token).value;
          return { kind: 'key', span: this.spanOf(token), text, quoted: true };
        },
      },
    ]);
    this.CONSUME(t.Colon);
    const value = this.OR2<Alternatives<ExprNode>>([
      { ALT: () => this.SUBRULE(this.object) },
      { ALT: () => this.SUBRULE(this.expr) },
    ]);
    return { kind: 'entry', span: this.from(start), key, value };
  });

  private readonly args: Rule<ArgsNode> = this.RULE<() => ArgsNode>('args', () => {
    const start = this.here();
    const items: ArgNode[] = [];
    this.CONSUME(t.LParen);
    this.OPTION(() => {
      items.push(this.SUBRULE(this.arg));
      this.MANY(() => {
        this.CONSUME(t.Comma);
        items.push(this.SUBRULE2(this.arg));
      });
    });
    this.CONSUME(t.RParen);
    return { kind: 'args', span: this.from(start), items };
  });

  private readonly arg: Rule<ArgNode> = this.RULE<() => ArgNode>('arg', () => {
    const start = this.here();
    const name = this.OPTION(() => {
      const token = this.CONSUME(t.Word);
      this.CONSUME(t.Colon);
      return this.ident(token);
    });
    const value = this.SUBRULE(this.expr);
    return { kind: 'arg', span: this.from(start), value, ...(name === undefined ? {} : { name }) };
  });

  private readonly list: Rule<ListNode> = this.RULE<() => ListNode>('list', () => {
    const start = this.here();
    const items: ExprNode[] = [];
    this.CONSUME(t.LSquare);
    this.OPTION(() => {
      items.push(this.SUBRULE(this.item));
      this.MANY(() => {
        this.CONSUME(t.Comma);
        items.push(this.SUBRULE2(this.item));
      });
    });
    this.CONSUME(t.RSquare);
    return { kind: 'list', span: this.from(start), items };
  });

  private readonly item: Rule<ExprNode> = this.RULE<() => ExprNode>('item', () =>
    this.OR<Alternatives<ExprNode>>([
      { GATE: () => this.objectDepth > 0, ALT: () => this.SUBRULE(this.object) },
      { ALT: () => this.SUBRULE(this.expr) },
    ]),
  );

  private readonly nameRule: Rule<NameNode> = this.RULE<() => NameNode>('name', () => {
    const first = this.CONSUME(t.Ident);
    const parts = [this.ident(first)];
    this.MANY(() => {
      this.CONSUME(t.Dot);
      parts.push(this.ident(this.CONSUME(t.Word)));
    });
    const text = parts.length === 1 ? (parts[0]?.text ?? '') : parts.map((part) => part.text).join('.');
    return { kind: 'name', span: this.from(first.startOffset), parts, text };
  });

  // Expressions

  private readonly expr: Rule<ExprNode> = this.RULE<() => ExprNode>('expr', () => {
    const start = this.here();
    const first = this.SUBRULE(this.conjunction);
    let operands: ExprNode[] | undefined;
    this.MANY(() => {
      this.CONSUME(t.Or);
      operands ??= [first];
      operands.push(this.SUBRULE2(this.conjunction));
    });
    return operands === undefined ? first : this.deepen({ kind: 'or', span: this.from(start), operands }, ...operands);
  });

  private readonly conjunction: Rule<ExprNode> = this.RULE<() => ExprNode>('conjunction', () => {
    const start = this.here();
    const first = this.SUBRULE(this.negation);
    let operands: ExprNode[] | undefined;
    this.MANY(() => {
      this.CONSUME(t.And);
      operands ??= [first];
      operands.push(this.SUBRULE2(this.negation));
    });
    return operands === undefined ? first : this.deepen({ kind: 'and', span: this.from(start), operands }, ...operands);
  });

  private readonly negation: Rule<ExprNode> = this.RULE<() => ExprNode>('negation', () => {
    const starts: number[] = [];
    this.MANY(() => {
      starts.push(this.CONSUME(t.Not).startOffset);
    });
    let node = this.SUBRULE(this.comparison);
    for (const start of starts.toReversed()) {
      node = this.deepen({ kind: 'not', span: this.from(start), operand: node }, node);
    }
    return node;
  });

  private readonly comparison: Rule<ExprNode> = this.RULE<() => ExprNode>('comparison', () => {
    const start = this.here();
    const left = this.SUBRULE(this.coalesce);
    const whole = this.OPTION(() =>
      this.OR<Alternatives<ExprNode>>([
        {
          ALT: () => {
            const token = this.CONSUME(t.Comparison);
            return this.compare(start, left, token, this.signOf<CompareOperator>(token), this.SUBRULE2(this.coalesce));
          },
        },
        {
          ALT: () => {
            const token = this.CONSUME(t.Assign);
            this.report(token, 'E0109', 'values are compared by `==`', '==', 'write `==`');
            return this.compare(start, left, token, '==', this.SUBRULE3(this.coalesce));
          },
        },
        {
          ALT: () => {
            const negated = this.OPTION2(() => this.CONSUME(t.Not)) !== undefined;
            this.CONSUME(t.In);
            const setStart = this.here();
            const low = this.SUBRULE4(this.coalesce);
            const range = this.OPTION3((): RangeNode => {
              this.CONSUME(t.Range);
              const high = this.SUBRULE5(this.coalesce);
              return { kind: 'range', span: this.from(setStart), low, high };
            });
            return this.deepen(
              { kind: 'in', span: this.from(start), negated, subject: left, set: range ?? low },
              left,
              low,
            );
          },
        },
        {
          ALT: () => {
            this.CONSUME(t.Matches);
            const regex = this.literalOf<RegexNode>(this.CONSUME(t.RegexLiteral));
            return this.deepen({ kind: 'matches', span: this.from(start), subject: left, regex }, left);
          },
        },
        {
          ALT: () => {
            this.CONSUME(t.Contains);
            const item = this.SUBRULE6(this.coalesce);
            return this.deepen({ kind: 'contains', span: this.from(start), subject: left, item }, left, item);
          },
        },
        {
          ALT: () => {
            this.CONSUME(t.Exists);
            return this.deepen({ kind: 'exists', span: this.from(start), subject: left }, left);
          },
        },
      ]),
    );
    return whole ?? left;
  });

  private compare(start: number, left: ExprNode, token: IToken, operator: CompareOperator, right: ExprNode): ExprNode {
    return this.deepen(
      { kind: 'compare', span: this.from(start), operator, operatorSpan: this.spanOf(token), left, right },
      left,
      right,
    );
  }

  private readonly coalesce: Rule<ExprNode> = this.RULE<() => ExprNode>('coalesce', () => {
    const start = this.here();
    const first = this.SUBRULE(this.sum);
    let operands: ExprNode[] | undefined;
    this.MANY(() => {
      this.CONSUME(t.Fallback);
      operands ??= [first];
      operands.push(this.SUBRULE2(this.sum));
    });
    return operands === undefined
      ? first
      : this.deepenInTurn({ kind: 'coalesce', span: this.from(start), operands }, operands);
  });

  private readonly sum: Rule<ExprNode> = this.RULE<() => ExprNode>('sum', () => {
    const start = this.here();
    let node = this.SUBRULE(this.product);
    this.MANY(() => {
      const token = this.OR([{ ALT: () => this.CONSUME(t.Plus) }, { ALT: () => this.CONSUME(t.Minus) }]);
      node = this.arithmetic(start, node, token, this.SUBRULE2(this.product));
    });
    return node;
  });

  private readonly product: Rule<ExprNode> = this.RULE<() => ExprNode>('product', () => {
    const start = this.here();
    let node = this.SUBRULE(this.unary);
    this.MANY(() => {
      const token = this.OR([{ ALT: () => this.CONSUME(t.Star) }, { ALT: () => this.CONSUME(t.Slash) }]);
      node = this.arithmetic(start, node, token, this.SUBRULE2(this.unary));
    });
    return node;
  });

  private arithmetic(start: number, left: ExprNode, token: IToken, right: ExprNode): ExprNode {
    const operator = this.signOf<ArithmeticOperator>(token);
    return this.deepen(
      { kind: 'arithmetic', span: this.from(start), operator, operatorSpan: this.spanOf(token), left, right },
      left,
      right,
    );
  }

  private readonly unary: Rule<ExprNode> = this.RULE<() => ExprNode>('unary', () => {
    const starts: number[] = [];
    this.MANY(() => {
      starts.push(this.CONSUME(t.Minus).startOffset);
    });
    let node = this.SUBRULE(this.primary);
    for (const start of starts.toReversed()) {
      node = this.deepen({ kind: 'negate', span: this.from(start), operand: node }, node);
    }
    return node;
  });

  private readonly primary: Rule<ExprNode> = this.RULE<() => ExprNode>('primary', () =>
    this.OR<Alternatives<ExprNode>>([
      { ALT: () => this.literalOf<LiteralNode>(this.CONSUME(t.Literal)) },
      { ALT: () => this.SUBRULE(this.reference) },
      { ALT: () => this.SUBRULE(this.list) },
      { ALT: () => this.SUBRULE(this.paren) },
    ]),
  );

  private readonly paren: Rule<ExprNode> = this.RULE<() => ExprNode>('paren', () => {
    const start = this.here();
    this.CONSUME(t.LParen);
    const inner = this.SUBRULE(this.expr);
    this.CONSUME(t.RParen);
    return this.deepen({ kind: 'paren', span: this.from(start), inner }, inner);
  });

  private readonly reference: Rule<ExprNode> = this.RULE<() => ExprNode>('reference', () => {
    const start = this.here();
    const name = this.SUBRULE(this.nameRule);
    const whole = this.OPTION({
      // In an object whose entries have no commas between them, a string after a name is the next key.
      GATE: () => !(this.LA(1).tokenType === t.StringLiteral && this.LA(2).tokenType === t.Colon),
      DEF: () =>
        this.OR<Alternatives<ExprNode>>([
          {
            ALT: () => {
              const args = this.SUBRULE(this.args);
              return this.deepen(
                { kind: 'call', span: this.from(start), callee: name, args },
                ...(this.RECORDING_PHASE ? [] : args.items.map((arg) => arg.value)),
              );
            },
          },
          {
            ALT: () => {
              this.CONSUME(t.LSquare);
              const index = this.SUBRULE(this.expr);
              this.CONSUME(t.RSquare);
              return this.deepen({ kind: 'index', span: this.from(start), object: name, index }, index);
            },
          },
          {
            ALT: () => {
              const label = this.literalOf<StringNode>(this.CONSUME(t.StringLiteral));
              return { kind: 'ref', span: this.from(start), name, label };
            },
          },
        ]),
    });
    return whole ?? name;
  });
}
