/** A user with a real browser follows an invitation, from the email to the account page. */
import t from 'tap'
import { launchBrowser } from '../helpers/chromium.ts'
import { newFolder } from '../helpers/command.ts'
import { runAll } from '../helpers/commands.ts'
import { startMailbox } from '../helpers/mailbox.ts'
import { startServer } from '../helpers/server.ts'

const data = newFolder(t)
const mailbox = await startMailbox(t)
const mail = { url: mailbox.url, from: 'accounts@example.org' }
const server = await startServer(t, { store: `sqlite:${data}/lychgate.db`, mail })
const browser = await launchBrowser()
t.teardown(() => browser.close())
const password = 'a password nobody else has'

t.test('an invitation leads to a password, a sign-in and the account page, and works once', async (t) => {
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
  await page.getByLabel('New password', { exact: true }).fill(password)
  await page.getByLabel('New password again').fill(`${password}.`)
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('alert').filter({ hasText: 'are not the same' }).waitFor()
  t.equal(await page.getByLabel('Given name').inputValue(), 'Carol')
  t.equal(await page.getByLabel('Family name').inputValue(), 'Cooper')
  await page.getByLabel('New password', { exact: true }).fill(password)
  await page.getByLabel('New password again').fill(password)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Your password is saved' }).waitFor()
  await page.reload()
  await page.getByRole('link', { name: 'Sign in' }).click()
  await page.getByLabel('Email or user name').fill('carol@example.org')
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
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
