/** Custom attributes of users: which clients see them. */
import t from 'tap'
import type { Config } from '../../src/config/schema.ts'
import { accept, update, type Write } from '../../src/domain/decision.ts'
import type { User, UserAttributes } from '../../src/domain/model.ts'
import { defaultScopeCatalogue } from '../../src/domain/scope-catalogue.ts'
import { ask, integrate, pageOf, sentAway, signedIn } from '../helpers/authorization.ts'
import {
  callApi,
  claimsOf,
  exchange,
  type Fields,
  obtainTokens,
  postAs,
  refresh,
  register,
  type TestClient,
  type Tokens,
} from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { json } from '../helpers/wire.ts'

const library = 'https://library.example/api'
const hidden = { visible: 'administrator', editable: 'administrator' } as const
const attributes: Config['accounts']['attributes'] = [
  { name: 'department', type: 'choice', values: ['physics', 'biology'], visible: 'user', editable: 'user' },
  { name: 'level', type: 'number', ...hidden },
  { name: 'tutor', type: 'boolean', ...hidden },
  { name: 'constructor', type: 'string', ...hidden },
]
const studies: Config['scopes'][number] = {
  name: 'studies',
  group: 'Your studies',
  access: 'identity',
  description: 'See your department and your level',
  claims: ['department', 'level', 'shoes', 'constructor'],
}
const server = await startServer(t, {
  accounts: { attributes },
  admin: { api: 'on' },
  // `as`: it is not changed.
  scopes: [...(defaultScopeCatalogue as Config['scopes']), studies],
  resources: [
    {
      identifier: library,
      name: 'Library',
      scopes: ['courses:read'],
      tokenFormat: 'jwt',
      accessTokenSeconds: 600,
    },
  ],
})
const { store } = server.deps
const sub = (await store.find('userByLogin', 'alice'))?.id ?? ''

/** Stores values as they are: also those that no declaration allows. */
const set = (values: UserAttributes) =>
  store.transact('user', sub, (user) => {
    const changed = { ...(user as User), attributes: values }
    const write: Write = update('user', changed)
    return accept(changed, write)
  })

async function tokensFor(client: TestClient, fields: Fields): Promise<Tokens> {
  const agent = await signedIn(server, client)
  const { code = '' } = sentAway(await ask(server, client, fields, agent))
  const response = await exchange(server, client, code)
  if (response.status !== 200) throw new Error(await response.text())
  return (await response.json()) as Tokens
}

const userInfo = async ({ access_token: token }: Tokens) =>
  json(await callApi(server, '/api/oauth/userinfo', token))
const claiming = (...rules: readonly object[]) => ({ description: { token_claims: rules } })
const all = { department: 'physics', level: 0, tutor: false, constructor: 'x', shoes: 'secret-shoes' }

t.test('no client sees an attribute that no scope and no claim of the client names', async (t) => {
  await set(all)
  const scope = ['openid', 'profile', 'email']
  const portal = await integrate(server, { consent: 'skip', scope })
  const wanted = Object.fromEntries(Object.keys(all).map((name) => [name, { essential: true }]))
  for (const claims of [{}, { userinfo: wanted, id_token: wanted }]) {
    const fields = { scope: scope.join(' '), claims: JSON.stringify(claims) }
    const tokens = await tokensFor(portal, fields)
    const response = await userInfo(tokens)
    t.ok('name' in response)
    for (const found of [response, claimsOf(tokens.id_token)])
      for (const name of Object.keys(all)) t.notOk(Object.hasOwn(found, name), name)
  }
})

t.test('a scope whose claims name attributes opens them, after consent', async (t) => {
  await set(all)
  const client = await register(server)
  const agent = await signedIn(server, client)
  const page = pageOf(await ask(server, client, { scope: 'openid studies' }, agent))
  t.match(page.html, studies.description, 'the user is asked')
  const approve = { decision: 'approve', scope: ['openid', 'studies'] }
  const { code = '' } = sentAway(await agent.submit(page, approve))
  const tokens = (await (await exchange(server, client, code)).json()) as Tokens
  t.strictSame(await userInfo(tokens), { sub, department: 'physics', level: 0, constructor: 'x' })
  await set({ department: 'biology' })
  t.strictSame(await userInfo(tokens), { sub, department: 'biology' }, 'the next call has every change')
  await set({})
  t.strictSame(await userInfo(tokens), { sub }, 'an attribute without a value is left out')
})

t.test('the claims parameter asks for one attribute that a scope opens', async (t) => {
  await set(all)
  const claims = JSON.stringify({ id_token: { department: null, tutor: null }, userinfo: { level: null } })
  const portal = await integrate(server, { consent: 'skip' })
  const tokens = await tokensFor(portal, { scope: 'openid', claims })
  t.equal(claimsOf(tokens.id_token)['department'], 'physics')
  t.notOk('tutor' in claimsOf(tokens.id_token))
  t.strictSame(await userInfo(tokens), { sub, level: 0 })
})

t.test('the claims of a client copy attributes with their types', async (t) => {
  await set(all)
  const everywhere = ['userinfo', 'id_token', 'access_token']
  const rules = [
    { claim: 'https://school.example/department', in: everywhere, copy: 'department' },
    { claim: 'is_tutor', in: everywhere, copy: 'tutor' },
    { claim: 'shoe_size', in: everywhere, copy: 'shoes' },
    { claim: 'nothing', in: everywhere, copy: 'toString' },
  ]
  const client = await integrate(server, { consent: 'skip', ...claiming(...rules) })
  const agent = await signedIn(server, client)
  const fields = { scope: 'openid courses:read', resource: [library, server.issuer] }
  const { code = '' } = sentAway(await ask(server, client, fields, agent))
  const first = (await (await exchange(server, client, code, { resource: library })).json()) as Tokens
  const expected = { 'https://school.example/department': 'physics', is_tutor: false }
  t.match(claimsOf(first.id_token), expected)
  t.notOk('shoe_size' in claimsOf(first.id_token), 'nothing that is not declared')
  t.notOk('nothing' in claimsOf(first.id_token))
  const next = (await (
    await refresh(server, client, first.refresh_token, { resource: library })
  ).json()) as Tokens
  t.match(claimsOf(next.access_token), expected)
  t.notOk('level' in claimsOf(next.access_token))
})

t.test('a value that the declaration does not allow is ignored, and not lost', async (t) => {
  const values = { department: 'alchemy', level: 'high', tutor: 'true', shoes: 41 }
  await set(values)
  const client = await integrate(server, { consent: 'skip', ...claiming({ claim: 'tutor', copy: 'tutor' }) })
  t.strictSame(await userInfo(await tokensFor(client, { scope: 'openid studies' })), { sub })
  t.strictSame((await store.find('user', sub))?.attributes, values)
})

t.test('a client that registers itself can take no attribute', async (t) => {
  await set(all)
  const rule = { claim: 'department', copy: 'department' }
  const client = await register(server, { token_claims: [rule], department: 'physics' })
  const tokens = await obtainTokens(server, client, { fields: { scope: 'openid' } })
  t.strictSame(await userInfo(tokens), { sub })
})

t.test('the admin API reads and changes attributes, checked against their declarations', async (t) => {
  await set({ department: 'physics' })
  const machine = await integrate(server, {
    grantTypes: ['client_credentials'],
    scope: ['admin:users:read', 'admin:users:write'],
    redirectUris: [],
  })
  const asked = {
    grant_type: 'client_credentials',
    scope: 'admin:users:read admin:users:write',
  }
  const { access_token: token } = await json(await postAs(server, machine, '/api/oauth/token', asked))
  const call = async (method: string, path: string, body?: string, headers = {}) => {
    const more = body === undefined ? {} : { body }
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const response = await fetch(`${server.issuer}/api/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...type, ...headers },
      ...more,
    })
    return { status: response.status, etag: response.headers.get('etag') ?? '', body: await json(response) }
  }
  const found = await call('GET', `/users/${sub}`)
  t.strictSame(found.body['attributes'], { department: 'physics' })
  const change = (attributes: string, etag = found.etag) =>
    call('PATCH', `/users/${sub}`, `{"attributes":${attributes}}`, { 'if-match': etag })
  for (const [wrong, why] of [
    ['{"shoes":41}', 'attributes: shoes is not declared in accounts.attributes'],
    ['{"__proto__":"x"}', 'the body is not valid JSON'],
    ['{"level":"3"}', 'attributes: level must be a number'],
    ['{"tutor":1}', 'attributes: tutor must be true or false'],
    ['{"department":"magic"}', /^attributes: department must be one of the values/],
    ['{"level":null}', 'the body is missing or malformed'],
    ['{"level":[1]}', 'the body is missing or malformed'],
  ] as const) {
    const { status, body } = await change(wrong)
    t.equal(status, 400, wrong)
    t.match(body['error_description'], why)
  }
  const changed = await change('{"level":3,"department":""}')
  t.equal(changed.status, 200)
  t.strictSame(changed.body['attributes'], { level: 3 })
  t.not(changed.etag, found.etag)
  const body = JSON.stringify({ email: 'new@example.org', attributes: { tutor: true } })
  const made = await call('POST', '/users', body, { 'idempotency-key': 'one' })
  t.strictSame([made.status, made.body['attributes']], [201, { tutor: true }])
})
