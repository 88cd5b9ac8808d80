import t from 'tap'
import { consentKind } from '../../../src/domain/connections.ts'
import { systemRandom } from '../../../src/system/system.ts'
import { addAdministrator } from '../../../src/users/administrators.ts'
import { passkeyKind } from '../../../src/users/rules/passkey.ts'
import { pageOf, place } from '../../helpers/authorization.ts'
import { obtainTokens, refresh, register } from '../../helpers/flow.ts'
import { bob, startServer, type TestServer } from '../../helpers/server.ts'
import { type Page, UserAgent } from '../../helpers/user-agent.ts'
import { assertRejected, introspect, isAlive, type Json } from '../../helpers/wire.ts'
import { enter, textOf } from './sections.ts'

const fields = { scope: 'openid courses:read' }
const problemOf = ({ html }: Page) => /role="alert">([^<]*)</.exec(html)?.[1]

async function download(server: TestServer, agent: UserAgent): Promise<Response> {
  const page = await enter(server, agent, '/privacy')
  const body = new URLSearchParams({ csrf: page.forms[0]?.fields[0]?.value ?? '' })
  return agent.send(page.url, { method: 'POST', body })
}

t.test('the copy contains everything that is stored, as one JSON document', async (t) => {
  const server = await startServer(t)
  const agent = new UserAgent(server.issuer, { 'user-agent': 'Mozilla/5.0 Gecko/20100101 Firefox/140.0' })
  const client = await register(server, { client_name: 'Course Sync' })
  const tokens = await obtainTokens(server, client, { agent, fields })
  await obtainTokens(server, client, { user: bob, fields })
  const response = await download(server, agent)
  t.equal(response.status, 200)
  t.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
  t.equal(response.headers.get('content-disposition'), 'attachment; filename="account.json"')
  t.equal(response.headers.get('cache-control'), 'no-store')
  const text = await response.text()
  const copy = JSON.parse(text) as Record<string, Json & Json[]>
  const user = await server.deps.store.find('userByLogin', 'alice')
  t.strictSame(Object.keys(copy), [
    'made_at',
    'account',
    'sessions',
    'passkeys',
    'linked_accounts',
    'groups',
    'apps',
    'activity',
  ])
  t.equal(copy['account']?.['sub'], user?.id)
  t.strictSame(copy['account']?.['claims'], user?.claims)
  t.equal(copy['sessions']?.[0]?.['browser'], 'Firefox')
  t.strictSame(
    copy['apps']?.map(({ client_id, name, connected }) => ({ client_id, name, connected })),
    [{ client_id: client.id, name: 'Course Sync', connected: true }],
  )
  const [grant] = (copy['apps']?.[0]?.['grants'] ?? []) as Json[]
  t.strictSame(grant?.['scope'], ['openid', 'courses:read'])
  t.match(grant?.['granted_at'], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
  t.strictSame(
    copy['activity']?.map(({ event }) => event),
    ['sign-in', 'consent', 'grant', 'user-exported'],
  )
  t.notMatch(text, /argon2|lyc_|Hash/, 'no secret, nor what is made of one')
  for (const secret of [user?.passwordHash ?? '', tokens.access_token, ...agent.cookies.values()])
    t.notOk(text.includes(secret))
  for (const { id, secret } of await server.deps.store.listOf('grant', user?.id ?? ''))
    t.notOk(text.includes(secret), id)
  t.notMatch(text, /bob/)
})

t.test('the copy needs a recent sign-in and a form of this site', async (t) => {
  const server = await startServer(t)
  const agent = new UserAgent(server.issuer)
  const page = await enter(server, agent, '/privacy')
  t.equal((await agent.send(page.url, { method: 'POST', body: new URLSearchParams() })).status, 403)
  server.advance(601)
  const signIn = await agent.submit(page, {})
  t.equal(place(signIn), '/login')
  t.equal((await server.deps.store.audit({ since: 0, name: 'user-exported', limit: 9 })).length, 0)
})

t.test('[rfc9700-4.14.2-revoke-on-event] deleting the user ends everything at once', async (t) => {
  const server = await startServer(t)
  const { store } = server.deps
  const client = await register(server)
  const [agent, elsewhere] = [new UserAgent(server.issuer), new UserAgent(server.issuer)]
  const mine = await obtainTokens(server, client, { agent, fields })
  const theirs = await obtainTokens(server, client, { user: bob, fields })
  await enter(server, elsewhere, '/apps')
  const id = (await store.find('userByLogin', 'alice'))?.id ?? ''
  const page = await enter(server, agent, '/delete')
  for (const typed of ['', 'bob', 'alice@example.test']) {
    const kept = pageOf(await agent.submit(page, { username: typed }))
    t.equal(kept.status, 400)
    t.equal(problemOf(kept), 'That is not your user name. Nothing was deleted.')
  }
  t.ok(await isAlive(server, mine.access_token))
  const gone = pageOf(await agent.submit(page, { username: ' Alice ' }))
  t.equal(gone.status, 200)
  t.match(textOf(gone), /Your account is deleted You are signed out/)
  t.notOk(agent.cookie('session'))

  t.notOk(await isAlive(server, mine.access_token))
  t.strictSame(await introspect(server, client, mine.refresh_token), { active: false })
  await assertRejected(t, await refresh(server, client, mine.refresh_token), 'invalid_grant')
  for (const browser of [agent, elsewhere])
    t.equal(place(await browser.open(`${server.issuer}/account`)), '/login')
  const signIn = await enter(server, new UserAgent(server.issuer), '/apps')
  t.equal(new URL(signIn.url).pathname, '/login', 'no user has that name any more')
  t.equal(await store.find('user', id), undefined)
  for (const kind of ['session', consentKind, passkeyKind] as const)
    t.strictSame(await store.listOf(kind, id), [])
  t.ok(await isAlive(server, theirs.access_token), 'others stay')
  const events = await store.audit({ since: 0, name: 'user-removed', limit: 9 })
  t.strictSame(
    events.map(({ by, userId, facts }) => [by, userId, facts]),
    [['user', id, {}]],
  )
})

t.test('the last administrator stays', async (t) => {
  const server = await startServer(t)
  const { store } = server.deps
  const administer = async (name: string) => {
    const id = (await store.find('userByLogin', name))?.id ?? ''
    await addAdministrator(store, 'admins', id, systemRandom(16), { by: 'operator', at: server.now() })
  }
  await administer('alice')
  const agent = new UserAgent(server.issuer)
  const page = await enter(server, agent, '/delete')
  const kept = pageOf(await agent.submit(page, { username: 'alice' }))
  t.equal(kept.status, 400)
  t.match(problemOf(kept), 'You are the last administrator.')
  t.ok(await store.find('userByLogin', 'alice'))
  await administer('bob')
  t.equal(pageOf(await agent.submit(page, { username: 'alice' })).status, 200)
  t.equal(await store.find('userByLogin', 'alice'), undefined)
})

t.test('deletion needs a recent sign-in and a form of this site', async (t) => {
  const server = await startServer(t)
  const agent = new UserAgent(server.issuer)
  const page = await enter(server, agent, '/delete')
  const body = new URLSearchParams({ username: 'alice', csrf: 'x'.repeat(43) })
  t.equal((await agent.send(page.url, { method: 'POST', body })).status, 403)
  server.advance(601)
  t.equal(place(await agent.open(page.url)), '/login')
  t.equal(place(await agent.submit(page, { username: 'alice' })), '/login')
  t.ok(await server.deps.store.find('userByLogin', 'alice'))
})
