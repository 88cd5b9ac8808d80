/** The site of the documentation: its pages, and the check of what VitePress makes of them. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { root } from '../../scripts/build/bundle.ts'
import { faultsOf } from '../../scripts/site/check.ts'
import { siteOf } from '../../scripts/site/pages.ts'
import { newFolder } from '../helpers/command.ts'

t.test('every page of docs/ is in one group of the navigation, and in no other', async (t) => {
  const { pages, groups } = siteOf(root)
  const listed = groups.flatMap(({ items }) => items.map(({ link }) => link.slice(1)))
  const top = [...pages.keys()].filter((path) => !path.startsWith('files/'))
  const others = ['index.md', 'contributing.md', 'changelog.md', 'reporting.md']
  t.strictSame(listed.toSorted(), top.filter((path) => !others.includes(path)).toSorted())
  t.match(groups[0], { text: 'Run it', items: [{ text: 'Install it', link: '/install.md' }] })
})

t.test('links to other files lead to copies, links in code stay as they are', async (t) => {
  const { pages, files } = siteOf(root)
  const reading = pages.get('reading.md') ?? ''
  t.match(reading, '(/files/src/domain/grant.ts.txt)')
  t.ok(files.has('src/domain/grant.ts'))
  t.match(reading, '(/contributing.md#words)')
  t.match(
    pages.get('files/examples/curl/index.md'),
    /^# examples\/curl\n\n- \[.+\]\(\/files\/examples\/curl\//,
  )
  t.notMatch([...pages.values()].join('\n'), /\]\(\.\.\//)
})

t.test(
  'the check finds a link to no page and to no heading, and what is fetched from elsewhere',
  async (t) => {
    const folder = newFolder(t)
    const write = (name: string, content: string) => writeFileSync(join(folder, name), content)
    mkdirSync(join(folder, 'files'))
    write('files/a b.txt', '')
    write('other.html', '<h1 id="a&amp;b">Other</h1>')
    write(
      'index.html',
      `<a href="/base/other.html#a&amp;b">fine</a> <a href="other.html">fine</a> <a href="/base/">fine</a>
<a href="/base/files/a%20b.txt">fine</a> <a href="https://example.org/">fine</a> <a href="#">fine</a>
<a href="/base/gone.html">1</a> <a href="other.html#gone">2</a> <a href="/other.html">3</a> <a href="/base/files">4</a>
<script src="https://cdn.example/x.js"></script> <img src="//cdn.example/x.png">`,
    )
    write('style.css', "@import 'https://cdn.example/x.css'; a { background: url(//cdn.example/y.png) }")
    t.strictSame(faultsOf(folder, '/base/').toSorted(), [
      'index.html: /base/files',
      'index.html: /base/gone.html',
      'index.html: /other.html',
      'index.html: fetches //cdn.example/x.png',
      'index.html: fetches https://cdn.example/x.js',
      'index.html: other.html#gone',
      'style.css: fetches //cdn.example/y.png',
      'style.css: fetches https://cdn.example/x.css',
    ])
  },
)
