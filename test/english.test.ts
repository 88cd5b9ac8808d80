/** The comments of these folders keep to the words of CONTRIBUTING.md. A folder is added once its comments do. */
import { globSync, readFileSync } from 'node:fs'
import t from 'tap'
import ts from 'typescript'

const folders = [
  ...['src/domain', 'src/storage', 'src/keys', 'src/guard', 'src/tracing', 'src/users', 'src/pages'],
  ...['src/mail', 'src/config', 'src/management', 'src/http', 'src/cli', 'src/dev'],
  ...['src/protected-api', ...globSync('src/rfc*'), ...globSync('src/oidc-*')],
]
const words = [
  ...['nobody', 'somebody', 'everybody', 'whoever', 'whom', 'anew', 'meanwhile', 'thereby'],
  ...[
    'person',
    'persons',
    'refusal',
    'refusals',
    'refuse',
    'refuses',
    'refused',
    'letter',
    'e-mail',
    'wish',
    'wishes',
  ],
]
const banned = new RegExp(`(?<![\\w-])(?:${words.join('|')})(?![\\w-])`, 'i')

function commentsOf(file: string): readonly string[] {
  const text = readFileSync(file, 'utf8')
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const comments = new Map<number, string>()
  const visit = (node: ts.Node): void => {
    const ranges = [
      ...(ts.getLeadingCommentRanges(text, node.getFullStart()) ?? []),
      ...(ts.getTrailingCommentRanges(text, node.getEnd()) ?? []),
    ]
    for (const { pos, end } of ranges) comments.set(pos, text.slice(pos, end))
    node.getChildren(source).forEach(visit)
  }
  visit(source)
  return [...comments.values()]
}

t.test('comments use the terms of the glossary', async (t) => {
  t.match(commentsOf('src/domain/check.ts').join('\n'), 'Receives every passed check.', 'comments are found')
  t.match('/** Nobody is told. */', banned)
  for (const folder of folders)
    for (const file of globSync(`${folder}/**/*.ts`).sort())
      t.strictSame(
        commentsOf(file).filter((comment) => banned.test(comment.replaceAll(/`[^`]*`/g, ''))),
        [],
        file,
      )
})
