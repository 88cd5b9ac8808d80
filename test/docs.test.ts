/** Checks the text of the documentation. `npm run check:docs` runs its commands. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { blocksOf, isIn, outputsOf, planOf, sessionOf } from '../scripts/docs/page.ts'
import { knownVariables, tokenVariable } from '../src/settings/environment.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (page: string) => readFileSync(join(root, page), 'utf8')
const markdownIn = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name))
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
  ...markdownIn('docs'),
  ...markdownIn('examples'),
]
/** One is generated, the other lists the words to avoid. */
const exempt = ['docs/conformance.md', 'CONTRIBUTING.md']

t.test('every link to a file or a heading resolves', async (t) => {
  const anchors = new Map(pages.map((page) => [page, anchorsOf(read(page))]))
  const broken = pages.flatMap((page) =>
    linksOf(read(page))
      .filter((link) => {
        const [path = '', anchor] = link.split('#')
        const target = path === '' ? page : relative(root, join(root, dirname(page), path))
        if (!existsSync(join(root, target))) return true
        return anchor !== undefined && anchors.get(target)?.has(anchor) === false
      })
      .map((link) => `${page}: ${link}`),
  )
  t.strictSame(broken, [])
})

t.test('the index lists every page, and every code block names its language', async (t) => {
  const linked = linksOf(read('docs/README.md'))
  const missing = markdownIn('docs').filter((page) => !linked.includes(page.slice('docs/'.length)))
  t.strictSame(missing, ['docs/README.md'])
  for (const page of pages) {
    const bare = blocksOf(read(page)).filter(({ language }) => language === '')
    t.strictSame(bare, [], page)
  }
})

t.test('every variable that the documentation names exists', async (t) => {
  const known = [...knownVariables(), tokenVariable]
  // The page names them as wrong or ignored, to show the response.
  const wrong = ['LYCHGATE_PROT', 'LYCHGATE_SERVICE_HOST']
  for (const page of pages) {
    const named = read(page).match(/\bLYCHGATE_[A-Z_]*[A-Z]\b/g) ?? []
    const unknown = named.filter((name) => !known.includes(name) && !wrong.includes(name))
    t.strictSame(unknown, [], page)
  }
})

t.test('the prose uses the terms of CONTRIBUTING.md', async (t) => {
  const words =
    'nobody|somebody|everybody|whoever|whom|anew|meanwhile|thereby|persons?|approvals?|logins?|wishes'
  const banned = new RegExp(`(?<![\\w-])(?:${words}|e-mails?|refus(?:es?|ed|als?)|letter)(?![\\w-])`, 'i')
  t.match(proseOf('Nobody is told.'), banned)
  for (const page of pages.filter((name) => !exempt.includes(name))) {
    const lines = proseOf(read(page)).split('\n')
    t.strictSame(
      lines.filter((line) => banned.test(line)),
      [],
      page,
    )
    const tooLong = lines.filter((line) => line.length > 120 && !line.startsWith('|'))
    t.strictSame(tooLong, [], page)
  }
})

t.test(
  'commands run in order, outputs are compared, files are written, and other blocks are only shown',
  async (t) => {
    const page = ['sh server', 'sh', 'text', 'yaml a.yaml', 'console', 'text', 'sh', 'ini']
      .map((fence) => `\`\`\`${fence}\n${fence}\n\`\`\`\n`)
      .join('\nAnd then:\n\n')
    const { steps, files, shown } = planOf(blocksOf(page))
    t.match(steps, [
      { block: { content: 'sh server\n', word: 'server' }, expected: undefined },
      { block: { content: 'sh\n' }, expected: { content: 'text\n' } },
      { block: { content: 'sh\n' }, expected: undefined },
    ])
    t.strictSame(
      files.map(({ word, line }) => [word, line]),
      [['a.yaml', 19]],
    )
    t.strictSame(
      shown.map(({ language }) => language),
      ['console', 'text', 'ini'],
    )
    t.match(sessionOf(steps), /\nbeside sh server\n/)
    t.strictSame(outputsOf('noise\u001e0\none \r\n\u001e1\ntwo\n'), ['one\n', 'two\n'])
  },
)

t.test('expected lines must appear in the output, where … matches anything', async (t) => {
  const output = 'first\nid   42 (new)\nlast {"a":1}\nmore\n'
  const shows = (content: string) => isIn(output, { language: 'text', content, line: 1 })
  t.ok(shows('id 42 (new)\n'))
  t.ok(shows('id … (new)\nlast …\n'))
  t.ok(shows('first\n…\nmore\n'))
  t.notOk(shows('id 42\n'))
  t.notOk(shows('last {"a":1}\nfirst\n'))
  t.notOk(shows('id 4. (new)\n'))
})

/** A page without code, link targets and generated parts. */
function proseOf(markdown: string): string {
  return markdown
    .replaceAll(/^```[\s\S]*?^```$/gm, '')
    .replaceAll(/^<!-- (\w+:start|measured) -->$[\s\S]*?^<!-- .*end.* -->$/gm, '')
    .replaceAll(/`[^`]*`/g, '`')
    .replaceAll(/\]\([^)\s]+\)/g, ']')
}

/** Relative links outside of code. */
function linksOf(markdown: string): readonly string[] {
  const prose = markdown.replaceAll(/^```[\s\S]*?^```$/gm, '').replaceAll(/`[^`\n]*`/g, '`')
  return [...prose.matchAll(/(?:\]\(|^\[[^\]]+\]: )([^)\s]+)/gm)].flatMap(([, link = '']) =>
    /^[a-z]+:/.test(link) ? [] : [decodeURI(link)],
  )
}

/** The anchors GitHub gives to headings. */
function anchorsOf(markdown: string): ReadonlySet<string> {
  const prose = markdown.replaceAll(/^```[\s\S]*?^```$/gm, '')
  return new Set(
    [...prose.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}
