import ts from 'typescript'

/** One mutation of a source file. */
export interface Mutation {
  readonly file: string
  readonly line: number
  /** The name of the function or constant around it. */
  readonly where: string
  readonly operator: Operator
  /** What changes, in one line: `before → after`. */
  readonly text: string
  readonly start: number
  readonly end: number
  readonly replace: string
}

export type Operator =
  | 'negated condition'
  | 'removed operand'
  | 'swapped logic'
  | 'swapped comparison'
  | 'removed negation'
  | 'removed call'
  | 'removed early return'
  | 'removed spread'
  | 'removed filter'
  | 'swapped method'
  | 'swapped arithmetic'
  | 'changed string'
  | 'changed number'
  | 'flipped boolean'
  | 'removed anchor'

const { SyntaxKind } = ts

const swappedOperators = new Map<ts.SyntaxKind, readonly [Operator, string]>([
  [SyntaxKind.LessThanToken, ['swapped comparison', '<=']],
  [SyntaxKind.LessThanEqualsToken, ['swapped comparison', '<']],
  [SyntaxKind.GreaterThanToken, ['swapped comparison', '>=']],
  [SyntaxKind.GreaterThanEqualsToken, ['swapped comparison', '>']],
  [SyntaxKind.EqualsEqualsEqualsToken, ['swapped comparison', '!==']],
  [SyntaxKind.ExclamationEqualsEqualsToken, ['swapped comparison', '===']],
  [SyntaxKind.AmpersandAmpersandToken, ['swapped logic', '||']],
  [SyntaxKind.BarBarToken, ['swapped logic', '&&']],
  [SyntaxKind.PlusToken, ['swapped arithmetic', '-']],
  [SyntaxKind.MinusToken, ['swapped arithmetic', '+']],
])

const swappedMethods = new Map([
  ['some', 'every'],
  ['every', 'some'],
  ['min', 'max'],
  ['max', 'min'],
  ['startsWith', 'endsWith'],
  ['endsWith', 'startsWith'],
])

/**
 * Returns every mutation of a source text, in the order of the text. Each parses; not every one type-checks. Wording is
 * left alone: strings with a space, and templates.
 */
export function mutationsOf(file: string, source: string): readonly Mutation[] {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true)
  const found: Mutation[] = []
  const add = (node: ts.Node, operator: Operator, replace: string) => {
    const [start, end] = [node.getStart(tree), node.end]
    const line = tree.getLineAndCharacterOfPosition(start).line + 1
    // A number alone does not tell which one it is.
    const shown =
      operator === 'changed number' && oneLine(node.parent.getText()).length < 60 ? node.parent : node
    const after = source.slice(shown.getStart(tree), start) + replace + source.slice(end, shown.end)
    const text = `${oneLine(shown.getText(tree))} → ${oneLine(after) || 'nothing'}`
    found.push({ file, line, where: nameAround(node), operator, text, start, end, replace })
  }
  const visit = (node: ts.Node) => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isInterfaceDeclaration(node)) return
    for (const mutate of [mutateConditions, mutateStatements, mutateMembers, mutateLiterals])
      mutate(node, add)
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return found.sort((one, other) => one.start - other.start)
}

/** Puts a mutation into the source text. */
export function apply(source: string, { start, end, replace }: Mutation): string {
  return source.slice(0, start) + replace + source.slice(end)
}

type Add = (node: ts.Node, operator: Operator, replace: string) => void

function mutateConditions(node: ts.Node, add: Add): void {
  const condition = conditionOf(node)
  if (condition !== undefined && !isNegatable(condition)) {
    add(condition, 'negated condition', `!(${condition.getText()})`)
  }
  if (ts.isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken) {
    add(node, 'removed negation', node.operand.getText())
  }
  if (!ts.isBinaryExpression(node)) return
  const { left, right, operatorToken } = node
  const isJoint = isJunction(node)
  // Of a member that is spread under a condition, `removed spread` takes away all.
  if (isJoint && ts.isSpreadAssignment(outside(node))) return
  const [operator, sign] = swappedOperators.get(operatorToken.kind) ?? []
  if (operator !== undefined && isJoint)
    add(node, operator, `(${asOperand(left)} ${sign} ${asOperand(right)})`)
  else if (operator !== undefined) add(node, operator, `${left.getText()} ${sign} ${right.getText()}`)
  if (isJoint) for (const operand of [left, right]) add(node, 'removed operand', operand.getText())
}

/** Whether an expression joins two by `&&`, `||` or `??`. */
function isJunction(node: ts.Node): node is ts.BinaryExpression {
  return ts.isBinaryExpression(node) && ['&&', '||', '??'].includes(node.operatorToken.getText())
}

/** The text of an expression that means the same on either side of `&&` and `||`. */
function asOperand(node: ts.Expression): string {
  return isJunction(node) || ts.isConditionalExpression(node) ? `(${node.getText()})` : node.getText()
}

/** The condition that a statement, a conditional expression or a call of `check()` tests. */
function conditionOf(node: ts.Node): ts.Expression | undefined {
  if (ts.isIfStatement(node) || ts.isWhileStatement(node)) return node.expression
  if (ts.isConditionalExpression(node)) return node.condition
  return ts.isCallExpression(node) && ts.isIdentifier(node.expression) && node.expression.text === 'check'
    ? node.arguments[0]
    : undefined
}

/** Whether another operator negates the condition already. */
function isNegatable(condition: ts.Expression): boolean {
  if (ts.isPrefixUnaryExpression(condition)) return condition.operator === SyntaxKind.ExclamationToken
  return ts.isBinaryExpression(condition) && /^[!=]==$/.test(condition.operatorToken.getText())
}

function mutateStatements(node: ts.Node, add: Add): void {
  if (ts.isExpressionStatement(node)) add(node, 'removed call', ';')
  if (ts.isIfStatement(node) && node.elseStatement === undefined && leaves(node.thenStatement)) {
    add(node, 'removed early return', ';')
  }
}

/** Whether a statement ends by leaving its function or the turn of its loop. */
function leaves(statement: ts.Statement): boolean {
  const last = ts.isBlock(statement) ? statement.statements.at(-1) : statement
  return (
    last !== undefined &&
    (ts.isReturnStatement(last) || ts.isThrowStatement(last) || ts.isContinueStatement(last))
  )
}

function mutateMembers(node: ts.Node, add: Add): void {
  if (ts.isSpreadAssignment(node)) add(node, 'removed spread', '...{}')
  if (ts.isSpreadElement(node) && ts.isArrayLiteralExpression(node.parent) && node.parent.elements.length > 1)
    add(node, 'removed spread', '...[]')
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return
  const { expression: owner, name } = node.expression
  if (name.text === 'filter') add(node, 'removed filter', owner.getText())
  const swapped = swappedMethods.get(name.text)
  if (swapped !== undefined) add(name, 'swapped method', swapped)
}

function mutateLiterals(node: ts.Node, add: Add): void {
  if (ts.isStringLiteral(node) && !node.text.includes(' ') && !isName(node))
    add(node, 'changed string', node.text === '' ? "'mutant'" : "''")
  if (ts.isNumericLiteral(node)) {
    add(node, 'changed number', `(${node.getText()} + 1)`)
    add(node, 'changed number', `(${node.getText()} - 1)`)
  }
  if (node.kind === SyntaxKind.TrueKeyword) add(node, 'flipped boolean', 'false')
  if (node.kind === SyntaxKind.FalseKeyword) add(node, 'flipped boolean', 'true')
  if (!ts.isRegularExpressionLiteral(node)) return
  const [, body = '', flags = ''] = /^\/(.*)\/(\w*)$/s.exec(node.text) ?? []
  if (body.startsWith('^')) add(node, 'removed anchor', `/${body.slice(1)}/${flags}`)
  if (body.endsWith('$')) add(node, 'removed anchor', `/${body.slice(0, -1)}/${flags}`)
}

/** Whether a string names a module or the member that is read. */
function isName({ parent }: ts.StringLiteral): boolean {
  return ts.isElementAccessExpression(parent) || ts.isExportDeclaration(parent)
}

function outside(node: ts.Node): ts.Node {
  let { parent } = node
  while (ts.isParenthesizedExpression(parent)) parent = parent.parent
  return parent
}

/** The name of the function or constant of the module that a node is in. */
function nameAround(node: ts.Node): string {
  for (let at = node; at.parent !== undefined; at = at.parent) {
    if (!ts.isFunctionDeclaration(at) && !ts.isClassDeclaration(at) && !ts.isVariableDeclaration(at)) continue
    const isOfModule = [at.parent, at.parent.parent?.parent].some(
      (one) => one?.kind === SyntaxKind.SourceFile,
    )
    if (isOfModule && at.name !== undefined) return at.name.getText()
  }
  return ''
}

function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').replace(/^;$/, '')
  return line.length > 100 ? `${line.slice(0, 99)}…` : line
}
