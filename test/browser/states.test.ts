/** What a user sees when something is late, gone, doubled or switched off: each page explains it and leads on. */
import t from 'tap'
import { launchBrowser } from '../helpers/chromium.ts'
import { alice, startServer } from '../helpers/server.ts'
import { startLoopbackClient } from './loopback-client.ts'
import { allowButton, backAt, headed, signIn, visit } from './visitor.ts'

const idle = 600
const server = await startServer(t, {
  lifetimes: { sessionIdleSeconds: idle },
  signInThrottle: { failuresPerAccountAndPrefix: 2, windowSeconds: 60 },
})
const browser = await launchBrowser()
t.teardown(() => browser.close())
const client = await startLoopbackClient(t, server)
const tooLong = 'This page was open for too long'

t.test('a sign-in page that waited too long says so, and the app starts again', async (t) => {
  const { page } = await visit(t, browser, client.url())
  server.advance(server.deps.config.lifetimes.interactionSeconds)
  await signIn(page)
  await headed(page, tooLong)
  await page.goto(client.url())
  await signIn(page)
  await allowButton(page).click()
  t.type((await backAt(page, client))['code'], 'string')
})

t.test(
  'a session that ends behind the consent page leads to sign-in, and back to the same request',
  async (t) => {
    const { page } = await visit(t, browser, client.url({ state: 'kept' }))
    await signIn(page)
    await allowButton(page).waitFor()
    server.advance(idle)
    await allowButton(page).click()
    await headed(page, 'Sign in')
    await signIn(page)
    await allowButton(page).click()
    t.equal((await backAt(page, client))['state'], 'kept')
  },
)

t.test('going back to the sign-in page after signing in leads forward again', async (t) => {
  const { page } = await visit(t, browser, client.url({ state: 'back' }))
  await signIn(page)
  await allowButton(page).waitFor()
  await page.goBack()
  await allowButton(page).waitFor()
  await allowButton(page).click()
  t.equal((await backAt(page, client))['state'], 'back')
})

t.test('a user who signs in again in another tab is shown the first request again', async (t) => {
  const { page, context } = await visit(t, browser, client.url({ state: 'first' }))
  const second = await context.newPage()
  await second.goto(client.url({ state: 'second' }))
  await signIn(page)
  await allowButton(page).waitFor()
  await signIn(second)
  await allowButton(second).click()
  t.equal((await backAt(second, client))['state'], 'second')
  await allowButton(page).click()
  await headed(page, 'This page is out of date')
  await page.getByRole('link', { name: 'Show the page again' }).click()
  await allowButton(page).click()
  t.equal((await backAt(page, client))['state'], 'first')
})

t.test('a browser without cookies shows what to do', async (t) => {
  const { page } = await visit(t, browser, 'about:blank')
  await page.route('**/*', async (route) => {
    const response = await fetch(route.request().url(), { redirect: 'manual' })
    const headers = Object.fromEntries([...response.headers].filter(([name]) => name !== 'set-cookie'))
    await route.fulfill({ status: response.status, headers, body: Buffer.from(await response.arrayBuffer()) })
  })
  await page.goto(client.url())
  await headed(page, 'This browser did not send our cookie')
  await page.getByText('Allow cookies for this site').waitFor()
})

t.test('a user who guessed too often sees when to come back, and then continues', async (t) => {
  const { page } = await visit(t, browser, client.url({ state: 'throttled' }))
  for (let guess = 0; guess < 3; guess += 1) await signIn(page, 'not the password')
  await page.getByRole('alert').getByText('Too many failed attempts. Try again in').waitFor()
  t.equal(await page.getByLabel('Email or user name').inputValue(), alice.username)
  server.advance(60)
  await signIn(page)
  await allowButton(page).click()
  t.equal((await backAt(page, client))['state'], 'throttled')
})

t.test('without script, on a narrow dark touch screen, a user signs in and denies', async (t) => {
  const { page, complaints } = await visit(t, browser, client.url({ state: 'touched' }), {
    javaScriptEnabled: false,
    viewport: { width: 320, height: 640 },
    colorScheme: 'dark',
    hasTouch: true,
    isMobile: true,
  })
  await page.getByLabel('Email or user name').fill(alice.username)
  await page.getByLabel('Password').fill(alice.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).tap()
  await page.getByRole('button', { name: 'Deny' }).tap()
  t.match(await backAt(page, client), { error: 'access_denied', state: 'touched' })
  t.strictSame(complaints, [])
})

t.test('a printed error has its facts and no buttons', async (t) => {
  const { page } = await visit(t, browser, `${server.issuer}/oauth/authorize?client_id=nobody`)
  await page.emulateMedia({ media: 'print' })
  const facts = await page.locator('.facts').innerText()
  for (const fact of ['invalid_client', 'status 400', 'client_id', 'Request']) t.match(facts, fact)
  for (const it of await page.locator('a, button, form').all()) t.equal(await it.isVisible(), false)
  const ink = await page.evaluate<string>('getComputedStyle(document.body).color')
  t.equal(ink, 'rgb(0, 0, 0)')
})
