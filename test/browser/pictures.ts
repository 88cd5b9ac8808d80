/**
 * Takes a picture of every page in every state, narrow and wide, light and dark, in other languages, on paper and in a
 * user's own colours, and has axe-core judge each:
 *
 *     npm run pictures -- <folder> [name …]
 *     npm run pictures -- --check [name …]
 *     npm run pictures -- readme
 *
 * The second judges the same pages and takes no pictures, in half the time. The third takes the two pictures of the
 * README only, of a real flow.
 *
 * `index.html` in the folder shows them all. Fails on any accessibility violation, on anything a policy blocked, on
 * anything wider than the window, and on anything to press that is smaller than a finger.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { launchBrowser } from '../helpers/chromium.ts'
import { adminPages, hostileAdminPages } from '../pages/samples/admin.ts'
import { hostile, ordinary, type Sample } from '../pages/samples/pages.ts'
import { buildSamples, sampleConfig } from '../pages/samples/read-page.ts'

interface Theme {
  readonly width: number
  readonly colorScheme: 'light' | 'dark'
  readonly locale?: string
  readonly forcedColors?: 'active'
  readonly media?: 'print'
}

const schemes = ['light', 'dark'] as const
/** axe looks at a document more than at its window: the widths between find it nothing new. */
const judgedWidths: readonly number[] = [320, 900]
const judgedLooks: readonly Theme[] = judgedWidths.flatMap((width) =>
  schemes.map((colorScheme) => ({ width, colorScheme })),
)
/** Every page and state is shown in each of these. */
const looks: readonly Theme[] = [
  ...judgedLooks,
  { width: 360, colorScheme: 'dark' },
  { width: 1280, colorScheme: 'light' },
]
/** And in these: right to left, long words, no spaces, own colours, paper. */
const furtherLooks: readonly Theme[] = [
  { width: 320, colorScheme: 'dark', locale: 'ar' },
  { width: 900, colorScheme: 'light', locale: 'ar' },
  { width: 320, colorScheme: 'light', locale: 'de' },
  { width: 900, colorScheme: 'light', locale: 'ja' },
  { width: 900, colorScheme: 'dark', forcedColors: 'active' },
  { width: 794, colorScheme: 'dark', media: 'print' },
]

/** Runs in the page: every visible control outside a sentence must have at least 44 px. */
const smallTargets = `[...document.querySelectorAll('a, button, summary, label:has(input), input:not([type=hidden], [type=checkbox], [type=radio])')]
  .filter((it) => it.offsetParent !== null && !it.closest('p'))
  .map((it) => [it, it.getBoundingClientRect()])
  .filter(([, { width, height }]) => width < 44 || height < 44)
  .map(([it, { width, height }]) => it.outerHTML.slice(0, 80) + ' ' + width + ' × ' + height)`

/** Runs in the page, together with axe. */
const judge = `async () => (await axe.run()).violations.map(
  ({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html.slice(0, 120)).join(' | '))`

const [folder, ...names] = process.argv.slice(2)
if (folder === undefined) throw new Error('name a folder for the pictures, or --check')
const isCheck = folder === '--check'
if (folder === 'readme') {
  await import('./readme-pictures.ts')
  process.exit()
}
const kept = isCheck ? mkdtempSync(join(tmpdir(), 'lychgate-pictures-')) : folder
mkdirSync(kept, { recursive: true })

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const logo = join(kept, 'logo.svg')
writeFileSync(
  logo,
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 40"><style>text{fill:#222}@media(prefers-color-scheme:dark){text{fill:#eee}}</style><circle cx="20" cy="20" r="16" fill="#e30"/><text x="44" y="28" font-family="sans-serif" font-size="22">River</text></svg>',
)
const branded = {
  ...sampleConfig,
  service: { ...sampleConfig.service, logo, logoName: 'inside', accent: '#ffb400' },
} as const

const browser = await launchBrowser()
const pictures: string[] = []
let problems = 0

await takePictures({ ...ordinary, ...adminPages }, sampleConfig, [...looks, ...furtherLooks])
await takePictures(
  { ...hostile, ...hostileAdminPages },
  sampleConfig,
  looks.filter(({ width }) => judgedWidths.includes(width)),
)
await takePictures(
  { 'own-login': ordinary['login-problem'], 'own-consent': ordinary.consent },
  branded,
  looks,
)
await browser.close()
if (isCheck) rmSync(kept, { recursive: true })
else writeFileSync(join(kept, 'index.html'), indexOf(pictures.toSorted()))
const where = isCheck ? 'pages looked at' : `pictures: ${resolve(kept, 'index.html')}`
process.stdout.write(`${pictures.length} ${where}\n${problems} problems\n`)
process.exitCode = problems === 0 ? 0 : 1

async function takePictures(
  samples: Readonly<Record<string, Sample>>,
  config: typeof sampleConfig,
  looks: readonly Theme[],
): Promise<void> {
  const app = await buildSamples(samples, '', config)
  const address = await app.listen({ port: 0, host: '127.0.0.1' })
  const asked = Object.keys(samples).filter((name) => names.length === 0 || names.includes(name))
  const waiting = asked.length === 0 ? [] : [...looks]
  const work = async () => {
    for (let look = waiting.shift(); look; look = waiting.shift()) {
      const page = await openPage(look)
      for (const name of asked) await takePicture(page, `${address}/${name}`, name, look)
      await page.context().close()
    }
  }
  // A browser uses more than one core only for several pages.
  await Promise.all([work(), work()])
  await app.close()
}

async function openPage({ width, colorScheme, locale, forcedColors, media }: Theme): Promise<Page> {
  const options: BrowserContextOptions = {
    viewport: { width, height: 800 },
    colorScheme,
    locale: locale ?? 'en',
  }
  const context = await browser.newContext({ ...options, ...(forcedColors && { forcedColors }) })
  const page = await context.newPage()
  if (media) await page.emulateMedia({ media })
  // The page that submits itself would be gone before the picture.
  await page.route('**/form-post.js*', (route) => route.fulfill({ contentType: 'text/javascript', body: '' }))
  return page
}

async function takePicture(page: Page, url: string, name: string, look: Theme): Promise<void> {
  const { width, colorScheme, ...others } = look
  const picture = `${[name, width, colorScheme, ...Object.values(others)].join('-')}.png`
  const complain = (problem: string) => {
    problems += 1
    process.stdout.write(`${picture}: ${problem}\n`)
  }
  const listen = (message: { type(): string; text(): string }) => {
    if (message.type() === 'error') complain(message.text())
  }
  page.on('console', listen)
  await page.goto(url)
  if (width < 900)
    await page.evaluate("document.querySelectorAll('details').forEach((it) => { it.open = true })")
  if (!isCheck) await page.screenshot({ path: join(kept, picture), fullPage: true })
  pictures.push(picture)
  const wide = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
  if (wide > 0) complain(`${wide} px too wide`)
  // axe reads the colours of the sheet instead of the user's, and paper has no controls.
  if (look.media === undefined && look.forcedColors === undefined) {
    for (const small of await page.evaluate<string[]>(smallTargets)) complain(`too small to press: ${small}`)
    if (judgedWidths.includes(width))
      for (const violation of await page.evaluate<string[]>(`${axe}; (${judge})()`)) complain(violation)
  }
  page.off('console', listen)
}

function indexOf(pictures: readonly string[]): string {
  const figures = pictures.map(
    (picture) =>
      `<figure><img src="${picture}" alt="" loading="lazy" height="480"><figcaption>${picture}</figcaption></figure>`,
  )
  return `<!doctype html><title>Pictures</title><style>body{display:flex;flex-wrap:wrap;gap:1em;font:.8em sans-serif}</style>${figures.join('\n')}\n`
}
