/** The consent page in a real browser: narrowing by touch, key and one click, what is new, names of strangers. */
import t from 'tap'
import { integrate } from '../helpers/authorization.ts'
import { launchBrowser } from '../helpers/chromium.ts'
import { authorizationUrl, exchange, type Tokens } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { type LoopbackClient, startLoopbackClient } from './loopback-client.ts'
import { allowButton, backAt, signIn, visit } from './visitor.ts'

const server = await startServer(t)
const browser = await launchBrowser()
t.teardown(() => browser.close())
const client = await startLoopbackClient(t, server)
const narrow = { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true }

async function scopeOf(client: LoopbackClient): Promise<readonly string[]> {
  const response = await exchange(server, client, client.calls.at(-1)?.parameters['code'] ?? '')
  const { scope } = (await response.json()) as Tokens
  return scope.split(' ')
}

t.test('on a touch screen the whole cell around a checkbox is its target', async (t) => {
  const { page } = await visit(t, browser, client.url({ scope: 'openid courses:read students:read' }), narrow)
  await signIn(page)
  const cell = page.locator('td:has(input[value="students:read"])')
  const box = await cell.boundingBox()
  t.ok(box && box.width >= 44 && box.height >= 44)
  // Near its corner, well away from the checkbox.
  await cell.tap({ position: { x: 6, y: 6 } })
  t.equal(await page.locator('input[value="students:read"]').isChecked(), false)
  await allowButton(page).tap()
  await backAt(page, client)
  t.strictSame(await scopeOf(client), ['openid', 'courses:read'])
})

t.test('one click leaves only reading, and another selects everything again', async (t) => {
  const scope = 'openid courses:read courses:write storage:write account:read account:write'
  const { page } = await visit(t, browser, client.url({ scope }))
  await signIn(page)
  await page.getByRole('link', { name: 'Only read, change nothing' }).click()
  const changes = page.getByRole('checkbox', { name: /^Change/ })
  t.strictSame(await Promise.all((await changes.all()).map((tick) => tick.isChecked())), [
    false,
    false,
    false,
  ])
  await page.getByRole('link', { name: 'Allow everything asked for' }).click()
  t.strictSame(await Promise.all((await changes.all()).map((tick) => tick.isChecked())), [true, true, true])
  await page.getByRole('link', { name: 'Only read, change nothing' }).click()
  await allowButton(page).click()
  await backAt(page, client)
  t.strictSame(await scopeOf(client), ['openid', 'courses:read', 'account:read'])
})

t.test('every stop of the Tab key is visible, and the buttons are last', async (t) => {
  const scope = 'openid profile courses:read courses:write students:read'
  const { page } = await visit(t, browser, client.url({ scope }))
  await signIn(page)
  await allowButton(page).waitFor()
  const stops: string[] = []
  for (let presses = 0; presses < 30 && !stops.includes('Allow'); presses += 1) {
    await page.keyboard.press('Tab')
    const [name, ring] = await page.evaluate<[string, string]>(`(() => {
      const it = document.activeElement
      const { outlineStyle, outlineWidth } = getComputedStyle(it)
      return [(it.labels?.[0] ?? it).innerText.trim().replace(/\\s+/g, ' '), outlineStyle + ' ' + outlineWidth]
    })()`)
    stops.push(name)
    t.equal(ring, 'solid 3px', name)
  }
  t.strictSame(stops, [
    'Switch account',
    'About this app',
    'Only read, change nothing',
    'See your name and basic profile',
    'Read: Courses',
    'Change: Courses',
    'Read: Students',
    'Your account',
    'Deny',
    'Allow',
  ])
})

t.test('a sensitive checkbox is announced to a screen reader', async (t) => {
  const { page } = await visit(t, browser, client.url({ scope: 'openid courses:read students:read' }))
  await signIn(page)
  const tick = page.getByRole('checkbox', { name: 'Read: Students' })
  const [description, plain] = await Promise.all(
    [tick, page.getByRole('checkbox', { name: 'Read: Courses' })].map(async (one) => {
      const id = await one.getAttribute('aria-describedby')
      return id === null ? undefined : page.locator(`[id="${id}"]`).innerText()
    }),
  )
  t.equal(description, 'Sensitive')
  t.equal(plain, undefined)
})

t.test('a later request shows only what is new', async (t) => {
  const { redirectUri } = client
  const portal = { ...(await integrate(server, {}, { redirectUris: [redirectUri] })), redirectUri }
  const url = (scope: string) => authorizationUrl(server, portal, { scope })
  const { page } = await visit(t, browser, url('openid courses:read'))
  await signIn(page)
  await allowButton(page).click()
  await backAt(page, client)
  await page.goto(url('openid courses:read'))
  t.equal(new URL(page.url()).pathname, '/callback', 'nothing new, nothing asked')
  await page.goto(url('openid courses:read courses:write events:read'))
  await page.getByRole('heading', { name: 'What is new' }).waitFor()
  const offered = await page.locator('input[name="scope"]').all()
  t.strictSame(await Promise.all(offered.map((tick) => tick.getAttribute('value'))), [
    'courses:write',
    'events:read',
  ])
})

const names: Readonly<Record<string, string>> = {
  'of 200 characters without a space': 'W'.repeat(200),
  'that is markup': '"><img src=x onerror=alert(1)><script>alert(1)</script><h1>Portal</h1>',
  'of emoji': '🦄🚀'.repeat(40),
  'that reads from right to left': 'تطبيق موثوق (Riverside School)',
  'with marks stacked up': `Z${'\u0327\u0361\u0340'.repeat(60)}algo`,
}
for (const [kind, name] of Object.entries(names))
  t.test(`a name ${kind} stays inside its box`, async (t) => {
    const stranger = await startLoopbackClient(t, server, { name })
    const { page, complaints } = await visit(t, browser, stranger.url(), narrow)
    page.on('dialog', (dialog) => t.fail(`a dialog says ${dialog.message()}`))
    await signIn(page)
    await allowButton(page).waitFor()
    t.equal(await page.locator('h1').count(), 1)
    const heading = await page.locator('h1').innerText()
    t.ok(heading.startsWith('Allow ') && heading.endsWith(' to use your account?'), heading)
    t.ok([...heading].length <= 'Allow  to use your account?'.length + 60)
    t.equal(await page.evaluate('document.documentElement.scrollWidth'), 320)
    await page.getByText('About this app').tap()
    t.equal(await page.locator('.facts dd bdi').innerText(), name)
    t.strictSame(complaints, [])
  })
