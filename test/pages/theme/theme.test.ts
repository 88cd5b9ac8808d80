/** Settings of the operator for the appearance of pages, as the real server shows them. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ConfigError } from '../../../src/config/error.ts'
import { loadTheme } from '../../../src/pages/theme/theme.ts'
import { startServer } from '../../helpers/server.ts'
import { parseElements } from '../samples/read-page.ts'

const folder = t.testdir({
  'logo.svg':
    '<?xml version="1.0"?>\n<!-- a sign -->\n<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0 0h8v8z"/></svg>',
  // The extension does not match the contents.
  'dark.svg': Buffer.from('\x89PNG\r\n\x1a\n and so on', 'latin1'),
  'photo.jpg': Buffer.from('\xff\xd8\xff\xe0 and so on', 'latin1'),
  'photo.webp': Buffer.from('RIFF\x00\n\x00\x00WEBPVP8 ', 'latin1'),
  'page.svg': '<html><svg xmlns="http://www.w3.org/2000/svg"></svg></html>',
  'bare.svg': '<svg viewBox="0 0 8 8"></svg>',
  'large.png': Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(262_144)]),
  views: {
    'home.eta': '<% layout("@layout.eta", { title: "Ours" }) %><h1>Our own home of <%= it.site.name %></h1>',
    'style.css': ':root { --card: #123456 }',
    '.gitkeep': '',
  },
})
const file = (name: string) => join(folder, name)

const server = await startServer(t, {
  service: {
    name: 'Riverside <School>',
    logo: file('logo.svg'),
    logoDark: file('dark.svg'),
    accent: '#c8102e',
    help: 'https://riverside.example/help',
  },
  views: file('views'),
})
const home = async () => (await fetch(`${server.issuer}/`)).text()
const fetchAsset = (path: string | undefined) => fetch(new URL(path ?? '/missing', server.origin))

t.test(
  'the logo precedes the name, dark pages use their own logo, and both are served from memory',
  async (t) => {
    const elements = parseElements(await home())
    const image = elements.find(({ name }) => name === 'img')
    const source = elements.find(({ name }) => name === 'source')
    t.equal(image?.attributes.get('alt'), '')
    t.equal(source?.attributes.get('media'), '(prefers-color-scheme: dark)')
    for (const [path, type] of [
      [image?.attributes.get('src'), 'image/svg+xml'],
      [source?.attributes.get('srcset'), 'image/png'],
    ] as const) {
      const response = await fetchAsset(path)
      t.equal(response.status, 200)
      t.equal(response.headers.get('content-type'), type)
      t.equal(response.headers.get('x-content-type-options'), 'nosniff')
      t.equal(response.headers.get('cache-control'), 'public, max-age=31536000, immutable')
      // An SVG opened on its own is a document of this origin, so nothing in it may run.
      t.equal(response.headers.get('content-security-policy'), "default-src 'none';frame-ancestors 'none'")
    }
    t.match(await home(), '<span>Riverside &lt;School&gt;</span>')
  },
)

t.test('a logo that contains the name replaces the name', async (t) => {
  const server = await startServer(t, {
    service: { name: 'Riverside', logo: file('logo.svg'), logoName: 'inside' },
  })
  const html = await (await fetch(`${server.issuer}/`)).text()
  const image = parseElements(html).find(({ name }) => name === 'img')
  t.equal(image?.attributes.get('alt'), 'Riverside')
  t.notMatch(html, '<span>Riverside</span>')
})

t.test('the accent is appended to the one stylesheet, and no page has a style of its own', async (t) => {
  const html = await home()
  const sheets = parseElements(html).filter(({ attributes }) => attributes.get('rel') === 'stylesheet')
  t.equal(sheets.length, 1)
  const style = await (await fetchAsset(sheets[0]?.attributes.get('href'))).text()
  t.match(style, /^:root \{ --card: #123456 \}:root \{\n {2}--accent: #c8102e;/)
  t.notMatch(html, /<style|style=/)
  const icon = parseElements(html).find(({ attributes }) => attributes.get('rel') === 'icon')
  t.match(
    await (await fetchAsset(icon?.attributes.get('href'))).text(),
    /^<svg [^>]* stroke="oklch\(from #c8102e /,
  )
})

t.test('a view in the folder replaces the shipped one and escapes in the same way', async (t) => {
  t.match(await home(), '<h1>Our own home of Riverside &lt;School&gt;</h1>')
})

t.test('the help page is linked on every page', async (t) => {
  t.match(
    await (await fetch(`${server.issuer}/oauth/authorize`)).text(),
    '<a href="https://riverside.example/help" rel="noopener noreferrer">Help</a>',
  )
})

function faultsOf(look: Parameters<typeof loadTheme>[0]): readonly string[] {
  try {
    loadTheme(look)
  } catch (error) {
    if (error instanceof ConfigError) return error.faults
    throw error
  }
  return []
}

t.test('a file that is no image, or too large, is rejected by name', async (t) => {
  for (const name of ['photo.jpg', 'photo.webp'])
    t.strictSame(faultsOf({ service: { logo: file(name) } }), [])
  for (const name of ['page.svg', 'bare.svg'])
    t.strictSame(faultsOf({ service: { logo: file(name) } }), [
      `service.logo: ${file(name)} is not an SVG, PNG, JPEG or WebP image`,
    ])
  t.strictSame(faultsOf({ service: { logo: file('large.png'), logoDark: file('nowhere.png') } }), [
    `service.logo: ${file('large.png')} has 262152 bytes; make it smaller, 262144 at most`,
    `service.logoDark: cannot read ${file('nowhere.png')} (ENOENT)`,
  ])
})

t.test('a view with an unknown name, or one that does not compile, is one error line each', async (t) => {
  const views = file('bad')
  mkdirSync(views)
  writeFileSync(join(views, 'logn.eta'), '')
  writeFileSync(join(views, 'notes.txt'), '')
  writeFileSync(join(views, 'login.eta'), '<% if (it.page) { %>')
  writeFileSync(join(views, 'error.eta'), '<p>\n<%= it.page')
  t.strictSame(faultsOf({ service: {}, views }).toSorted(), [
    'views: error.eta does not compile: unclosed tag at line 2 col 1',
    "views: login.eta does not compile: Unexpected token ')'",
    'views: there is no view logn.eta to replace; did you mean login.eta?',
    'views: there is no view notes.txt to replace',
  ])
  t.strictSame(faultsOf({ service: {}, views: file('none') }), [
    `views: cannot read the folder ${file('none')} (ENOENT)`,
  ])
})
