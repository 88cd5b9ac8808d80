/**
 * Takes a picture of every page, narrow and wide, light and dark, and has axe-core judge each:
 *
 *     node test/browser/pictures.ts <folder> [name …]
 *
 * Fails on any accessibility violation, on anything a policy blocked, and on anything wider than the window.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { launchBrowser } from '../helpers/chromium.ts'
import { hostile, ordinary } from '../http/page-samples.ts'
import { buildSamples } from '../http/read-page.ts'

type ColorScheme = 'light' | 'dark'

interface Violation {
  readonly id: string
  readonly nodes: readonly { readonly html: string }[]
}

const [folder, ...names] = process.argv.slice(2)
if (folder === undefined) throw new Error('name a folder for the pictures')
mkdirSync(folder, { recursive: true })

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const samples = { ...ordinary, ...hostile }
const app = await buildSamples(samples)
const address = await app.listen({ port: 0, host: '127.0.0.1' })
const browser = await launchBrowser()

let problems = 0
for (const colorScheme of ['light', 'dark'] as const)
  for (const width of [320, 360, 900])
    for (const name of Object.keys(samples))
      if (names.length === 0 || names.includes(name))
        await takePicture(
          browser,
          join(folder, `${name}-${width}-${colorScheme}.png`),
          name,
          width,
          colorScheme,
        )
await browser.close()
await app.close()
process.stdout.write(`${problems} problems\n`)
process.exitCode = problems === 0 ? 0 : 1

async function takePicture(
  browser: Browser,
  path: string,
  name: string,
  width: number,
  colorScheme: ColorScheme,
): Promise<void> {
  const complain = (problem: string) => {
    problems += 1
    process.stdout.write(`${name} ${width} ${colorScheme}: ${problem}\n`)
  }
  const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme })
  const page = await context.newPage()
  page.on('console', (message) => {
    if (message.type() === 'error') complain(message.text())
  })
  // The page that posts itself would be gone before its picture is taken.
  await page.route('**/form-post.js*', (route) => route.fulfill({ contentType: 'text/javascript', body: '' }))
  await page.goto(`${address}/${name}`)
  if (width < 900)
    await page.evaluate("document.querySelectorAll('details').forEach((it) => { it.open = true })")
  await page.screenshot({ path, fullPage: true })
  const wide = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
  if (wide > 0) complain(`${wide} px too wide`)
  const { violations } = await page.evaluate<{ violations: readonly Violation[] }>(`${axe}; axe.run()`)
  for (const { id, nodes } of violations)
    complain(`${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`)
  await context.close()
}
