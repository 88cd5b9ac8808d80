/** A user opens every section of the account page in a real browser, without script. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { launchBrowser } from '../helpers/chromium.ts'
import { obtainTokens, register } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { isAlive } from '../helpers/wire.ts'

const server = await startServer(t, { service: { name: 'Riverside School' } })
const browser = await launchBrowser()
t.teardown(() => browser.close())

t.test('each section works without script, and a deleted user is gone', async (t) => {
  const client = await register(server, { client_name: 'Course Sync' })
  const tokens = await obtainTokens(server, client, { fields: { scope: 'openid courses:read' } })
  const context = await browser.newContext({ javaScriptEnabled: false, acceptDownloads: true })
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  page.on('console', (message) => {
    if (message.type() === 'error') t.fail(message.text())
  })
  const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor()
  const section = (name: string) =>
    page.getByRole('navigation').getByRole('link', { name, exact: true }).click()
  const done = (words: string) => page.getByRole('status').filter({ hasText: words }).waitFor()

  await page.goto(`${server.issuer}/account`)
  await page.getByLabel('Email or user name').fill(alice.username)
  await page.getByLabel('Password').fill(alice.password)
  await page.keyboard.press('Enter')
  await heading('Your account')
  await page.getByText('1 app can use your account.').waitFor()

  await page.getByRole('link', { name: 'Connected apps' }).click()
  await heading('Connected apps')
  await page.getByRole('button', { name: 'Disconnect Course Sync' }).focus()
  await page.keyboard.press('Enter')
  await done('Disconnected, everywhere')
  t.notOk(await isAlive(server, tokens.access_token))

  await section('Devices')
  await page.getByText('This browser').waitFor()
  await page.getByRole('button', { name: 'Sign out of every other browser' }).click()
  await done('Every other browser is signed out.')
  t.equal(await page.getByRole('listitem').filter({ hasText: 'Signed in' }).count(), 1)

  await section('Security')
  await page.getByRole('link', { name: 'Change password' }).click()
  await page.getByLabel('Current password').fill(alice.password)
  await page.getByLabel('New password', { exact: true }).fill('seven green umbrellas')
  await page.getByLabel('New password again').fill('seven green umbrellas')
  await page.getByLabel('Disconnect every app, too').check()
  await page.getByRole('button', { name: 'Change password' }).click()
  await done('Your password is changed')
  await heading('Password and sign-in')

  await section('Profile')
  await page.getByLabel('Nickname').fill('Ally')
  await page.getByRole('button', { name: 'Save' }).click()
  await done('Saved.')
  t.equal(await page.getByLabel('Nickname').inputValue(), 'Ally')

  await section('Activity')
  await page.getByText('You changed your password.').waitFor()

  await section('Data')
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download the copy' }).click()
  const file = await download
  t.equal(file.suggestedFilename(), 'account.json')
  const copy = JSON.parse(readFileSync(await file.path(), 'utf8')) as { account: { claims: object } }
  t.equal((copy.account.claims as Record<string, string>)['nickname'], 'Ally')

  await page.getByRole('link', { name: 'Delete the account' }).click()
  await page.getByLabel('To confirm, type your user name: alice').fill('alice')
  await page.getByRole('button', { name: 'Delete my account for good' }).click()
  await heading('Your account is deleted')
  await page.goto(`${server.issuer}/account`)
  await heading('Sign in')
  t.equal(await server.deps.store.find('userByLogin', 'alice'), undefined)
})

t.test('a page left open during a sign-in in another tab says so, and continues from there', async (t) => {
  const context = await browser.newContext({ javaScriptEnabled: false })
  t.teardown(() => context.close())
  context.setDefaultTimeout(60_000)
  const [one, two] = [await context.newPage(), await context.newPage()]
  const signIn = async (page: typeof one) => {
    await page.getByLabel('Email or user name').fill('bob')
    await page.getByLabel('Password').fill('bob-in-tests')
    await page.getByRole('button', { name: 'Sign in' }).click()
  }
  await one.goto(`${server.issuer}/account/profile`)
  await signIn(one)
  await one.getByLabel('Nickname').fill('Bobby')
  server.advance(601)
  await two.goto(`${server.issuer}/account/password`)
  await two.getByRole('heading', { name: 'Confirm that it is you' }).waitFor()
  await signIn(two)
  await two.getByLabel('Current password').waitFor()
  await one.getByRole('button', { name: 'Save' }).click()
  await one.getByRole('heading', { name: 'This page is out of date' }).waitFor()
  await one.getByRole('link', { name: 'Show the page again' }).click()
  await one.getByLabel('Nickname').fill('Bobby')
  await one.getByRole('button', { name: 'Save' }).click()
  await one.getByRole('status').filter({ hasText: 'Saved.' }).waitFor()
  await one.goBack()
  await one.getByRole('heading', { level: 1, name: 'Profile' }).waitFor()
  t.equal((await server.deps.store.find('userByLogin', 'bob'))?.claims['nickname'], 'Bobby')
})
