/** A user with a real browser, a program on their computer that listens on a loopback port, and the real server. */
import { createServer } from 'node:http'
import type { BrowserContext, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { launchBrowser } from '../helpers/chromium.ts'
import { callApi, exchange, type Tokens } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { type LoopbackClient, startLoopbackClient } from './loopback-client.ts'

const server = await startServer(t)
const browser = await launchBrowser()
t.teardown(() => browser.close())

/** A separate browser, and everything its policies blocked. */
async function open(
  t: Test,
  url: string,
): Promise<{ page: Page; context: BrowserContext; blocked: string[] }> {
  const context = await browser.newContext()
  t.teardown(() => context.close())
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const blocked: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') blocked.push(message.text())
  })
  await page.goto(url)
  return { page, context, blocked }
}

async function signIn(page: Page, password = alice.password): Promise<void> {
  await page.getByLabel('Email or user name').fill(alice.username)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

const allow = (page: Page) => page.getByRole('button', { name: 'Allow', exact: true }).click()
const back = (page: Page) => page.getByRole('heading', { name: 'You may close this page' }).waitFor()

async function tokensOf(client: LoopbackClient): Promise<Tokens> {
  const response = await exchange(server, client, client.calls.at(-1)?.parameters['code'] ?? '')
  if (response.status !== 200) throw new Error(await response.text())
  return (await response.json()) as Tokens
}

t.test(
  'with the keyboard alone a user signs in, narrows and approves, and the client gets the rest',
  async (t) => {
    const client = await startLoopbackClient(t, server)
    const scope = 'openid profile courses:read courses:write'
    const { page, context, blocked } = await open(t, client.url({ scope }))
    await page.locator('#username:focus').waitFor()
    await page.keyboard.type(alice.username)
    await page.keyboard.press('Tab')
    await page.keyboard.type(alice.password)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Allow Course Sync CLI to use your account?' }).waitFor()
    t.same(client.calls, [], 'nothing before the user approves')
    await page.getByRole('checkbox', { name: 'Change: Courses' }).press('Space')
    await page.getByRole('button', { name: 'Allow', exact: true }).press('Enter')
    await back(page)

    t.match(client.calls, [{ method: 'GET', parameters: { state: 'a-state', iss: server.issuer } }])
    t.same(Object.keys(client.calls[0]?.parameters ?? {}).sort(), ['code', 'iss', 'state'])
    t.same(blocked, [], 'no policy was in the way')
    const tokens = await tokensOf(client)
    t.equal(tokens.scope, 'openid profile courses:read')
    t.equal((await callApi(server, '/api/courses', tokens.access_token)).status, 200)
    const write = await callApi(server, '/api/courses', tokens.access_token, { method: 'POST' })
    t.equal(write.status, 403)

    const cookies = await context.cookies(server.issuer)
    t.ok(cookies.length > 0)
    for (const { httpOnly, sameSite } of cookies)
      t.match({ httpOnly, sameSite }, { httpOnly: true, sameSite: 'Lax' })
  },
)

t.test(
  '[service-5-approval-required] a user who denies is redirected with access_denied and no code',
  async (t) => {
    const client = await startLoopbackClient(t, server)
    const { page } = await open(t, client.url())
    await signIn(page)
    await page.getByRole('button', { name: 'Deny' }).waitFor()
    t.same(client.calls, [], 'signing in approves nothing')
    await page.getByRole('button', { name: 'Deny' }).click()
    await back(page)
    t.match(client.calls, [
      { method: 'GET', parameters: { error: 'access_denied', state: 'a-state', iss: server.issuer } },
    ])
    t.notOk(client.calls[0]?.parameters['code'])
  },
)

t.test(
  '[rfc6749-10.2-no-silent-reapproval] the next authorization needs no password and asks for consent again',
  async (t) => {
    const client = await startLoopbackClient(t, server)
    const { page } = await open(t, client.url())
    await signIn(page)
    await allow(page)
    await back(page)
    await page.goto(client.url({ state: 'again' }))
    t.equal(client.calls.length, 1)
    await allow(page)
    await back(page)
    t.same(
      client.calls.map(({ parameters }) => parameters['state']),
      ['a-state', 'again'],
    )
  },
)

t.test('form_post reaches the listener as a POST that the browser submits by itself', async (t) => {
  const client = await startLoopbackClient(t, server)
  const { page, blocked } = await open(t, client.url({ response_mode: 'form_post' }))
  await signIn(page)
  await allow(page)
  await back(page)
  t.match(client.calls, [{ method: 'POST', parameters: { state: 'a-state', iss: server.issuer } }])
  t.equal(new URL(page.url()).search, '', 'nothing in the address')
  t.same(blocked, [])
  t.type((await tokensOf(client)).access_token, 'string')
})

t.test('the redirect reaches a listener on [::1]', async (t) => {
  const client = await startLoopbackClient(t, server, { host: '::1' })
  t.match(client.redirectUri, /^http:\/\/\[::1\]:\d+\/callback$/)
  const { page, blocked } = await open(t, client.url())
  await signIn(page)
  await allow(page)
  await back(page)
  t.same(blocked, [])
  t.type((await tokensOf(client)).access_token, 'string')
})

t.test('a second tab of an approved request says so, and revokes nothing', async (t) => {
  const client = await startLoopbackClient(t, server)
  const { page, context } = await open(t, client.url())
  await signIn(page)
  await page.getByRole('button', { name: 'Allow', exact: true }).waitFor()
  const second = await context.newPage()
  await second.goto(page.url())
  await second.getByRole('button', { name: 'Allow', exact: true }).waitFor()
  await allow(page)
  await back(page)
  await allow(second)
  await second.getByRole('heading', { name: 'This page was already used, or it has expired' }).waitFor()
  await page.goBack()
  await page.getByRole('heading', { name: 'This page was already used, or it has expired' }).waitFor()
  t.equal(client.calls.length, 1)
  t.type((await tokensOf(client)).access_token, 'string')
})

t.test(
  'a wrong password shows an error, the request stays pending, and the right one continues',
  async (t) => {
    const client = await startLoopbackClient(t, server)
    const { page, context } = await open(t, client.url())
    await signIn(page, 'not the password')
    await page.getByRole('alert').getByText('the password is wrong').waitFor()
    t.equal(await page.getByLabel('Email or user name').inputValue(), alice.username)
    t.equal(await page.getByLabel('Password').inputValue(), '')
    t.notOk((await context.cookies()).some(({ name }) => name.includes('session')))
    await page.locator('#password:focus').waitFor()
    await page.keyboard.type(alice.password)
    await page.keyboard.press('Enter')
    await allow(page)
    await back(page)
    t.match(client.calls, [{ parameters: { code: String } }])
  },
)

t.test('a browser that lost our cookie shows it, and the request continues once it has one', async (t) => {
  const client = await startLoopbackClient(t, server)
  const { page, context } = await open(t, client.url())
  await context.clearCookies()
  await signIn(page)
  await page.getByRole('heading', { name: 'This browser did not send our cookie' }).waitFor()
  await page.goto(client.url())
  await signIn(page)
  await allow(page)
  await back(page)
  t.equal(client.calls.length, 1)
})

/** Another site, for one page. */
async function startSite(t: Test, html: string): Promise<string> {
  const site = createServer((_request, response) => response.setHeader('content-type', 'text/html').end(html))
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
  t.teardown(() => site.close())
  const address = site.address()
  return `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/`
}

t.test('[rfc6749-10.13-frame-protection] no other site can show our pages in a frame', async (t) => {
  const client = await startLoopbackClient(t, server)
  const { page, context, blocked } = await open(t, client.url())
  await signIn(page)
  await page.getByRole('button', { name: 'Allow', exact: true }).waitFor()
  const response = await page.reload()
  t.equal(response?.headers()['x-frame-options'], 'DENY')
  const site = await startSite(t, `<!doctype html><title>Win</title><iframe src="${page.url()}"></iframe>`)
  const other = await context.newPage()
  other.on('console', (message) => void blocked.push(message.text()))
  await other.goto(site, { waitUntil: 'load' })
  t.equal(await other.frames()[1]?.locator('form').count(), 0)
  t.match(blocked.join(), /frame/i)
  t.same(client.calls, [])
})

t.test('[rfc6749-10.12-csrf-approval] a form of another site approves nothing', async (t) => {
  const client = await startLoopbackClient(t, server)
  const { page, context } = await open(t, client.url())
  await signIn(page)
  await page.getByRole('button', { name: 'Allow', exact: true }).waitFor()
  const hidden = await page.locator('input[type=hidden]').all()
  const inputs = await Promise.all(
    hidden.map(async (input) => [await input.getAttribute('name'), await input.getAttribute('value')]),
  )
  const fields = inputs.map(([name, value]) => `<input type="hidden" name="${name}" value="${value}">`)
  t.ok(fields.length > 1)
  // Even if the form has every field: SameSite withholds the cookie, and the browser reports the site.
  const form = `<form method="post" action="${server.issuer}/consent">${fields.join('')}<button name="decision" value="approve">Win a prize</button></form>`
  const other = await context.newPage()
  await other.goto(await startSite(t, `<!doctype html><title>Win</title>${form}`))
  const [httpResponse] = await Promise.all([
    other.waitForResponse((response) => response.request().method() === 'POST'),
    other.getByRole('button').click(),
  ])
  t.ok([400, 403].includes(httpResponse.status()), String(httpResponse.status()))
  t.same(client.calls, [])
  await allow(page)
  await back(page)
  t.equal(client.calls.length, 1, 'the user still decides')
})
