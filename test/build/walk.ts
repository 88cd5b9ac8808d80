import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { addFirstApp, type FreshServer } from '../browser/first-app.ts'
import { listenForCallback } from '../browser/loopback-client.ts'
import { launchBrowser } from '../helpers/chromium.ts'

/** How a fresh server was started, and how a browser reaches it. */
export interface Door extends FreshServer {
  /** Part of the names of the pictures. */
  readonly name: string
  /** The port that the host of the issuer leads to; by default the name of the host is looked up. */
  readonly port?: number
}

/** What `serve` prints on standard error if there are no users. */
export const linkOfFirstUser = /http\S+\/link\?code=lyc_link_[\w-]{43}(?=\n)/

const pictures = process.env['KEEP_PICTURES']

/**
 * Walks from the link of a fresh server to an administrator who has added an app, and then opens every page that a link
 * leads to, in Chromium. Each has to arrive, without an error in the console. KEEP_PICTURES names a folder in which the
 * pictures are kept.
 */
export async function walk(t: Test, door: Door): Promise<void> {
  const { issuer, name, port } = door
  const rules = port === undefined ? [] : [`MAP ${new URL(issuer).hostname} 127.0.0.1:${port}`]
  const browser = await launchBrowser(...rules.map((rule) => `--host-resolver-rules=${rule}`))
  t.teardown(() => browser.close())
  const context = await browser.newContext({ ignoreHTTPSErrors: port !== undefined })
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  page.on('console', (message) => {
    if (message.type() === 'error') t.fail(`${message.location().url}: ${message.text()}`)
  })
  const look = async (step: string) => {
    if (pictures === undefined) return
    mkdirSync(pictures, { recursive: true })
    await page.screenshot({ path: join(pictures, `door-${name}-${step}.png`), fullPage: true })
  }

  const { redirectUri } = await listenForCallback(t)
  const added = await addFirstApp(page, door, redirectUri, look)
  t.equal(added.issuer, issuer)
  t.not(added.clientSecret, '')

  const opened = await openEveryPage(t, page, issuer)
  const inAdministration = opened.filter((path) => path.startsWith('/admin'))
  t.ok(inAdministration.length >= 20, inAdministration.join(' '))
  t.ok(opened.filter((path) => path.startsWith('/account')).length >= 8, opened.join(' '))
}

/** Opens the overviews and every page of this server that they lead to. Returns the paths. */
async function openEveryPage(t: Test, page: Page, issuer: string): Promise<readonly string[]> {
  const paths = new Set(['/admin', '/account'])
  // A path that is added is opened later in the same loop.
  for (const path of paths) {
    t.equal(await statusOf(page, issuer + path), 200, path)
    const links = await page.evaluate<string[]>(
      '[...document.querySelectorAll("a[href]")].map((it) => it.href)',
    )
    for (const link of links) {
      const { origin, pathname } = new URL(link)
      if (origin === new URL(issuer).origin) paths.add(pathname)
    }
  }
  return [...paths]
}

/** Opens a page, or begins a download, and returns the status of what arrived in the end. */
async function statusOf(page: Page, url: string): Promise<number> {
  const arrived = page.waitForResponse(
    (response) => response.request().isNavigationRequest() && Math.floor(response.status() / 100) !== 3,
  )
  await page.goto(url).catch((error: unknown) => {
    if (!String(error).includes('Download is starting')) throw error
  })
  return (await arrived).status()
}
