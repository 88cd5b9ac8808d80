/** The browser app as its README starts it, in a real Chromium. */
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { launchBrowser } from '../helpers/chromium.ts'
import { runExample, startExampleServer } from '../helpers/examples.ts'
import { freePort } from '../helpers/free-port.ts'
import { devAlice } from '../helpers/process.ts'

const { issuer } = await startExampleServer(t)
const origin = `http://127.0.0.1:${await freePort()}`
const app = runExample(t, ['browser-app/server.ts'], { ISSUER: issuer, ORIGIN: origin })
await app.until(/Course reader is ready at .*\n/)
const browser = await launchBrowser()
t.teardown(() => browser.close())

/** The app in a separate browser, and every error in it. */
async function open(t: Test): Promise<{ page: Page; faults: string[] }> {
  const context = await browser.newContext()
  t.teardown(() => context.close())
  context.setDefaultTimeout(10_000)
  const page = await context.newPage()
  const faults: string[] = []
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()))
  page.on('pageerror', (error) => faults.push(error.message))
  await page.goto(origin)
  await status(page, 'Nobody is signed in.')
  return { page, faults }
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const status = (page: Page, text: string) => page.getByRole('status').getByText(text).waitFor()

async function signIn(page: Page): Promise<void> {
  await press(page, 'Sign in')
  await page.getByLabel('Email or user name').fill(devAlice.username)
  await page.getByLabel('Password').fill(devAlice.password)
  await press(page, 'Sign in')
}

t.test('the browser app signs in, calls, refreshes and signs out, and stores no token', async (t) => {
  const { page, faults } = await open(t)
  await signIn(page)
  await press(page, 'Allow')
  await status(page, 'Hello Alice')
  t.equal(page.url(), `${origin}/`, 'the code is not in the address')

  await press(page, 'Courses')
  await page.getByText('"caller":"user"').waitFor()
  await press(page, 'Refresh')
  await status(page, 'Refreshed.')
  const response = page.waitForResponse(`${issuer}/api/courses`)
  await press(page, 'Courses')
  t.equal((await response).status(), 200)
  // Strings, because this runs in the page.
  const stored = await page.evaluate(
    'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
  )
  t.notMatch(stored, /lyc_|eyJ/)

  await press(page, 'Sign out')
  await status(page, 'Nobody is signed in.')
  t.equal(page.url(), `${origin}/`)
  t.same(faults, [], 'no policy was in the way')
  await press(page, 'Sign in')
  await page.getByLabel('Password').waitFor()
})

t.test('the browser app names the server that rejected it', async (t) => {
  const { page } = await open(t)
  await signIn(page)
  await press(page, 'Deny')
  await status(page, 'Not signed in: access_denied')
  t.ok(await page.getByRole('button', { name: 'Sign in', exact: true }).isVisible())
})

t.test('the browser app serves its own files and nothing else', async (t) => {
  for (const path of ['/server.ts', '/../cli-app/cli.ts', '/README.md']) {
    t.equal((await fetch(origin + path)).status, 404, path)
  }
  t.equal(await app.stop(), 0)
})
