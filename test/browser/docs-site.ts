/**
 * The site of the documentation in dist/site, which `npm run docs:site` makes, as a reader uses it: a web server for files,
 * a browser that searches and follows links, and no request to another host.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import t from 'tap'
import { launchBrowser } from '../helpers/chromium.ts'

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.png': 'image/png',
  '.txt': 'text/plain',
  '.woff2': 'font/woff2',
}
const server = createServer(({ url = '/' }, response) => {
  const { pathname } = new URL(url, 'http://localhost')
  const path = decodeURI(pathname).replace(/\/$/, '/index.html')
  try {
    const content = readFileSync(join('dist/site', path))
    response.setHeader('content-type', types[extname(path)] ?? 'application/octet-stream').end(content)
  } catch {
    response.writeHead(404).end()
  }
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const browser = await launchBrowser()
t.teardown(async () => {
  await browser.close()
  server.close()
})

t.test('a reader finds a page by a word, and everything comes from this server', async (t) => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
  const requests: string[] = []
  const failures: string[] = []
  page.on('request', (request) => requests.push(request.url()))
  page.on('response', (response) => {
    if (response.status() >= 400) failures.push(response.url())
  })
  page.on('pageerror', (error) => failures.push(error.message))
  await page.goto(`${origin}/`)
  await page.getByRole('button', { name: 'Search' }).click()
  await page.getByRole('searchbox').fill('name constraint authority home')
  await page.getByRole('option').first().click()
  await page.waitForURL(/home-network\.html/)
  // The address changes before the page does.
  await page.locator('h1', { hasText: 'https in a home network' }).waitFor()
  await page.getByRole('link', { name: 'Troubleshooting' }).first().click()
  await page.waitForURL(/troubleshooting\.html/)
  await page.locator('h1', { hasText: 'Troubleshooting' }).waitFor()
  t.strictSame(failures, [])
  t.ok(requests.length > 10)
  t.strictSame(
    requests.filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith('data:')),
    [],
  )
})

t.test('a link to the source leads to a copy of it', async (t) => {
  const page = await browser.newPage()
  await page.goto(`${origin}/reading.html`)
  await page.locator('main a[href$="src/domain/grant.ts.txt"]').first().click()
  await page.waitForURL(/grant\.ts\.txt$/)
  t.match(await page.locator('body').innerText(), readFileSync('src/domain/grant.ts', 'utf8').slice(0, 200))
})

if (process.env['KEEP_PICTURES'] !== undefined)
  for (const [name, width, colorScheme] of [
    ['wide', 1280, 'light'],
    ['narrow', 390, 'dark'],
  ] as const)
    await t.test(`a picture of it, ${name}`, async (t) => {
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme })
      await page.goto(`${origin}/locked-out.html`)
      const path = join(process.env['KEEP_PICTURES'] ?? '', `docs-site-${name}.png`)
      t.ok(await page.screenshot({ path }))
      const overflow = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'))
      t.ok(overflow <= 0, 'nothing is wider than the window')
    })
