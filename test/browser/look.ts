import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { Test } from 'tap'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const folder = process.env['KEEP_PICTURES']

/**
 * Looks at a page as it is, dark and narrow, and light and wide: axe finds nothing, and nothing is too wide. KEEP_PICTURES
 * names a folder in which the pictures are kept.
 */
export async function look(t: Test, page: Page, name: string): Promise<void> {
  for (const [width, colorScheme] of [
    [320, 'dark'],
    [1100, 'light'],
  ] as const) {
    await page.setViewportSize({ width, height: 800 })
    await page.emulateMedia({ colorScheme })
    if (folder !== undefined) {
      mkdirSync(folder, { recursive: true })
      await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`), fullPage: true })
    }
    const { violations } = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
      `${axe}; axe.run()`,
    )
    const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
    t.same(found, [], `${name}, ${width} ${colorScheme}`)
    const overhang = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
    t.ok(overhang <= 0, `${name} is ${overhang} px wider than ${width}`)
  }
}
