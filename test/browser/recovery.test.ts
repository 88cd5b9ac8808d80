/** Users who lost what they sign in with come back, in a real browser: by a recovery code, and by an operator. */
import { Secret, TOTP } from 'otpauth'
import type { Page } from 'playwright-core'
import t from 'tap'
import { launchBrowser } from '../helpers/chromium.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { alice, startServer } from '../helpers/server.ts'
import { addAuthenticator } from './virtual-authenticator.ts'
import { headed, signIn, visit } from './visitor.ts'

const data = newFolder(t)
const server = await startServer(t, {
  store: `sqlite:${data}/lychgate.db`,
  signInPolicy: { require: 'second factor' },
})
const browser = await launchBrowser()
t.teardown(() => browser.close())
const codesUrl = `${server.issuer}/account/one-time-codes`

/** Turns one-time codes on, and returns the recovery codes. */
async function turnOnCodes(page: Page): Promise<readonly string[]> {
  await page.goto(codesUrl)
  await page.locator('button[value=begin]').click()
  const secret = (await page.locator('p[dir=ltr] code').innerText()).replaceAll(/\s/g, '')
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: server.now() * 1000 })
  await page.getByRole('textbox').fill(code)
  await page.keyboard.press('Enter')
  await page.locator('.recovery').waitFor()
  return page.locator('.recovery code').allInnerTexts()
}

const operate = async (...line: readonly string[]) => {
  const environment = { LYCHGATE_ISSUER: server.issuer }
  const { code, stdout, stderr } = await runHere([...line, '--data', data, '--json'], { environment })
  t.equal(code, 0, stderr)
  return JSON.parse(stdout)
}

t.test('a user without the phone signs in with a recovery code, and sets codes up again', async (t) => {
  const { page, context } = await visit(t, browser, `${server.issuer}/account`)
  await signIn(page)
  const recoveryCodes = await turnOnCodes(page)
  t.equal(recoveryCodes.length, 10)
  await context.clearCookies()
  await page.goto(`${server.issuer}/account`)
  await signIn(page)
  await headed(page, 'Confirm that it is you')
  await page.getByRole('link', { name: 'recovery code' }).click()
  await page.getByLabel('Recovery code').fill(recoveryCodes[3] ?? '')
  await page.keyboard.press('Enter')
  await page.waitForURL(`${server.issuer}/account`)
  await page.goto(codesUrl)
  await page.locator('summary').last().click()
  await page.locator('button[value=remove]').click()
  const fresh = await turnOnCodes(page)
  t.notOk(fresh.includes(recoveryCodes[4] ?? ''), 'the former recovery codes are gone')
})

t.test('a user who lost everything is let in by an operator, and creates a passkey', async (t) => {
  const shown = await operate('user', 'show', alice.username)
  t.match(shown, { second_factor: true })
  const early = await operate('user', 'reset-link', alice.username)
  const { page, context, complaints } = await visit(t, browser, String(early.link))
  const { session, authenticatorId } = await addAuthenticator(context, page)
  await headed(page, 'Get back into your account')
  t.equal(await page.getByRole('button', { name: 'Continue with a passkey' }).count(), 0)
  await operate('user', 'remove-second-factor', alice.username, '--yes')
  await page.reload()
  await page.getByRole('button', { name: 'Continue with a passkey' }).click()
  await page.getByText('The passkey was added.').waitFor()
  const { credentials } = await session.send('WebAuthn.getCredentials', { authenticatorId })
  t.equal(credentials.length, 1)
  t.match(await operate('user', 'show', alice.username), {
    has_password: false,
    passkeys: 1,
    second_factor: false,
  })
  await page.goto(`${server.issuer}/account/security`)
  await page.getByText('You have no password.').waitFor()
  await page.getByRole('link', { name: 'Choose a password' }).click()
  await page.getByLabel('New password', { exact: true }).fill('another password nobody has')
  await page.getByLabel('New password again').fill('another password nobody has')
  await page.keyboard.press('Enter')
  await page.getByText('Your password is changed').waitFor()
  t.strictSame(complaints, [])
})
