/**
 * A newcomer's first hour, as one script in Chromium on the file that users download: an administrator with a passkey, two
 * well-known apps by their recipes, an invited user, an app for one group that requires a second factor, and the log that
 * tells it. KEEP_PICTURES names a folder in which a picture of each page is kept.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as client from 'oauth4webapi'
import { Secret, TOTP } from 'otpauth'
import type { BrowserContext, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { readRecipe } from '../../src/clients/recipes.ts'
import { look } from '../browser/look.ts'
import { addAuthenticator } from '../browser/virtual-authenticator.ts'
import { headed } from '../browser/visitor.ts'
import { makeCertificates } from '../helpers/certificates.ts'
import { launchBrowser } from '../helpers/chromium.ts'
import { ended, executable, newFolder, printed, spawnFile } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { startProxy } from '../helpers/proxy.ts'
import { linkOfFirstUser } from './walk.ts'

const mostSeconds = 360
const password = 'a password nobody else has'
const photos = 'https://photos.example.com'
const code = 'https://git.example.com'

/** What the page of a new app shows. */
interface AddedApp {
  readonly id: string
  readonly secret: string
  readonly redirectUri: string
  /** What its settings ask for. */
  readonly scope: string
}

t.test('from an empty folder to a user at an app with a second factor', async (t) => {
  const began = performance.now()
  const { issuer, link } = await startFile(t)
  const apps = await startApps(t)
  const browser = await launchBrowser(`--host-resolver-rules=MAP *.example.com 127.0.0.1:${apps}`)
  t.teardown(() => browser.close())
  const ada = await openBrowser(t, await browser.newContext({ ignoreHTTPSErrors: true }))
  await addAuthenticator(ada.context, ada.page)

  await becomeAdministrator(t, ada.page, issuer, link)
  const immich = await addByRecipe(t, ada.page, issuer, 'Immich', photos)
  const gitea = await addByRecipe(t, ada.page, issuer, 'Gitea', code)
  await createGroup(t, ada.page, issuer)
  await limit(t, ada.page, issuer, immich)
  const invitation = await invite(t, ada.page, issuer)

  const grace = await openBrowser(t, await browser.newContext({ ignoreHTTPSErrors: true }))
  await acceptInvitation(t, grace.page, issuer, invitation)
  const session = await openApp(t, grace.page, issuer, immich, () => setUpCodes(t, grace.page))
  t.match(session, { preferred_username: 'grace' })
  const atGitea = await openApp(t, grace.page, issuer, gitea)
  t.match(atGitea, { preferred_username: 'grace', groups: ['family'] })
  await grace.page.goto(`${issuer}/account/start`)
  await headed(grace.page, 'Your apps')
  for (const name of ['Immich', 'Gitea']) await grace.page.getByRole('link', { name, exact: true }).waitFor()
  await look(t, grace.page, 'newcomer-14-start-page')

  await isDenied(t, ada.page, issuer, immich)
  await readLog(t, ada.page, issuer)
  t.strictSame(grace.complaints, [])
  // That she may not use it is a page with this status.
  t.strictSame(
    ada.complaints.filter((text) => !text.includes('status of 403')),
    [],
  )
  const seconds = (performance.now() - began) / 1000
  t.comment(`${seconds.toFixed(0)} seconds`)
  t.ok(seconds < mostSeconds, `${seconds} seconds`)
})

/** Starts the file in an empty folder, as it says itself. */
async function startFile(t: Test) {
  const [folder, port] = [newFolder(t), await freePort()]
  const issuer = `http://localhost:${port}`
  const { code, stdout } = await ended(
    spawnFile(executable ?? '', ['init', '--yes', '--issuer', issuer], {}, folder),
  )
  t.equal(code, 0)
  const [, command = ''] = /^ {2}(\S+ serve --config \S+)$/m.exec(stdout) ?? []
  const [program = '', ...args] = command.split(' ')
  const server = spawnFile(program, args, {}, folder)
  t.teardown(() => server.kill('SIGKILL'))
  return { issuer, link: await printed(server, linkOfFirstUser) }
}

/** Stands in for the apps: each of their addresses has a page. Returns the port. */
async function startApps(t: Test): Promise<number> {
  const app = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html').end('<link rel="icon" href="data:,"><h1>The app</h1>')
  })
  await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve))
  t.teardown(() => app.close())
  const { port } = app.address() as AddressInfo // it listens
  return (await startProxy(t, () => port, makeCertificates(newFolder(t)).otherName)).port
}

async function openBrowser(t: Test, context: BrowserContext) {
  t.teardown(() => context.close())
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(`${message.location().url}: ${message.text()}`)
  })
  return { page, context, complaints }
}

async function becomeAdministrator(t: Test, page: Page, issuer: string, link: string) {
  await page.goto(link)
  await look(t, page, 'newcomer-01-first-user')
  await page.getByLabel('User name').fill('ada')
  await page.getByRole('button', { name: 'Continue with a passkey' }).click()
  await page.waitForURL(`${issuer}/admin`)
  await headed(page, 'Overview')
  await look(t, page, 'newcomer-02-overview')
}

async function addByRecipe(
  t: Test,
  page: Page,
  issuer: string,
  name: string,
  url: string,
): Promise<AddedApp> {
  await page.goto(`${issuer}/admin/clients/add`)
  await page.getByLabel('App', { exact: true }).selectOption(name.toLowerCase())
  await page.getByLabel('Address of the app').fill(url)
  await look(t, page, `newcomer-03-recipe-${name}`)
  await page.getByRole('button', { name: 'Continue' }).click()
  await headed(page, name)
  const [redirectUri = ''] = (await page.locator('#redirect_uris').inputValue()).split('\n')
  const weak = page.getByLabel('Accept what the recipe makes weaker')
  if ((await weak.count()) > 0) await weak.check()
  await look(t, page, `newcomer-04-form-${name}`)
  await page.getByRole('button', { name: 'Add an app' }).click()
  await headed(page, `${name} is added`)
  await look(t, page, `newcomer-05-added-${name}`)
  const [id = '', secret = ''] = await page.locator('.values code').allInnerTexts()
  t.match((await page.locator('main').innerText()).replaceAll(/\s+/g, ' '), id)
  const { scope } = readRecipe(name.toLowerCase()).client
  return { id, secret, redirectUri, scope: String(scope) }
}

async function createGroup(t: Test, page: Page, issuer: string) {
  await page.goto(`${issuer}/admin/groups`)
  await page.getByLabel('Name', { exact: true }).fill('family')
  await page.getByRole('button', { name: 'Create a group' }).click()
  await headed(page, 'family')
  await look(t, page, 'newcomer-06-group')
}

/** Lets only the group use an app, with a second factor. */
async function limit(t: Test, page: Page, issuer: string, { id }: AddedApp) {
  await page.goto(`${issuer}/admin/clients/${id}`)
  await page.locator('#allow').fill('family')
  await page.locator('#allow').press('Enter')
  await page.getByRole('link', { name: 'family' }).waitFor()
  await page.goto(`${issuer}/admin/clients/${id}/edit`)
  const more = page.locator('details', { has: page.locator('#required_sign_in') })
  await more.locator('summary').click()
  await more.locator('#required_sign_in').fill('second factor')
  await page.locator('form button.primary').click()
  await page.getByRole('status').waitFor()
  await look(t, page, 'newcomer-07-limited-app')
}

/** Invites a user into the group, and returns the link. */
async function invite(t: Test, page: Page, issuer: string): Promise<string> {
  await page.goto(`${issuer}/admin/users/invite`)
  await page.getByLabel('Email address').fill('grace@example.org')
  await page.getByLabel('User name').fill('grace')
  await look(t, page, 'newcomer-08-invite')
  await page.getByRole('button', { name: 'Invite a user' }).click()
  const link = await page.locator('code.issuer').innerText()
  await page.locator('a.button').click()
  await page.locator('#join').fill('family')
  await page.locator('#join').press('Enter')
  await page.getByRole('link', { name: 'family' }).waitFor()
  await look(t, page, 'newcomer-09-user')
  return link
}

async function acceptInvitation(t: Test, page: Page, issuer: string, link: string) {
  await page.goto(link)
  await look(t, page, 'newcomer-10-invitation')
  await page.getByLabel('Given name').fill('Grace')
  await page.getByText('Choose a password instead').click()
  await page.getByLabel('New password', { exact: true }).fill(password)
  await page.getByLabel('New password again').fill(password)
  await page.keyboard.press('Enter')
  await page.waitForURL(`${issuer}/account`)
}

/** Sets one-time codes up, on the way into an app that requires a second factor. */
async function setUpCodes(t: Test, page: Page) {
  await headed(page, 'Set up a second step')
  await look(t, page, 'newcomer-11-enrol')
  await page.getByRole('link', { name: 'Use one-time codes' }).click()
  await page.locator('button[value=begin]').click()
  const secret = (await page.locator('p[dir=ltr] code').innerText()).replaceAll(/\s/g, '')
  await look(t, page, 'newcomer-12-codes')
  await page.getByRole('textbox').fill(new TOTP({ secret: Secret.fromBase32(secret) }).generate())
  await page.keyboard.press('Enter')
  await page.locator('.recovery').waitFor()
  await page.locator('a.button').last().click()
}

function authorizationUrl(
  { authorization_endpoint: endpoint = '' }: client.AuthorizationServer,
  app: AddedApp,
  challenge: string,
): string {
  const url = new URL(endpoint)
  url.search = `${new URLSearchParams({
    client_id: app.id,
    redirect_uri: app.redirectUri,
    response_type: 'code',
    scope: app.scope,
    code_challenge: challenge,
    code_challenge_method: 'S256',
  })}`
  return url.href
}

/** Opens an app as it sends its users, and signs in with what its settings have. Returns the claims that it gets. */
async function openApp(t: Test, page: Page, issuer: string, app: AddedApp, onTheWay = async () => {}) {
  const insecure = { [client.allowInsecureRequests]: true }
  const url = new URL(issuer)
  const server = await client.processDiscoveryResponse(url, await client.discoveryRequest(url, insecure))
  const verifier = client.generateRandomCodeVerifier()
  await page.goto(authorizationUrl(server, app, await client.calculatePKCECodeChallenge(verifier)))
  await onTheWay()
  await page.getByRole('button', { name: 'Allow', exact: true }).waitFor()
  await look(t, page, `newcomer-13-consent-${new URL(app.redirectUri).hostname}`)
  await page.getByRole('button', { name: 'Allow', exact: true }).click()
  await page.waitForURL(`${app.redirectUri}?*`)
  const called = new URL(page.url())
  const credentials = { client_id: app.id }
  const parameters = client.validateAuthResponse(server, credentials, called, client.expectNoState)
  const response = await client.authorizationCodeGrantRequest(
    server,
    credentials,
    client.ClientSecretBasic(app.secret),
    parameters,
    app.redirectUri,
    verifier,
    insecure,
  )
  const tokens = await client.processAuthorizationCodeResponse(server, credentials, response)
  return client.getValidatedIdTokenClaims(tokens)
}

/** The administrator is not in the group. */
async function isDenied(t: Test, page: Page, issuer: string, app: AddedApp) {
  const server = { issuer, authorization_endpoint: `${issuer}/oauth/authorize` }
  await page.goto(authorizationUrl(server, app, 'A'.repeat(43)))
  await look(t, page, 'newcomer-15-denied')
  t.equal(await page.getByRole('button', { name: 'Allow', exact: true }).count(), 0)
}

async function readLog(t: Test, page: Page, issuer: string) {
  await page.goto(`${issuer}/admin/audit?user=grace`)
  await headed(page, 'Log')
  await look(t, page, 'newcomer-16-log')
  const log = await page.locator('ul.lines').innerText()
  for (const event of [
    'user-invited',
    'user-password-changed',
    'sign-in',
    'second-factor-added',
    'consent',
    'grant',
  ])
    t.match(log, event)
  for (const app of ['Immich', 'Gitea']) t.match(log, app)
}
