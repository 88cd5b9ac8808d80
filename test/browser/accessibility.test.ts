/** axe-core checks the pages of the real server. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { BrowserContextOptions, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { defaultScopeCatalogue } from '../../src/domain/scope-catalogue.ts'
import { launchBrowser } from '../helpers/chromium.ts'
import { startServer } from '../helpers/server.ts'
import { startLoopbackClient } from './loopback-client.ts'
import { signIn, visit } from './visitor.ts'

interface Violation {
  readonly id: string
  readonly nodes: readonly { readonly html: string }[]
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const server = await startServer(t, {
  service: { name: 'Riverside School', documentation: 'https://docs.riverside.example/api' },
})
const client = await startLoopbackClient(t, server)
const everything = client.url({ scope: defaultScopeCatalogue.map(({ name }) => name).join(' ') })
const browser = await launchBrowser()
t.teardown(() => browser.close())

const looks = [
  { width: 320, colorScheme: 'dark' },
  { width: 900, colorScheme: 'light' },
] as const

/** Asserts no finding of axe, nothing blocked by a policy, and nothing wider than the window, in every theme. */
async function assertAccessible(t: Test, page: Page): Promise<void> {
  for (const { width, colorScheme } of looks) {
    await page.setViewportSize({ width, height: 800 })
    await page.emulateMedia({ colorScheme })
    await page.evaluate("document.querySelectorAll('details').forEach((it) => { it.open = true })")
    const { violations } = await page.evaluate<{ violations: readonly Violation[] }>(`${axe}; axe.run()`)
    const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
    t.same(found, [], `${await page.title()}, ${width} ${colorScheme}`)
    const overhang = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
    t.ok(overhang <= 0, `${overhang} px wider than ${width}`)
  }
}

async function open(t: Test, url: string, options: BrowserContextOptions = {}): Promise<Page> {
  const { page, complaints } = await visit(t, browser, url, options)
  // A rejected page is an error to the console too.
  const judge = (text: string) => void (/status of 4\d\d/.test(text) || t.fail(text))
  complaints.forEach(judge)
  page.on('console', (message) => void (message.type() === 'error' && judge(message.text())))
  return page
}

t.test('the sign-in page is accessible, with and without a problem', async (t) => {
  const page = await open(t, everything)
  await assertAccessible(t, page)
  await signIn(page, 'not the password')
  await page.getByRole('alert').waitFor()
  await assertAccessible(t, page)
})

t.test('the consent page is accessible with all 38 scopes', async (t) => {
  const page = await open(t, everything)
  await signIn(page)
  await page.getByRole('button', { name: 'Deny' }).waitFor()
  t.equal(await page.getByRole('checkbox', { includeHidden: true }).count(), 38)
  await assertAccessible(t, page)
  t.equal(await page.getByRole('checkbox').count(), 38, 'each of them can be reached')
})

t.test('the pages to choose an account and to sign out are accessible', async (t) => {
  const page = await open(t, everything)
  await signIn(page)
  await page.getByRole('button', { name: 'Deny' }).waitFor()
  await page.goto(client.url({ prompt: 'select_account' }))
  await page.getByRole('heading', { name: 'Choose an account' }).waitFor()
  await assertAccessible(t, page)
  await page.goto(`${server.issuer}/oauth/logout`)
  await page.getByRole('heading', { name: 'Sign out of Riverside School?' }).waitFor()
  await assertAccessible(t, page)
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'You are signed out' }).waitFor()
  await assertAccessible(t, page)
})

t.test('the error pages are accessible', async (t) => {
  const page = await open(t, `${server.issuer}/oauth/authorize?client_id=nobody`)
  await page.getByRole('heading', { name: 'This request cannot be continued' }).waitFor()
  await assertAccessible(t, page)
  await page.goto(`${server.issuer}/nothing/here`)
  await page.getByRole('heading', { name: 'There is no such page' }).waitFor()
  await assertAccessible(t, page)
})

t.test('the home page is accessible', async (t) => {
  const page = await open(t, `${server.issuer}/`)
  await assertAccessible(t, page)
})

t.test('right-to-left pages are accessible, and mirrored', async (t) => {
  const page = await open(t, client.url({ ui_locales: 'ar' }))
  t.equal(await page.locator('html').getAttribute('dir'), 'rtl')
  await assertAccessible(t, page)
  const [sign, name] = await Promise.all(
    ['.brand svg', '.brand span'].map((place) => page.locator(place).boundingBox()),
  )
  t.ok(sign && name && sign.x > name.x, 'the sign stands before the name')
})

t.test('a colour and a logo of the operator are shown under the same policy, and accessible', async (t) => {
  const folder = t.testdir({
    'logo.svg':
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8" width="8" height="8"><path d="M0 0h8v8z"/></svg>',
  })
  // The palest colour that is accepted.
  const own = await startServer(t, {
    service: { name: 'Riverside School', accent: '#ffeb3b', logo: `${folder}/logo.svg` },
  })
  const app = await startLoopbackClient(t, own)
  const page = await open(t, app.url())
  await assertAccessible(t, page)
  await page.emulateMedia({ colorScheme: 'light' })
  const fill = await page.evaluate<string>(
    "getComputedStyle(document.querySelector('button')).backgroundColor",
  )
  t.equal(fill, 'rgb(255, 235, 59)')
  t.equal(await page.evaluate("document.querySelector('.brand img').naturalWidth"), 8)
})
