/** A user with a real browser follows an invitation, from the email to the account page. */
import t from 'tap'
import { insert } from '../../src/domain/decision.ts'
import { systemRandom } from '../../src/system/system.ts'
import { makeLink } from '../../src/users/one-time-links.ts'
import { createUser } from '../../src/users/rules/user.ts'
import { launchBrowser } from '../helpers/chromium.ts'
import { newFolder } from '../helpers/command.ts'
import { runAll } from '../helpers/commands.ts'
import { startMailbox } from '../helpers/mailbox.ts'
import { startServer } from '../helpers/server.ts'
import { addAuthenticator } from './virtual-authenticator.ts'
import { headed, visit } from './visitor.ts'

const data = newFolder(t)
const mailbox = await startMailbox(t)
const mail = { url: mailbox.url, from: 'accounts@example.org' }
const server = await startServer(t, { store: `sqlite:${data}/lychgate.db`, mail })
const browser = await launchBrowser()
t.teardown(() => browser.close())
const password = 'a password nobody else has'

/** Adds a user, and makes a link that is handed over. */
async function invite(username: string) {
  const user = createUser({ username }, systemRandom(16), server.now())
  const { id } = user
  await server.deps.store.write(insert('user', user))
  const recipient = { purpose: 'invitation', userId: id } as const
  return { id, ...(await makeLink(server.deps, recipient, { by: 'operator', at: server.now() })) }
}

t.test('an invitation leads to a password and the account page, and works once', async (t) => {
  process.env['LYCHGATE_MAIL_URL'] = mail.url
  process.env['LYCHGATE_MAIL_FROM'] = mail.from
  process.env['LYCHGATE_ISSUER'] = server.issuer
  const line = ['user', 'invite', 'carol@example.org', '--username', 'carol', '--data', data, '--json']
  const [invited] = await runAll([line])
  t.match(JSON.parse(invited?.stdout ?? ''), { username: 'carol', sent_to: 'carol@example.org' })
  const email = await mailbox.arrived(1)
  t.match(email, { to: ['carol@example.org'], subject: 'Your invitation to Lychgate' })

  const context = await browser.newContext()
  t.teardown(() => context.close())
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const blocked: string[] = []
  page.on('console', (message) => void (message.type() === 'error' && blocked.push(message.text())))
  const referers: string[] = []
  page.on('request', (request) => {
    const { referer } = request.headers()
    if (referer !== undefined) referers.push(referer)
  })
  await page.goto(email.url)
  await page.getByRole('heading', { name: 'Welcome to Lychgate' }).waitFor()
  await page.getByLabel('Given name').fill('Carol')
  await page.getByLabel('Family name').fill('Cooper')
  await page.getByText('Choose a password instead').click()
  await page.getByLabel('New password', { exact: true }).fill(password)
  await page.getByLabel('New password again').fill(`${password}.`)
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('alert').filter({ hasText: 'are not the same' }).waitFor()
  t.equal(await page.getByLabel('Given name').inputValue(), 'Carol')
  t.equal(await page.getByLabel('Family name').inputValue(), 'Cooper')
  await page.getByLabel('New password', { exact: true }).fill(password)
  await page.getByLabel('New password again').fill(password)
  await page.keyboard.press('Enter')
  await page.getByText('Carol Cooper').first().waitFor()
  t.match(page.url(), `${server.issuer}/account`)

  const carol = await server.deps.store.find('userByLogin', 'carol')
  t.equal(carol?.claims['email_verified'], true, 'the link of the letter proves the address')
  const policies = blocked.filter((text) => !text.includes('status of 400'))
  t.strictSame(policies, [], 'no policy was in the way')
  t.notOk(referers.join(' ').includes('lyc_link_'), 'the link is in no other request')
  await page.goto(email.url)
  await page.getByRole('heading', { name: 'This link no longer works' }).waitFor()
})

t.test('an invited user creates a passkey on the page of the link, and signs in with it later', async (t) => {
  const { url } = await invite('dora')
  const { page, context, complaints } = await visit(t, browser, 'about:blank', {
    viewport: { width: 320, height: 800 },
    colorScheme: 'dark',
  })
  const { session, authenticatorId } = await addAuthenticator(context, page)
  await page.goto(url)
  await headed(page, 'Welcome to Lychgate')
  t.equal(await page.getByLabel('New password', { exact: true }).isVisible(), false, 'the passkey is first')
  t.equal(await page.getByText('Adding a passkey needs JavaScript').count(), 0)
  await page.getByLabel('Given name').fill('Dora')
  await page.keyboard.press('Enter')
  await page.getByText('The passkey was added.').waitFor()
  await page.getByText('Dora').first().waitFor()
  const { credentials } = await session.send('WebAuthn.getCredentials', { authenticatorId })
  t.match(credentials, [{ rpId: 'localhost', userName: 'dora', isResidentCredential: true }])
  await page.goto(`${server.issuer}/account/passkeys`)
  await page.getByRole('button', { name: 'Remove' }).click()
  await page.getByRole('alert').filter({ hasText: 'only way to sign in' }).waitFor()
  await context.clearCookies()
  await page.goto(`${server.issuer}/account`)
  // The device signs in by itself: it needs no touch, and the page asks it as soon as it is shown.
  await page.getByText('Dora').first().waitFor()
  t.strictSame(
    complaints.filter((text) => !text.includes('status of 400')),
    [],
  )
})

t.test('a passkey that fails leaves the page unchanged, and a password is chosen instead', async (t) => {
  const { url, id } = await invite('erin')
  const { page, context } = await visit(t, browser, 'about:blank')
  const { session, authenticatorId } = await addAuthenticator(context, page)
  await session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false })
  await page.goto(url)
  await page.getByRole('button', { name: 'Continue with a passkey' }).click()
  await page.getByRole('alert').filter({ hasText: 'No passkey was created' }).waitFor()
  await page.getByText('Choose a password instead').click()
  await page.getByLabel('New password', { exact: true }).fill(password)
  await page.getByLabel('New password again').fill(password)
  await page.keyboard.press('Enter')
  await page.waitForURL(`${server.issuer}/account`)
  t.not((await server.deps.store.find('user', id))?.passwordHash, undefined)
})

t.test('without JavaScript a password is chosen', async (t) => {
  const { url } = await invite('frida')
  const { page } = await visit(t, browser, url, { javaScriptEnabled: false })
  await page.getByText('Adding a passkey needs JavaScript').waitFor()
  t.equal(await page.getByRole('button', { name: 'Continue with a passkey' }).isVisible(), false)
  await page.getByText('Choose a password instead').click()
  await page.getByLabel('New password', { exact: true }).fill(password)
  await page.getByLabel('New password again').fill(password)
  await page.keyboard.press('Enter')
  await page.waitForURL(`${server.issuer}/account`)
})
