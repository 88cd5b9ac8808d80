/** The admin API about what is secret: passwords that an operator sets, and tokens that it explains. */
import { hash } from 'node:crypto'
import t from 'tap'
import { ask, integrate, pageOf, signedIn } from '../helpers/authorization.ts'
import { obtainTokens, postAs, refresh } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { json } from '../helpers/wire.ts'

const server = await startServer(t, { admin: { api: 'on' } })
const { store } = server.deps
const scope = ['admin:users:read', 'admin:users:write', 'admin:audit:read']
const machine = await integrate(server, { grantTypes: ['client_credentials'], redirectUris: [], scope })
const fields = { grant_type: 'client_credentials' }
const token = String((await json(await postAs(server, machine, '/api/oauth/token', fields)))['access_token'])

async function post(path: string, body: object, key?: string) {
  const response = await fetch(`${server.issuer}/api/admin/v1${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      ...(key !== undefined && { 'idempotency-key': key }),
    },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  return {
    status: response.status,
    text,
    isReplayed: response.headers.get('idempotent-replayed') === 'true',
    body: JSON.parse(text) as Record<string, unknown>,
  }
}

const [first, second] = ['correct horse battery', 'staple gun and paper']
const client = await integrate(server, { consent: 'skip' })

/** Whether the pages take a password. */
async function signsIn(password: string): Promise<boolean> {
  const agent = new UserAgent(server.issuer)
  const page = pageOf(await ask(server, client, {}, agent))
  return (await agent.submit(page, { username: 'carol', password })).at === 'redirect'
}

/** Whether the database has a text, or a hash of it or of a body with it. */
async function isStored(text: string): Promise<boolean> {
  const contents = JSON.stringify(await store.contents())
  return [text, hash('sha256', text, 'base64url'), hash('sha256', text, 'hex')].some((one) =>
    contents.includes(one),
  )
}

t.test('a user is added with a password that is neither shown nor stored', async (t) => {
  for (const password of ['short', 'password1', 'x'.repeat(257), '']) {
    const rejected = await post('/users', { username: 'carol', password })
    t.match(rejected, { status: 400, body: { error: 'invalid_request' } }, password.slice(0, 20))
    t.notMatch(rejected.body['error_description'], password === '' ? 'undefined' : password)
  }
  t.equal(await store.find('userByLogin', 'carol'), undefined)
  const added = await post('/users', { username: 'carol', password: first }, 'carol')
  t.match(added, { status: 201, body: { username: 'carol', has_password: true } })
  t.equal(added.body['invitation'], undefined, 'nothing is left to be set by a link')
  t.notMatch(added.text, first)
  t.equal(await isStored(first), false)
  t.equal(await signsIn(first), true)
  t.equal(await signsIn(second), false)
  const sub = String(added.body['sub'])
  const [event] = await store.audit({ since: 0, userId: sub, limit: 1, name: 'user-added' })
  t.match(event?.facts, { actor: machine.id, request: /^[\w-]{36}$/ })
  // What is remembered of the request has no hash of the password that is quick to compute.
  const again = await post('/users', { username: 'carol', password: second }, 'carol')
  t.match(again, { status: 201, isReplayed: true, body: { sub } })
  t.equal(await signsIn(second), false, 'it is performed once')
  t.match(await post('/users', { username: 'dave', password: first }, 'carol'), { status: 422 })
})

t.test('a new password ends the sessions, and with `disconnect` the grants', async (t) => {
  const sub = (await store.find('userByLogin', 'carol'))?.id ?? ''
  const carol = { username: 'carol', password: first }
  const agent = await signedIn(server, client, carol)
  const tokens = await obtainTokens(server, client, { agent, user: carol, fields: { scope: 'openid' } })
  t.equal((await store.listOf('session', sub)).length > 0, true)
  t.match(await post(`/users/${sub}/password`, { password: 'short' }), { status: 400 })
  t.match(await post('/users/none/password', { password: second }), { status: 404 })
  const changed = await post(`/users/${sub}/password`, { password: second })
  t.match(changed, { status: 200, body: { sub, has_password: true } })
  t.notMatch(changed.text, second)
  t.equal(await isStored(second), false)
  t.strictSame(await store.listOf('session', sub), [])
  t.strictSame([await signsIn(first), await signsIn(second)], [false, true])
  const kept = await refresh(server, client, tokens.refresh_token)
  t.equal(kept.status, 200, 'grants to clients stay valid')
  const { refresh_token: next } = (await kept.json()) as typeof tokens
  t.equal((await post(`/users/${sub}/password`, { password: first, disconnect: true })).status, 200)
  t.equal((await refresh(server, client, next)).status, 400)
  const events = await store.audit({ since: 0, userId: sub, limit: 9, name: 'user-password-changed' })
  t.match(
    events.map(({ facts }) => [facts['actor'], facts['disconnected']]),
    [
      [machine.id, undefined],
      [machine.id, 'everything'],
    ],
  )
})

t.test('a token is explained, and neither shown nor stored', async (t) => {
  const tokens = await obtainTokens(server, client, { fields: { scope: 'openid' } })
  const explain = async (text: string) => {
    const response = await post('/explain', { token: text })
    t.equal(response.status, 200, response.text)
    t.notMatch(response.text, text)
    t.equal(await isStored(text), false)
    return response.body
  }
  t.match(await explain(tokens.access_token), {
    kind: 'access token',
    active: true,
    stored: { user: 'alice', scope: ['openid'] },
  })
  t.match(await explain(` ${tokens.refresh_token}\n`), { kind: 'refresh token', active: true })
  await postAs(server, client, '/api/oauth/revoke', { token: tokens.refresh_token })
  t.match(await explain(tokens.access_token), {
    active: false,
    why: /revoked/,
    rule: /./,
    clause: { name: /./ },
  })
  t.match(await explain('lyc_access_nothing'), { kind: 'unknown token', active: false })
  for (const body of [{}, { token: '' }, { token: 'x'.repeat(8001) }, { token: 1 }])
    t.match(await post('/explain', body), { status: 400 })
})

t.test('the secret of any client is found among many', async (t) => {
  for (let each = 0; each < 250; each += 1) await integrate(server)
  const { id, secret = '' } = await integrate(server)
  t.match((await post('/explain', { token: secret })).body, {
    kind: 'client secret',
    active: true,
    stored: { client: id },
  })
  t.match((await post('/explain', { token: `lyc_secret_${'x'.repeat(43)}` })).body, { active: false })
})
