/** Comments, titles of tests, and texts in src keep to the words of CONTRIBUTING.md; docs.test.ts checks the pages. */
import { globSync, readFileSync } from 'node:fs'
import t from 'tap'
import ts from 'typescript'

const words = [
  ...['nobody', 'somebody', 'everybody', 'whoever', 'whom', 'anew', 'meanwhile', 'thereby', 'persons?'],
  ...['refus(?:als?|es?|ed)', 'letters?', 'e-mails?', 'wish(?:es)?', 'ruling', 'beside', 'told', 'people'],
  ...['answer(?:s|ed)?', 'logins?', 'approvals?', 'integrations?', 'of late', 'besides', 'as far as'],
  ...['what there is', 'says of itself'],
]
const banned = new RegExp(`(?<![\\w=-])(?:${words.join('|')})(?![\\w-])`, 'i')

/** Phrases in which such a word is the right one. */
const allowed = [
  'users.yaml',
  // The key of a stored counter.
  'letters from',
  "other people's data",
  'People in the community',
  'by whom and for how much',
  'What people wrote',
  'the people who teach',
  'the answers people gave',
  'letters, digits, hyphens',
  'without letters that look like digits',
  'Letters and signs of all kinds',
  '(refuse), or ignore that entry',
]

interface Prose {
  readonly comments: string[]
  readonly titles: string[]
  readonly texts: string[]
}

/** Returns the comments of a file, the titles of its tests, and its string literals of more than one word. */
function proseOf(text: string): Prose {
  const source = ts.createSourceFile('', text, ts.ScriptTarget.Latest)
  const comments = new Map<number, string>()
  const [titles, texts]: [string[], string[]] = [[], []]
  const visit = (node: ts.Node): void => {
    const ranges = [
      ...(ts.getLeadingCommentRanges(text, node.pos) ?? []),
      ...(ts.getTrailingCommentRanges(text, node.end) ?? []),
    ]
    for (const { pos, end } of ranges) comments.set(pos, text.slice(pos, end))
    if (ts.isCallExpression(node) && /\b(?:test|skip)$/.test(node.expression.getText(source)))
      titles.push(...node.arguments.slice(0, 1).map((title) => title.getText(source)))
    if (ts.isLiteralExpression(node) || ts.isTemplateMiddleOrTemplateTail(node) || ts.isTemplateHead(node))
      if (/\w \w/.test(node.text)) texts.push(node.text)
    node.getChildren(source).forEach(visit)
  }
  visit(source)
  return { comments: [...comments.values()], titles, texts }
}

function withoutAllowed(prose: string): string {
  return allowed.reduce((rest, phrase) => rest.replaceAll(phrase, ''), prose.replaceAll(/`[^`]*`/g, ''))
}

t.test('comments, titles of tests and texts in src use the terms of CONTRIBUTING.md', async (t) => {
  const wrong: string[] = []
  const exclude = (name: string) => name.endsWith('node_modules')
  for (const file of globSync('{src,test,scripts}/**/*.ts', { exclude }).sort()) {
    const text = readFileSync(file, 'utf8')
    // Most files have none of these words and need not be parsed.
    if (!banned.test(text)) continue
    const { comments, titles, texts } = proseOf(text)
    const checked = [
      ...comments,
      ...(file.startsWith('test/') ? titles : []),
      ...(file.startsWith('src/') ? texts : []),
    ]
    for (const prose of checked) if (banned.test(withoutAllowed(prose))) wrong.push(`${file}: ${prose}`)
  }
  t.strictSame(wrong, [])
})

t.test('comments, titles and texts of a file are found, and a word of the list in each', async (t) => {
  const text = [
    "t.test('somebody is told', async (t) => {",
    '  // The letter.',
    '  t.fail("nobody answers")',
    '  /** A person. */',
    '})',
  ].join('\n')
  const { comments, titles, texts } = proseOf(text)
  t.strictSame(comments, ['// The letter.', '/** A person. */'])
  t.strictSame(titles, ["'somebody is told'"])
  t.strictSame(texts, ['somebody is told', 'nobody answers'])
  for (const prose of [...comments, ...titles, ...texts]) t.match(prose, banned)
})
