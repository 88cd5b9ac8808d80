import ts from 'typescript'

/** A place in a text: from its first character to the one after its last. */
export interface Range {
  readonly start: number
  readonly end: number
}

/** The TypeScript tokens of a text, without white space, comments and trailing commas. */
export interface Tokens {
  readonly texts: readonly string[]
  readonly ranges: readonly Range[]
  /** Where the trailing comma after a token ends, by the token's index. */
  readonly trailing: ReadonlyMap<number, number>
  /** All texts in one string, to search in. */
  readonly joined: string
}

/** Between tokens in `joined`: no source contains it. */
const mark = '\u0000'

/**
 * Reads the tokens of a whole file or of a part of one. Returns undefined for a text that begins or ends within a
 * token, such as a part of a template literal.
 */
export function tokensOf(text: string): Tokens | undefined {
  let isWhole = true
  const scanner = ts.createScanner(ts.ScriptTarget.Latest, true, ts.LanguageVariant.Standard, text, () => {
    isWhole = false
  })
  const found: { text: string; kind: ts.SyntaxKind; range: Range }[] = []
  // For each open brace, whether it is the `${` of a template literal.
  const braces: boolean[] = []
  for (;;) {
    let kind = scanner.scan()
    if (isSlash(kind) && beginsExpression(found.at(-1)?.kind)) kind = scanner.reScanSlashToken()
    if (kind === ts.SyntaxKind.CloseBraceToken && braces.at(-1)) kind = scanner.reScanTemplateToken(false)
    if (kind === ts.SyntaxKind.EndOfFileToken) break
    if (kind === ts.SyntaxKind.OpenBraceToken) braces.push(false)
    if (kind === ts.SyntaxKind.TemplateHead) braces.push(true)
    if (kind === ts.SyntaxKind.CloseBraceToken || kind === ts.SyntaxKind.TemplateTail) braces.pop()
    // A string is the same string in other quotes.
    const isString = kind === ts.SyntaxKind.StringLiteral
    const range = { start: scanner.getTokenStart(), end: scanner.getTokenEnd() }
    found.push({
      text: isString ? JSON.stringify(scanner.getTokenValue()) : scanner.getTokenText(),
      kind,
      range,
    })
  }
  if (!isWhole || found.length === 0) return undefined
  const trailing = new Map<number, number>()
  const kept: typeof found = []
  for (const [index, token] of found.entries()) {
    const isTrailing =
      token.kind === ts.SyntaxKind.CommaToken && isCloser(found[index + 1]?.text) && index > 0
    if (isTrailing) trailing.set(kept.length - 1, token.range.end)
    else kept.push(token)
  }
  const texts = kept.map(({ text }) => text)
  const ranges = kept.map(({ range }) => range)
  return { texts, ranges, trailing, joined: `${mark}${texts.join(mark)}${mark}` }
}

/** Where the tokens of `part` stand in `whole`. A comma at the end of `part` may be one that the formatter left out. */
export function placesOf(part: Tokens, whole: Tokens): readonly Range[] {
  const endsWithComma = part.texts.at(-1) === ',' && part.texts.length > 1
  const texts = endsWithComma ? part.texts.slice(0, -1) : part.texts
  const sought = `${mark}${texts.join(mark)}${mark}`
  const places: Range[] = []
  for (let at = whole.joined.indexOf(sought); at >= 0; at = whole.joined.indexOf(sought, at + 1)) {
    const first = whole.joined.slice(0, at).split(mark).length - 1
    const last = first + texts.length - 1
    const [begin, finish, next] = [whole.ranges[first], whole.ranges[last], whole.texts[last + 1]]
    if (begin === undefined || finish === undefined) continue
    if (!endsWithComma) places.push({ start: begin.start, end: finish.end })
    else if (next === ',') places.push({ start: begin.start, end: whole.ranges[last + 1]?.end ?? finish.end })
    else if (isCloser(next)) places.push({ start: begin.start, end: whole.trailing.get(last) ?? finish.end })
  }
  return places
}

function isSlash(kind: ts.SyntaxKind): boolean {
  return kind === ts.SyntaxKind.SlashToken || kind === ts.SyntaxKind.SlashEqualsToken
}

/** Whether a slash after this token begins a regular expression, and does not divide. */
function beginsExpression(before: ts.SyntaxKind | undefined): boolean {
  if (before === undefined) return true
  const ends = [
    ts.SyntaxKind.Identifier,
    ts.SyntaxKind.NumericLiteral,
    ts.SyntaxKind.BigIntLiteral,
    ts.SyntaxKind.StringLiteral,
    ts.SyntaxKind.NoSubstitutionTemplateLiteral,
    ts.SyntaxKind.TemplateTail,
    ts.SyntaxKind.CloseParenToken,
    ts.SyntaxKind.CloseBracketToken,
    ts.SyntaxKind.ThisKeyword,
  ]
  return !ends.includes(before)
}

function isCloser(text: string | undefined): boolean {
  return text === ')' || text === ']' || text === '}'
}
