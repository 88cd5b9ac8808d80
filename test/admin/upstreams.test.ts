/** Upstreams that an operator adds while the server runs: what they do at the next request, and what ends with them. */
import t from 'tap'
import { accept, put } from '../../src/domain/decision.ts'
import { createGroup } from '../../src/domain/group.ts'
import { addToGroup, changeGroups } from '../../src/users/groups.ts'
import { upstreamKind } from '../../src/users/rules/upstream.ts'
import { integrate } from '../helpers/authorization.ts'
import {
  authorizationUrl,
  exchange,
  postAs,
  refresh,
  register,
  signInAndApprove,
  type Tokens,
} from '../helpers/flow.ts'
import { alice, bob, type ServerOptions, startServer, type TestServer } from '../helpers/server.ts'
import {
  goAway,
  locationOf,
  pageOf,
  startStandInUpstream,
  textOf,
  UserAgent,
  upstreamOf,
} from '../helpers/stand-in-upstream.ts'
import { json } from '../helpers/wire.ts'

type Test = Parameters<typeof startServer>[0]

/** A server whose admin API a client without a user calls. */
async function started(t: Test, options: ServerOptions = {}) {
  const server = await startServer(t, { mode: 'dev', admin: { api: 'on', secondFactor: 'off' }, ...options })
  const operator = await integrate(server, {
    grantTypes: ['client_credentials'],
    redirectUris: [],
    scope: ['admin:upstreams:read', 'admin:upstreams:write'],
  })
  const tokens = await json(
    await postAs(server, operator, '/api/oauth/token', { grant_type: 'client_credentials' }),
  )
  const call = async (method: string, path: string, body?: object, ifMatch = '*') => {
    const response = await fetch(`${server.issuer}/api/admin/v1/upstreams${path}`, {
      method,
      headers: {
        authorization: `Bearer ${tokens['access_token']}`,
        ...(body && { 'content-type': 'application/json' }),
        ...(ifMatch !== '' && { 'if-match': ifMatch }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const { status, headers } = response
    return { status, headers, text, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> }
  }
  return { server, client: await register(server), call }
}

const secret = 'a secret of this test, and of no other'
const work = (issuer: string) => ({
  upstream_id: 'work',
  name: 'Work',
  issuer,
  client_id: 'lychgate',
  client_secret: secret,
  first_sign_in: 'any',
})

async function tokensOf(
  server: TestServer,
  client: Awaited<ReturnType<typeof register>>,
  here: UserAgent,
  url: string,
) {
  const location = await signInAndApprove(here, await here.open(url))
  return (await (await exchange(server, client, location.searchParams.get('code') ?? '')).json()) as Tokens
}

t.test('an upstream that is added works at the next request, and nothing shows its secret', async (t) => {
  const { server, client, call } = await started(t)
  const upstream = await startStandInUpstream(t)
  const loginPage = async () =>
    pageOf(await new UserAgent(server.issuer).open(authorizationUrl(server, client))).html
  t.notMatch(await loginPage(), '/login/upstream')

  const added = await call('POST', '', work(upstream.issuer))
  t.equal(added.status, 201)
  t.equal(added.headers.get('location'), '/api/admin/v1/upstreams/work')
  t.strictSame(
    { ...added.body, created_at: 0, updated_at: 0 },
    {
      upstream_id: 'work',
      name: 'Work',
      issuer: upstream.issuer,
      client_id: 'lychgate',
      client_authentication: 'client_secret_basic',
      signing_algorithm: 'RS256',
      scope: 'openid profile email',
      first_sign_in: 'any',
      domains: [],
      multi_factor: 'ignore',
      groups_claim: 'groups',
      groups: {},
      max_age_seconds: 86_400,
      enabled: true,
      redirect_uri: `${server.issuer}/login/upstream/work/callback`,
      source: 'store',
      created_at: 0,
      updated_at: 0,
    },
  )
  t.match(await loginPage(), '/login/upstream/work')
  const here = new UserAgent(server.issuer)
  const back = upstream.respondTo(await goAway(here, authorizationUrl(server, client)))
  t.match(textOf(pageOf(await here.open(back))), 'value="approve"')
  const pair = Buffer.from(`lychgate:${encodeURIComponent(secret).replaceAll('%20', '+')}`).toString('base64')
  t.equal(upstream.sent[0]?.authorization, `Basic ${pair}`)

  const shown = [added, await call('GET', ''), await call('GET', '/work')].map(({ text }) => text)
  const { store } = server.deps
  const stored = await store.listKind(upstreamKind, { madeUntil: Number.MAX_SAFE_INTEGER, limit: 9 })
  const events = await store.audit({ since: 0, name: 'upstream-added', limit: 9 })
  for (const text of [...shown, JSON.stringify(stored), JSON.stringify(events), server.log.join('')])
    t.notMatch(text, 'of no other')
  t.match(events, [{ by: 'operator', facts: { upstream: 'work', issuer: upstream.issuer } }])

  t.strictSame((await call('POST', '/work/secret/compare', { client_secret: secret })).body, {
    upstream_id: 'work',
    matches: true,
  })
  await call('PATCH', '/work', { name: 'The office', client_secret: 'another secret' })
  t.match(await loginPage(), 'The office')
  t.match((await call('POST', '/work/secret/compare', { client_secret: secret })).body, { matches: false })
  const [changed] = await store.audit({ since: 0, name: 'upstream-changed', limit: 9 })
  t.match(changed?.facts, { upstream: 'work', changed: 'name client_secret', enabled: 'true' })
})

t.test(
  'what came through an upstream ends once it is disabled, and does not come back with another',
  async (t) => {
    const { server, client, call } = await started(t)
    const [first, second] = [await startStandInUpstream(t), await startStandInUpstream(t)]
    await call('POST', '', work(first.issuer))
    const signIn = async () => {
      const here = new UserAgent(server.issuer)
      const back = first.respondTo(await goAway(here, authorizationUrl(server, client)))
      return { here, tokens: await tokensOf(server, client, here, back) }
    }
    const account = async (here: UserAgent) => pageOf(await here.open(`${server.issuer}/account`)).html
    const beside = await tokensOf(
      server,
      client,
      new UserAgent(server.issuer),
      authorizationUrl(server, client),
    )
    const [one, other] = [await signIn(), await signIn()]
    t.match(await account(one.here), 'Sign out')
    t.equal((await refresh(server, client, one.tokens.refresh_token)).status, 200)

    const disabled = await call('PATCH', '/work', { enabled: false })
    t.match(disabled.body, { enabled: false })
    const page = await account(one.here)
    t.match(page, 'name="password"', 'its session opens no account page')
    t.notMatch(page, '/login/upstream')
    t.equal((await fetch(`${server.issuer}/login/upstream/work/callback?state=x`)).status, 404)
    const rejected = await refresh(server, client, other.tokens.refresh_token)
    t.equal(rejected.status, 400)
    t.match(await rejected.json(), { error: 'invalid_grant' })
    const stays = (await (await refresh(server, client, beside.refresh_token)).json()) as Tokens
    t.type(stays.refresh_token, 'string', 'other grants stay')

    await call('PATCH', '/work', { enabled: true })
    t.match(await account(one.here), 'name="password"', 'what has ended stays ended')
    const later = await signIn()
    t.equal((await call('DELETE', '/work')).status, 204)
    t.equal((await call('GET', '/work')).status, 404)
    t.equal((await call('POST', '', work(second.issuer))).status, 201)
    t.match(await account(later.here), 'name="password"', 'another upstream has its id')
    t.equal((await refresh(server, client, later.tokens.refresh_token)).status, 400)
    t.equal((await server.deps.store.audit({ since: 0, name: 'upstream-deleted', limit: 9 })).length, 1)
  },
)

t.test('the configuration wins, and says so', async (t) => {
  const upstream = await startStandInUpstream(t)
  const another = await startStandInUpstream(t)
  const { server, call } = await started(t, { upstreams: [upstreamOf(t, upstream.issuer)] })
  const conflict = [409, 'conflict', 'the configuration has an upstream with this id or issuer']
  const errorOf = ({ status, body }: Awaited<ReturnType<typeof call>>) => [
    status,
    body['error'],
    body['error_description'],
  ]
  t.strictSame(errorOf(await call('POST', '', work(another.issuer))), conflict)
  t.strictSame(errorOf(await call('POST', '', { ...work(upstream.issuer), upstream_id: 'other' })), conflict)
  for (const [method, body] of [['PATCH', { enabled: false }], ['DELETE']] as const)
    t.match(errorOf(await call(method, '/work', body)), [
      409,
      'conflict',
      'the configuration has this upstream; it is changed there',
    ])
  t.match((await call('GET', '')).body, { items: [{ upstream_id: 'work', source: 'configuration' }] })
  // One that was stored before the configuration had it has no effect.
  const { store } = server.deps
  const [configured] = server.deps.config.upstreams
  const hidden = { ...configured, name: 'Hidden', createdAt: 1, updatedAt: 1 } as never
  await store.write({ op: 'put', kind: 'record', record: upstreamKind.rowOf(hidden) })
  const { items } = (await call('GET', '')).body as { items: readonly { readonly name: string }[] }
  t.strictSame(
    items.map(({ name }) => name),
    ['Work'],
  )
})

t.test(
  'an administrator tries an upstream before it goes live: it shows what would follow, and changes nothing',
  async (t) => {
    const { server, call } = await started(t)
    const { store, random } = server.deps
    const operator = { by: 'operator', at: server.now() } as const
    const admins = await changeGroups(store, (groups) =>
      createGroup(groups, { name: 'admins' }, random(16), operator),
    )
    await addToGroup(store, admins, (await store.find('userByLogin', 'alice'))?.id ?? '', operator)
    const upstream = await startStandInUpstream(t)
    const rules = { first_sign_in: 'domain', domains: ['example.com'], groups: { teachers: 'Staff' } }
    await call('POST', '', { ...work(upstream.issuer), ...rules, enabled: false })
    const url = `${server.issuer}/login/upstream/work/try`
    const signedIn = async (user: typeof alice) => {
      const here = new UserAgent(server.issuer)
      await here.submit(pageOf(await here.open(`${server.issuer}/account`)), user)
      return here
    }
    const here = await signedIn(alice)
    const triedBy = async (claims: object) => {
      upstream.says = { claims: { ...claims } }
      return pageOf(await here.open(upstream.respondTo(locationOf(await here.open(url)))))
    }
    const before = [await store.counts(1000), (await store.audit({ since: 0, limit: 1000 })).length]
    const page = textOf(await triedBy({ groups: ['teachers', 'cooks'] }))
    for (const said of [
      '248289761001',
      'ann@example.com',
      'teachers',
      'would add the user ann@example.com',
      'Staff',
    ])
      t.match(page, said)
    t.match(
      textOf(await triedBy({ email: 'alice@example.test' })),
      'It would sign no one in: no account here',
    )
    const denied = await triedBy({ aud: 'another' })
    t.equal(denied.status, 400)
    t.match(textOf(denied), 'aud of the ID Token is not this client alone; oidc-core-3.1.3.7-rp-aud')
    t.strictSame([await store.counts(1000), (await store.audit({ since: 0, limit: 1000 })).length], before)

    upstream.says = {}
    // Its response is of this session alone, and no one else begins it.
    const back = upstream.respondTo(locationOf(await here.open(url)))
    t.equal(pageOf(await (await signedIn(alice)).open(back)).status, 400)
    t.equal(pageOf(await (await signedIn(bob)).open(url)).status, 403)
    t.equal(pageOf(await new UserAgent(server.issuer).open(url)).status, 403)
    t.equal(pageOf(await here.open(back)).status, 200)
  },
)

t.test('what cannot work is rejected, and changes nothing', async (t) => {
  const { server, call } = await started(t)
  const { store, random } = server.deps
  await changeGroups(store, (groups) =>
    createGroup(groups, { name: 'admins' }, random(16), { by: 'operator', at: server.now() }),
  )
  const body = work('https://login.example.com')
  const cases = [
    [{ ...body, issuer: 'http://login.example.com' }, 400, 'issuer must be an https URL without query'],
    [{ ...body, issuer: 'https://login.example.com?a=b' }, 400, 'issuer must be an https URL without query'],
    [{ ...body, client_secret: undefined }, 400, 'the client secret is missing'],
    [{ ...body, first_sign_in: 'domain' }, 400, 'there are no domains'],
    [{ ...body, upstream_id: 'Work' }, 400, 'upstream_id is missing or malformed'],
    [{ ...body, signing_algorithm: 'none' }, 400, 'signing_algorithm is missing or malformed'],
    [{ ...body, surprise: 1 }, 400, 'surprise is not known'],
    [{ ...body, groups: { root: 'Admins' } }, 403, 'decide who is an administrator'],
  ] as const
  for (const [sent, status, said] of cases) {
    const response = await call('POST', '', sent)
    t.equal(response.status, status, said)
    t.match(response.body['error_description'], said)
  }
  t.strictSame((await call('GET', '')).body, { items: [] })
  t.equal((await call('POST', '', body)).status, 201)
  for (const taken of [body, { ...body, upstream_id: 'home' }, { ...body, issuer: 'https://id.example.com' }])
    t.match(await call('POST', '', taken), {
      status: 409,
      body: { error_description: 'another upstream has this id or issuer' },
    })
  t.equal((await call('PATCH', '/work', { name: 'Home' }, '')).status, 428)
  t.equal((await call('PATCH', '/work', { name: 'Home' }, '"other"')).status, 412)
  t.equal((await call('PATCH', '/work', { issuer: 'https://id.example.com' })).status, 400)
  t.equal((await call('PATCH', '/work', { groups: { root: 'ADMINS' } })).status, 403)
  // An upstream that a user lets make administrators is that user's to change.
  await store.transact(upstreamKind, 'work', (found) =>
    accept(undefined, ...(found ? [put(upstreamKind, { ...found, groups: { root: 'admins' } })] : [])),
  )
  t.match(await call('PATCH', '/work', { groups_claim: 'roles' }), {
    status: 403,
    body: {
      error_description: 'a client without a user must not let an upstream decide who is an administrator',
    },
  })
  await store.transact(upstreamKind, 'work', (found) =>
    accept(undefined, ...(found ? [put(upstreamKind, { ...found, groups: {} })] : [])),
  )
  t.equal((await call('PATCH', '/work', { client_authentication: 'private_key_jwt' })).status, 200)
  t.equal(
    (await call('PATCH', '/work', { client_authentication: 'client_secret_post' })).status,
    400,
    'forgotten',
  )
  t.match((await call('GET', '/work')).body, { name: 'Work', groups: {} })
})
