/** What the boxes of a form mean, and that nothing else may be repeated. every-form.test.ts submits all forms. */
import t from 'tap'
import { ask, bodyOf, integrate, pageOf, signedIn } from '../helpers/authorization.ts'
import { tickBoxes } from '../helpers/boxes.ts'
import { addDeviceClient, openConfirmation, poll, startDevice } from '../helpers/device.ts'
import { type Fields, post, register } from '../helpers/flow.ts'
import { recordOf } from '../helpers/rejection.ts'
import { startServer } from '../helpers/server.ts'
import type { Page } from '../helpers/user-agent.ts'
import { json } from '../helpers/wire.ts'

const server = await startServer(t)
const client = await register(server)
const scope = 'openid profile courses:read courses:write students:read'

t.test('a device with several scopes is approved with all of them, some of them, and none', async (t) => {
  const tv = await addDeviceClient(server)
  const expected = ['access_denied', 'profile', scope.replace('openid ', '')]
  let device = await startDevice(server, tv, { scope })
  const agent = await signedIn(server, client)
  const devices: (typeof device)[] = []
  const open = async () => {
    device = await startDevice(server, tv, { scope })
    const page = await openConfirmation(server, device.user_code, agent)
    devices.push(device)
    return page
  }
  const landings = await tickBoxes(t, agent, open, { decision: 'approve' })
  t.equal(landings.length, 3)
  const outcomes: string[] = []
  for (const each of devices.slice(1)) {
    const { error, scope: granted } = await json(await poll(server, tv, each))
    outcomes.push(String(error ?? granted).replace('openid ', ''))
  }
  t.strictSame(outcomes.slice(1), expected.slice(1))
  const denied = await openConfirmation(server, (await startDevice(server, tv, { scope })).user_code, agent)
  t.match(pageOf(await agent.submit(denied, { decision: 'deny' })).html, 'denied')
})

t.test('the consent page grants what is ticked', async (t) => {
  const agent = await signedIn(server, client)
  const open = async () => pageOf(await ask(server, client, { scope }, agent))
  const landings = await tickBoxes(t, agent, open, { decision: 'approve' })
  t.strictSame(
    landings.map((landing) => landing.at),
    ['redirect', 'redirect', 'redirect'],
  )
})

t.test(
  '[rfc6749-3.1-no-duplicate-request-params] a page rejects any other field that is repeated',
  async (t) => {
    const agent = await signedIn(server, client)
    const portal = await integrate(server, { consent: 'always' })
    const twice = async (page: Page, name: string) => {
      const body = bodyOf(page, { decision: 'approve' })
      body.append(name, 'again')
      body.append(name, 'and again')
      return agent.send(new URL(page.forms[0]?.action ?? '', page.url).href, { method: 'POST', body })
    }
    const consent = pageOf(await ask(server, portal, { scope: 'openid profile' }, agent))
    const login = pageOf(await ask(server, portal))
    const account = pageOf(await agent.open(`${server.issuer}/account/profile`))
    for (const [page, names] of [
      [consent, ['interaction', 'csrf', 'decision', 'shown', 'resource']],
      [login, ['interaction', 'csrf', 'username', 'password', 'scope']],
      [account, ['csrf', 'name', 'scope']],
      [pageOf(await agent.open(`${server.issuer}/device`)), ['csrf', 'user_code', 'scope']],
    ] as const) {
      for (const name of names) {
        const response = await twice(page, name)
        t.equal(response.status, 400, `${page.url} ${name}`)
        t.match(await recordOf(server, response), { why: `${name} must not be repeated` })
      }
    }
    t.equal((await agent.send(consent.url)).status, 200, 'the request still waits')
  },
)

t.test('[rfc6749-3.2-no-duplicates] protocol endpoints reject each parameter that is repeated', async (t) => {
  const fields: Readonly<Record<string, Fields>> = {
    '/api/oauth/par': {
      client_id: client.id,
      response_type: 'code',
      redirect_uri: client.redirectUri,
      scope: 'openid',
      state: 's',
      code_challenge: 'c',
      code_challenge_method: 'S256',
      unknown: 'u',
    },
    '/api/oauth/revoke': {
      client_id: client.id,
      token: 'x',
      token_type_hint: 'access_token',
      unknown: 'u',
    },
    '/api/oauth/userinfo': { access_token: 'x', scope: 's', unknown: 'u' },
    '/api/oauth/introspect': { client_id: client.id, token: 'x', scope: 's' },
    '/api/oauth/token': {
      grant_type: 'refresh_token',
      client_id: client.id,
      refresh_token: 'x',
      scope: 's',
    },
    '/oauth/device_authorization': { client_id: client.id, scope: 'openid' },
  }
  for (const [path, parameters] of Object.entries(fields)) {
    for (const name of Object.keys(parameters)) {
      const response = await post(server, path, { ...parameters, [name]: ['a', 'b'] })
      t.equal(response.status, 400, `${path} ${name}`)
      t.match(await json(response), {
        error: 'invalid_request',
        error_description: `${name} must not be repeated`,
      })
    }
  }
})
