import t from 'tap'
import { ConfigError } from '../../src/config/error.ts'
import { start } from '../../src/dev/start.ts'
import { loadConfig } from '../../src/settings/load.ts'
import { authorizationUrl, claimsOf, exchange, type Issuer, type Tokens } from '../helpers/flow.ts'
import { type Landing, type Page, UserAgent } from '../helpers/user-agent.ts'

const app = { client_name: 'App', client_id: 'app', redirect_uris: ['https://app.example.test/callback'] }
const client = { id: 'app', method: 'none', redirectUri: 'https://app.example.test/callback' }
const users = [{ username: 'carol', claims: { name: 'Carol Cooper' } }, { username: 'dan' }]
const [asking, sparing, hinted] = await Promise.all([
  start({ users, clients: [app] }),
  start({ users, clients: [app], config: { dev: { autoSignIn: 'carol', autoConsent: 'on' } } }),
  start({ users, clients: [app], config: { dev: { loginHintSignsIn: 'on' } } }),
])
t.teardown(() => Promise.all([asking.stop(), sparing.stop(), hinted.stop()]))

function ask(server: Issuer, fields: Record<string, string> = {}, agent = new UserAgent(server.issuer)) {
  return agent.open(authorizationUrl(server, client, fields))
}

const usersOf = ({ forms }: Page) => forms.find(({ buttons }) => buttons.some(({ name }) => name === 'as'))

/** The user in the ID Token for the code of this landing. */
async function subOf(server: Issuer, landing: Landing): Promise<unknown> {
  const code = landing.at === 'redirect' ? (landing.location.searchParams.get('code') ?? '') : ''
  const tokens = (await (await exchange(server, client, code)).json()) as Tokens
  return claimsOf(tokens.id_token)['sub']
}

const subs = Object.fromEntries(
  await Promise.all(users.map(async ({ username: user }) => [user, (await asking.token({ user })).sub])),
)

t.test('the sign-in page of a development server has a button for each of its users', async (t) => {
  const agent = new UserAgent(asking.issuer)
  const landing = await ask(asking, {}, agent)
  if (landing.at !== 'page') throw new Error('no page')
  const users = usersOf(landing.page)
  t.strictSame(users?.buttons, [
    { name: 'as', value: 'carol' },
    { name: 'as', value: 'dan' },
  ])
  t.match(landing.page.html, 'Carol Cooper')
  const consent = await agent.submit(landing.page, { as: 'dan' }, users)
  if (consent.at !== 'page') throw new Error('no page')
  t.equal(await subOf(asking, await agent.submit(consent.page, { decision: 'approve' })), subs['dan'])
})

t.test('a button that does not exist signs no user in', async (t) => {
  const agent = new UserAgent(asking.issuer)
  const landing = await ask(asking, {}, agent)
  if (landing.at !== 'page') throw new Error('no page')
  const users = usersOf(landing.page)
  const response = await agent.submit(landing.page, { as: 'nobody' }, users)
  t.match(response, { at: 'page', page: { status: 400 } })
})

t.test('with automatic sign-in and consent no page is shown', async (t) => {
  t.equal(await subOf(sparing, await ask(sparing)), subs['carol'])
  t.equal(await subOf(sparing, await ask(sparing, { prompt: 'consent' })), subs['carol'])
  const agent = new UserAgent(sparing.issuer)
  await ask(sparing, {}, agent)
  for (const fields of [{ prompt: 'login' }, { max_age: '0' }, { prompt: 'select_account' }, {}]) {
    t.equal(await subOf(sparing, await ask(sparing, fields, agent)), subs['carol'], JSON.stringify(fields))
  }
})

t.test('login_hint selects another user, and so does a requested sub', async (t) => {
  t.equal(await subOf(sparing, await ask(sparing, { login_hint: 'dan' })), subs['dan'])
  t.equal(await subOf(sparing, await ask(sparing, { login_hint: 'somebody' })), subs['carol'])
  const claims = JSON.stringify({ id_token: { sub: { value: subs['dan'] } } })
  t.equal(await subOf(sparing, await ask(sparing, { claims })), subs['dan'])
})

t.test('prompt=none is unaffected: a browser without a session gets login_required', async (t) => {
  const landing = await ask(sparing, { prompt: 'none' })
  if (landing.at !== 'redirect') throw new Error('no redirect')
  t.equal(landing.location.searchParams.get('error'), 'login_required')
})

t.test('with login_hint only, a request without a hint shows the form, and consent is asked', async (t) => {
  const agent = new UserAgent(hinted.issuer)
  const consent = await ask(hinted, { login_hint: 'dan' }, agent)
  if (consent.at !== 'page') throw new Error('no page')
  t.equal(await subOf(hinted, await agent.submit(consent.page, { decision: 'approve' })), subs['dan'])
  const login = await ask(hinted)
  t.match(login.at === 'page' && login.page.html, /name="password"/)
})

t.test(
  'automatic sign-in of an unknown user is rejected at the start, and any of it by a production server',
  async (t) => {
    await t.rejects(start({ config: { dev: { autoSignIn: 'nobody' } } }), {
      message: /^dev\.autoSignIn: there is no such user/,
    })
    const serve = (environment: Record<string, string>) =>
      loadConfig({ mode: 'serve', flags: { secret: 'a secret for tests that is long enough' }, environment })
    t.ok(serve({ LYCHGATE_DEV_AUTO_CONSENT: 'off' }))
    for (const [name, option, value] of [
      ['LYCHGATE_DEV_AUTO_SIGN_IN', 'autoSignIn', 'alice'],
      ['LYCHGATE_DEV_LOGIN_HINT_SIGNS_IN', 'loginHintSignsIn', 'on'],
      ['LYCHGATE_DEV_AUTO_CONSENT', 'autoConsent', 'on'],
    ] as const) {
      const rejected = (() => {
        try {
          return serve({ [name]: value })
        } catch (error) {
          return error
        }
      })()
      t.ok(rejected instanceof ConfigError)
      t.strictSame((rejected as ConfigError).faults, [`dev.${option}: belongs to lychgate dev; remove it`])
    }
  },
)
