import t, { type Test } from 'tap'
import { mintGrantId } from '../../../src/domain/grant.ts'
import { openHandle } from '../../../src/domain/handle.ts'
import type { Client } from '../../../src/domain/model.ts'
import { ask, integrate, pageOf, place, sentAway, title } from '../../helpers/authorization.ts'
import { executable } from '../../helpers/command.ts'
import {
  authorizationUrl,
  callApi,
  exchange,
  obtainCode,
  obtainTokens,
  refresh,
  register,
  type TestClient,
  type Tokens,
} from '../../helpers/flow.ts'
import { nodeCount } from '../../helpers/nodes.ts'
import { bob, startServer } from '../../helpers/server.ts'
import { UserAgent } from '../../helpers/user-agent.ts'
import { assertRejected, introspect } from '../../helpers/wire.ts'
import { doneOf, enter, offered, press, textOf } from './sections.ts'

/** Clients that a feature has other metadata of. */
const renamed = new Map<string, Client>()
const server = await startServer(t, {
  observe: async ({ seams }) =>
    seams.clientResolvers.add((id) => {
      const client = renamed.get(id)
      return client && { find: async () => client }
    }),
})
const fields = { scope: 'openid courses:read courses:write' }
const newTokens = (client: TestClient, agent = new UserAgent(server.issuer)) =>
  obtainTokens(server, client, { agent, fields })

const grantOf = (token: string) =>
  openHandle(server.deps.keys.handles, token, 'code', 'access', 'refresh')?.grantId ?? ''

async function isDead(t: Test, client: TestClient, tokens: Tokens): Promise<void> {
  t.equal((await callApi(server, '/api/courses', tokens.access_token)).status, 401, 'the API rejects')
  t.equal((await callApi(server, '/api/oauth/userinfo', tokens.access_token)).status, 401)
  t.strictSame(await introspect(server, client, tokens.access_token), { active: false })
  t.strictSame(await introspect(server, client, tokens.refresh_token), { active: false })
  await assertRejected(t, await refresh(server, client, tokens.refresh_token), 'invalid_grant')
}

async function isLive(t: Test, client: TestClient, tokens: Tokens): Promise<void> {
  t.equal((await callApi(server, '/api/courses', tokens.access_token)).status, 200, 'the API still accepts')
  t.equal((await introspect(server, client, tokens.refresh_token))['active'], true)
}

t.test(
  '[oidc-core-16.18-user-revocation] consent shows that access lasts and where it ends, and there one click ends it',
  async (t) => {
    const client = await register(server, { client_name: 'Course Sync' })
    const agent = new UserAgent(server.issuer)
    const signIn = pageOf(await agent.open(authorizationUrl(server, client, fields)))
    const consent = pageOf(await agent.submit(signIn, { username: 'alice', password: 'alice-in-tests' }))
    t.match(textOf(consent), /The app stays connected until you disconnect it, 90 days at most\./)
    const link = /<a href="([^"]*)">Your account<\/a>/.exec(consent.html)?.[1]
    t.equal(link, '/account/apps')
    const tokens = await newTokens(client, agent)

    const page = pageOf(await agent.open(server.issuer + link))
    t.equal(title(page), 'Connected apps')
    t.match(textOf(page), /Course Sync .* nobody has checked who made it/)
    t.match(textOf(page), /127\.0\.0\.1:51004, a program on your computer/)
    t.match(textOf(page), /Know who you are on this service .*Courses: read and change/)
    const after = pageOf(await press(agent, page, 'client', client.id))
    t.equal(doneOf(after), 'Disconnected, everywhere and at once.')
    t.strictSame(offered(after, 'client'), [])
    await isDead(t, client, tokens)
  },
)

t.test('[oauth21-7.9-grant-overview] one grant of an app ends alone, and for good', async (t) => {
  const client = await register(server)
  const agent = new UserAgent(server.issuer)
  const [first, second] = [await newTokens(client, agent), await newTokens(client, agent)]
  const page = await enter(server, agent, '/apps')
  t.strictSame(
    new Set(offered(page, 'grant')),
    new Set([grantOf(first.refresh_token), grantOf(second.refresh_token)]),
    '[oauth21-7.9-grant-overview]',
  )
  await press(agent, page, 'grant', grantOf(first.refresh_token))
  await isDead(t, client, first)
  await isLive(t, client, second)
  const again = pageOf(await agent.submit(page, { grant: grantOf(first.refresh_token) }, page.forms[0]))
  t.match(doneOf(again), /^That had already ended/)
  await isLive(t, client, second)
})

t.test('an unredeemed code ends with its app, and so does a refresh in progress', async (t) => {
  const client = await register(server)
  const agent = new UserAgent(server.issuer)
  const tokens = await newTokens(client, agent)
  const code = await obtainCode(server, client, { agent, fields })
  const page = await enter(server, agent, '/apps')
  const [renewed] = await Promise.all([
    refresh(server, client, tokens.refresh_token),
    press(agent, page, 'client', client.id),
  ])
  await assertRejected(t, await exchange(server, client, code), 'invalid_grant')
  const latest = renewed.status === 200 ? ((await renewed.json()) as Tokens) : tokens
  await isDead(t, client, latest)
})

t.test('one button revokes every app, and no app of another user', async (t) => {
  const [one, two] = [await register(server), await register(server)]
  const agent = new UserAgent(server.issuer)
  const [first, second] = [await newTokens(one, agent), await newTokens(two, agent)]
  const others = await obtainTokens(server, two, { user: bob, fields })
  const page = await enter(server, agent, '/apps')
  t.ok(
    [one.id, two.id].every((id) => offered(page, 'client').includes(id)),
    'each installation by itself',
  )
  const after = pageOf(await press(agent, page, 'every', '1'))
  t.match(doneOf(after), /^Every app is disconnected/)
  t.match(textOf(after), /No app can use your account/)
  await isDead(t, one, first)
  await isDead(t, two, second)
  await isLive(t, two, others)
})

t.test('no user can revoke the grant of another, or learn whether it exists', async (t) => {
  const client = await register(server)
  const agent = new UserAgent(server.issuer)
  const mine = await newTokens(client, agent)
  const theirs = await obtainTokens(server, client, { user: bob, fields })
  const page = await enter(server, agent, '/apps')
  const [form] = page.forms
  for (const grant of [grantOf(theirs.refresh_token), 'AAAAAAAAAAAAAAAA', 'x', '💥']) {
    const after = pageOf(await agent.submit(page, { grant }, form))
    t.match(doneOf(after), /^That had already ended/, grant)
  }
  const after = pageOf(await agent.submit(page, { client: 'client_of_nobody' }, form))
  t.match(doneOf(after), /^That had already ended/)
  await agent.submit(page, { client: client.id }, form)
  await isDead(t, client, mine)
  await isLive(t, client, theirs)
})

t.test('a remembered consent is deleted with its access', async (t) => {
  const client = await integrate(server, { name: 'Portal' })
  const agent = new UserAgent(server.issuer)
  const tokens = await newTokens(client, agent)
  t.match(sentAway(await ask(server, client, { prompt: 'none', ...fields }, agent)), { code: /./ })
  const page = await enter(server, agent, '/apps')
  t.match(textOf(page), /It does not have to ask again for what you allowed before/)
  await press(agent, page, 'grant', grantOf(tokens.refresh_token))
  await isDead(t, client, tokens)
  const silent = sentAway(await ask(server, client, { prompt: 'none', ...fields }, agent))
  t.equal(silent['error'], 'consent_required')
})

t.test('a form without the token of this page, or of another site, changes nothing', async (t) => {
  const client = await register(server)
  const agent = new UserAgent(server.issuer)
  const tokens = await newTokens(client, agent)
  const page = await enter(server, agent, '/apps')
  const csrf = page.forms[0]?.fields.find(({ name }) => name === 'csrf')?.value ?? ''
  const send = (body: Record<string, string>, headers: Record<string, string> = {}) =>
    agent.send(page.url, { method: 'POST', body: new URLSearchParams(body), headers })
  t.equal((await send({ client: client.id })).status, 403)
  t.equal((await send({ client: client.id, csrf: 'x'.repeat(43) })).status, 403)
  t.equal((await send({ client: client.id, csrf }, { 'sec-fetch-site': 'cross-site' })).status, 403)
  const other = new UserAgent(server.issuer)
  const otherPage = await enter(server, other, '/apps')
  const otherCsrf = otherPage.forms[0]?.fields.find(({ name }) => name === 'csrf')?.value ?? ''
  t.not(otherCsrf, csrf, 'another browser of the same user has another token')
  t.equal((await send({ client: client.id, csrf: otherCsrf })).status, 403)
  t.match(await (await send({ client: client.id })).text(), /<h1>This page is out of date<\/h1>/)
  await isLive(t, client, tokens)
})

t.test('a signed-out user comes back after signing in, and nothing was done in between', async (t) => {
  const client = await register(server)
  const agent = new UserAgent(server.issuer)
  const tokens = await newTokens(client, agent)
  const page = await enter(server, agent, '/apps')
  agent.deleteCookie('session')
  const signIn = await press(agent, page, 'client', client.id)
  t.equal(place(signIn), '/login')
  const back = pageOf(await agent.submit(pageOf(signIn), { username: 'alice', password: 'alice-in-tests' }))
  t.equal(new URL(back.url).pathname, '/account/apps')
  t.match(doneOf(back), /^You had to sign in first/)
  await isLive(t, client, tokens)
  const stale = pageOf(await press(agent, page, 'client', client.id))
  t.equal(stale.status, 403, 'a page from before the sign-in is out of date')
  await isLive(t, client, tokens)
})

t.test('below the path of an issuer every link is below that path', async (t) => {
  const below = await startServer(t, { issuerPath: '/t' })
  const agent = new UserAgent(below.issuer)
  const client = await register(below)
  const tokens = await obtainTokens(below, client, { agent, fields })
  const page = await enter(below, agent, '/apps')
  t.equal(new URL(page.url).pathname, '/t/account/apps')
  const links = [...page.html.matchAll(/<a href="(\/[^"]*)"/g)].map(([, href = '']) => href)
  t.ok(links.length > 7)
  t.strictSame(
    links.filter((href) => !href.startsWith('/t/')),
    [],
  )
  const after = pageOf(await press(agent, page, 'client', client.id))
  t.equal(after.url, `${below.issuer}/account/apps?done=disconnected`)
  t.equal((await refresh(below, client, tokens.refresh_token)).status, 400)
})

t.test('no other site can make a page confirm an action, and the text is always our own', async (t) => {
  const agent = new UserAgent(server.issuer)
  const { url } = await enter(server, agent, '/apps')
  const said = async (word: string, site: string) =>
    doneOf(pageOf(await agent.open(`${url}?done=${word}`, { headers: { 'sec-fetch-site': site } })))
  t.match(await said('all-disconnected', 'same-origin'), /^Every app is disconnected/)
  t.equal(await said('all-disconnected', 'cross-site'), undefined)
  t.equal(await said('all-disconnected', 'same-site'), undefined)
  t.equal(await said('<b>Call+0900+1234</b>', 'same-origin'), undefined)
})

t.test('the audit log records who revoked what, once', async (t) => {
  const client = await register(server)
  const agent = new UserAgent(server.issuer)
  const tokens = await newTokens(client, agent)
  await press(agent, await enter(server, agent, '/apps'), 'client', client.id)
  const events = await server.deps.store.audit({
    since: 0,
    name: 'revocation',
    clientId: client.id,
    limit: 9,
  })
  t.strictSame(
    events.map(({ by, facts }) => ({ by, facts })),
    [{ by: 'user', facts: { rule: 'oidc-core-16.18-user-revocation' } }],
  )
  const grant = await server.deps.store.find('grant', grantOf(tokens.refresh_token))
  t.equal(grant?.revokedBy, 'oidc-core-16.18-user-revocation', 'as `lychgate explain` says')
})

t.test(
  'a user with many apps and grants gets several pages, and each looks up only its own apps',
  async (t) => {
    const user = await server.deps.store.find('userByLogin', bob.username)
    const client = await register(server, { client_name: 'Many times' })
    const tokens = await obtainTokens(server, client, { user: bob, fields })
    const [grant] = await server.deps.store.listOf('grant', user?.id ?? '')
    t.ok(grant)
    if (grant?.userId === undefined || user === undefined) return
    const names = Array.from({ length: 45 }, (_, index) => `App ${index + 1}`)
    const before = new Set((await server.deps.store.listOf('grant', user.id)).map(({ clientId }) => clientId))
    const all = before.size + 45
    const many = await Promise.all(names.map((name) => register(server, { client_name: name })))
    const owners = [...many, ...Array.from({ length: 59 }, () => client)]
    for (const [index, { id: clientId }] of owners.entries()) {
      const id = mintGrantId(server.deps.random(16), server.now() + index)
      await server.deps.store.write({
        op: 'insertGrant',
        // The pages begin with what was used last.
        grant: { ...grant, id, clientId, approvedAt: server.now() + index, rotatedAt: server.now() + index },
      })
    }

    const agent = new UserAgent(server.issuer)
    const first = await enter(server, agent, '/apps', bob)
    const lookedUp: string[] = []
    const { find } = server.deps.store
    server.deps.store.find = (kind, key) => {
      if (kind === 'client') lookedUp.push(key)
      return find(kind, key)
    }
    t.teardown(() => void Object.assign(server.deps.store, { find }))
    t.equal(offered(first, 'client').length, 20)
    t.match(textOf(first), /40 more are not shown\. Disconnecting the app ends them too\./)
    t.equal(offered(first, 'grant').length, 20, 'an app with one grant is disconnected as a whole')
    t.notMatch(first.html, 'page=0')
    const seen = new Set(offered(first, 'client'))
    for (const [page, count] of [
      [2, 20],
      [3, all - 40],
    ] as const) {
      lookedUp.length = 0
      const shown = pageOf(await agent.open(`${server.issuer}/account/apps?page=${page}`))
      for (const id of offered(shown, 'client')) seen.add(id)
      t.equal(offered(shown, 'client').length, count)
      t.ok(new Set(lookedUp).size <= count + 1)
    }
    t.equal(seen.size, all)
    const reads: (readonly [clients: number, limit: number, turned: boolean])[] = []
    let turned = false
    const { connections, grantsOf } = server.deps.store
    server.deps.store.connections = (userId, asked) => {
      setImmediate(() => {
        turned = true
      })
      return connections(userId, asked)
    }
    server.deps.store.grantsOf = (userId, clientIds, newest) => {
      reads.push([clientIds.length, newest.limit, turned])
      return grantsOf(userId, clientIds, newest)
    }
    await agent.open(`${server.issuer}/account/apps`)
    Object.assign(server.deps.store, { connections, grantsOf })
    if (!executable && nodeCount === 1)
      t.strictSame(
        reads,
        [[20, 20, true]],
        'one read of the grants of all that are shown, in a turn of its own',
      )
    for (const page of ['0', '-1', '1e9', '999999', 'x', '']) {
      const shown = pageOf(await agent.open(`${server.issuer}/account/apps?page=${page}`))
      t.equal(offered(shown, 'client').length, page === '999999' ? all - 40 : 20, page)
    }
    const last = pageOf(await agent.open(`${server.issuer}/account/apps?page=3`))
    await press(agent, last, 'every', '1')
    await isDead(t, client, tokens)
  },
)

t.test('a client of another feature is named on every page about it', async (t) => {
  const client = await register(server, { client_name: 'Stored name' })
  const stored = await server.deps.store.find('client', client.id)
  if (stored === undefined) throw new Error('no client')
  renamed.set(client.id, { ...stored, name: 'Name in its document' })
  const agent = new UserAgent(server.issuer)
  const signIn = pageOf(await agent.open(authorizationUrl(server, client, fields)))
  const consent = pageOf(await agent.submit(signIn, { username: 'alice', password: 'alice-in-tests' }))
  t.match(textOf(consent), 'Allow Name in its document to use your account?')
  await newTokens(client, agent)
  t.match(textOf(await enter(server, agent, '/apps')), 'Name in its document')
  t.match(textOf(await enter(server, agent, '/activity')), 'Name in its document connected to your account.')
  const page = await enter(server, agent, '/privacy')
  const body = new URLSearchParams({ csrf: page.forms[0]?.fields[0]?.value ?? '' })
  const copy = await agent.send(page.url, { method: 'POST', body })
  t.match(await copy.text(), 'Name in its document')
})
