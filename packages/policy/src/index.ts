export type * from './ir.ts';
export type {
  CandidateFilter,
  CandidateValue,
  Column,
  EvaluationHost,
  Evaluators,
  Pool,
  RequestPredicate,
  RequestValue,
} from './eval/evaluators.ts';
export type { GeneratedArtefact, GeneratedConstant } from './eval/artefact.ts';
export { createEvaluators } from './eval/create-evaluators.ts';
export type { EvaluatorOptions } from './eval/create-evaluators.ts';
export type { PoolMember, TraceLeaf, TraceSink } from './eval/evaluate.ts';
export { generate } from './eval/generate.ts';
export { instantiateGenerated } from './eval/instantiate-generated.ts';
export { interpret } from './eval/interpret.ts';
export type { InterpretedEvaluators, InterpretOptions } from './eval/interpret.ts';
export { poolTargets, readsOf } from './eval/reads.ts';
export type { Reads } from './eval/reads.ts';
export { conjuncts, expressionRoles } from './eval/roles.ts';
export type { ExpressionRole, Role } from './eval/roles.ts';
export { compilePattern } from './eval/linear-pattern.ts';
export type { Pattern } from './eval/linear-pattern.ts';
export { PROMPT_SEARCH_LIMIT } from './eval/runtime.ts';
export { referenceName } from './eval/trace-expression.ts';
export type { TraceNode, TraceRead } from './eval/trace-expression.ts';

export type * from './syntax/ast.ts';
export { isLiteral, withoutParens } from './syntax/ast.ts';
export { createLineIndex } from './syntax/line-index.ts';
export type { LineIndex } from './syntax/line-index.ts';
export { joinSpans } from './syntax/span.ts';
export type { Position, Span } from './syntax/span.ts';
export { operandsOf } from './operands-of.ts';
export { languageVersion, parsePolicy } from './syntax/parse-policy.ts';
export type { ParseOptions, ParseResult, PolicyToken, PolicyTokenKind } from './syntax/parse-result.ts';
export { reservedWords, statementWords } from './syntax/token-types.ts';
export { codePage, diagnosticCodes, explainCode, isDiagnosticCode, severityOf } from './diagnostics/codes.ts';
export type { CodeEntry, DiagnosticCode } from './diagnostics/codes.ts';
export { createDiagnostic, hasErrors, sortDiagnostics } from './diagnostics/diagnostic.ts';
export type {
  Diagnostic,
  DiagnosticDetails,
  DiagnosticFix,
  DiagnosticLabel,
  Severity,
  TextEdit,
} from './diagnostics/diagnostic.ts';
export { applyFixes } from './diagnostics/apply-fixes.ts';
export type { AppliedFixes } from './diagnostics/apply-fixes.ts';
export { renderAnnotations } from './diagnostics/render-annotations.ts';
export { renderJson, toJsonReport } from './diagnostics/render-json.ts';
export type { JsonDiagnostic, JsonPlace, JsonReport } from './diagnostics/render-json.ts';
export { renderSarif } from './diagnostics/render-sarif.ts';
export type { SarifOptions } from './diagnostics/render-sarif.ts';
export { renderPlaces, renderText } from './diagnostics/render-text.ts';
export type { TextOptions } from './diagnostics/render-text.ts';
export type { Sources } from './diagnostics/sources.ts';
export { editDistance, nearLimit, suggest } from './diagnostics/suggest.ts';
export { formatPolicy, lineWidth } from './format/format-policy.ts';
export type { FormatResult } from './format/format-policy.ts';
export { compilePolicy } from './compile.ts';
export type { CompileInput, CompileResult, ExternalNames } from './compile.ts';
export { checkOptionsPlainly } from './check/check-options.ts';
export type { PluginProblem, ResolvedPlugin } from './check/work.ts';
export { createCatalogue, entriesOf, tableOfManifest } from './check/catalogue/catalogue.ts';
export type { NameTable } from './check/catalogue/catalogue.ts';
export type {
  AdmissionEntry,
  CatalogueEntry,
  Parameter,
  PickerEntry,
  PropertyEntry,
  ScorerEntry,
  SignalEntry,
} from './check/catalogue/entries.ts';
export { defineKeys, defineKinds } from './check/catalogue/define-kinds.ts';
export { modifiers } from './check/catalogue/modifiers.ts';
export type { ModifierPlace, ModifierSpec } from './check/catalogue/modifiers.ts';
export { functionNames } from './check/catalogue/functions.ts';
export { analysePolicy } from './analysis/analyse-policy.ts';
export type { Analysis, AnalyseOptions, RuleVerdict } from './analysis/analyse-policy.ts';
export type { DefinitionChange } from './analysis/definition-changes.ts';
export { diffPolicies } from './analysis/diff-policies.ts';
export type { DiffOptions, Move, MoveEnd, PolicyDiff } from './analysis/diff-policies.ts';
export { renderDiff } from './analysis/diff-text.ts';
export type { EnsureVerdict } from './analysis/ensures.ts';
export { DEFAULT_BUDGET } from './analysis/question.ts';
export type { RuleChange } from './analysis/rule-changes.ts';
export { withAnalysis } from './analysis/with-analysis.ts';
export type { Analysable } from './analysis/with-analysis.ts';
export type { Witness } from './analysis/witness.ts';
export type { GivenEndpoint, Outcome, PolicyChecks, PolicyEnsure, PolicyTest } from './policy-checks.ts';
export { buildSemanticModel } from './semantic-model/semantic-model.ts';
export type { PolicyCall, SemanticModel } from './semantic-model/semantic-model.ts';
export type { PolicyReference, PolicySymbol, SymbolKind } from './semantic-model/symbols.ts';
export { completionsAt } from './semantic-model/completions.ts';
export type { CompletionKind, CompletionOptions, PolicyCompletion } from './semantic-model/completions.ts';
export { typeText } from './semantic-model/type-text.ts';
export { walkTree } from './semantic-model/walk-tree.ts';
export { resolveImportPath } from './check/load-files.ts';
export { hoverAt } from './semantic-model/hovers.ts';
export type { PolicyHover } from './semantic-model/hovers.ts';
export { signatureAt } from './semantic-model/signatures.ts';
export type { PolicySignature } from './semantic-model/signatures.ts';
export { literalUnits, signs } from './syntax/token-list.ts';
