import t from 'tap'
import type { AuditContext } from '../../src/domain/audit.ts'
import { insert, removeUser, update } from '../../src/domain/decision.ts'
import type { OneTimeLink, User } from '../../src/domain/model.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import { groupsOf } from '../../src/users/groups.ts'
import { findLink, makeLink } from '../../src/users/one-time-links.ts'
import { verifyPassword } from '../../src/users/passwords.ts'
import { insertLink } from '../../src/users/rules/one-time-link.ts'
import { canonicalUsername, createUser } from '../../src/users/rules/user.ts'
import { authorizationUrl, register } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { type Landing, type Page, UserAgent } from '../helpers/user-agent.ts'

const server = await startServer(t)
const { store, config, random } = server.deps
const password = 'a password nobody else has'

function context(): AuditContext {
  return { by: 'operator', at: server.now(), from: 'root@host' }
}

async function give(whom: Pick<OneTimeLink, 'purpose' | 'userId' | 'email'>): Promise<string> {
  return (await makeLink({ config, store, random }, whom, context())).url
}

async function invite(name: string): Promise<User> {
  const email = `${name}@example.test`
  const user = createUser({ username: name, email }, random(16), server.now())
  await store.write(insert('user', user))
  return user
}

async function userOf(name: string): Promise<User> {
  const user = await store.find('userByLogin', canonicalUsername(name) ?? '')
  if (user === undefined) throw new Error(`${name} is not there`)
  return user
}

function pageOf(landing: Landing): Page {
  if (landing.at !== 'page') throw new Error('sent away')
  return landing.page
}

async function opened(url: string, agent = new UserAgent(server.issuer)): Promise<Page> {
  return pageOf(await agent.open(url))
}

t.test('an invited user sets a name and a password, and is signed in', async (t) => {
  const { id } = await invite('carol')
  const url = await give({ purpose: 'invitation', userId: id })
  const agent = new UserAgent(server.issuer)
  const page = await opened(url, agent)
  t.match(page.html, /carol/)
  t.equal(page.headers.get('referrer-policy'), 'no-referrer')
  t.equal(page.headers.get('cache-control'), 'no-store')
  const done = pageOf(
    await agent.submit(page, { given_name: 'Carol', family_name: 'C.', password, repeated: password }),
  )
  t.equal(done.status, 200)
  t.match(done.url, /\/account$/)
  const carol = await userOf('carol')
  t.ok(await verifyPassword(password, carol.passwordHash ?? ''))
  t.match(carol.claims, { given_name: 'Carol', family_name: 'C.', name: 'Carol C.' })
  t.equal(carol.claims['email_verified'], false, 'the link was handed over, so it proves no address')
  const events = await store.audit({ since: 0, userId: id, limit: 10 })
  t.strictSame(
    events.map(({ name, by }) => [name, by]),
    [
      ['link-made', 'operator'],
      ['user-password-changed', 'user'],
      ['sign-in', 'user'],
    ],
  )
})

t.test('a link that was sent by email verifies the address it was sent to', async (t) => {
  const { id, email = '' } = await invite('dora')
  const agent = new UserAgent(server.issuer)
  const page = await opened(await give({ purpose: 'invitation', userId: id, email }), agent)
  await agent.submit(page, { password, repeated: password })
  t.equal((await userOf('dora')).claims['email_verified'], true)
  const events = await store.audit({ since: 0, userId: id, limit: 10 })
  t.ok(events.some(({ name }) => name === 'user-email-verified'))
})

t.test('a link that is used, expired, unknown or of a locked user gets the same response', async (t) => {
  const used = await give({ purpose: 'invitation', userId: (await invite('erin')).id })
  const agent = new UserAgent(server.issuer)
  await agent.submit(await opened(used, agent), { password, repeated: password })
  const locked = await invite('frank')
  const ofLocked = await give({ purpose: 'invitation', userId: locked.id })
  await store.write(update('user', { ...locked, lockedAt: server.now() }))
  const removed = { purpose: 'invitation', createdAt: 1, expiresAt: server.now() + 100 } as const
  const ofRemoved = `${server.issuer}/link?code=lyc_link_${'r'.repeat(43)}`
  await store.write(
    insertLink({ ...removed, id: hashSecret(`lyc_link_${'r'.repeat(43)}`), userId: 'user_removed' }),
  )
  const old = { purpose: 'invitation', createdAt: 1, expiresAt: server.now() } as const
  const expired = `${server.issuer}/link?code=lyc_link_${'e'.repeat(43)}`
  await store.write(insertLink({ ...old, id: hashSecret(`lyc_link_${'e'.repeat(43)}`), userId: locked.id }))
  const unknown = `${server.issuer}/link?code=lyc_link_${'u'.repeat(43)}`
  const pages = await Promise.all(
    [used, expired, unknown, ofLocked, ofRemoved, `${server.issuer}/link`].map((url) => opened(url)),
  )
  const shown = pages.map(({ status, html }) => ({
    status,
    html: html.replaceAll(/<code>[\w-]{36}<\/code>|name="csrf" value="[^"]*"/g, ''),
  }))
  t.equal(shown[0]?.status, 404)
  t.match(shown[0]?.html, 'This link no longer works')
  for (const other of shown) t.strictSame(other, shown[0])
})

t.test('opening a link does not use it up', async (t) => {
  const url = await give({ purpose: 'invitation', userId: (await invite('gina')).id })
  for (const method of ['GET', 'HEAD', 'GET']) {
    const response = await fetch(url, { method })
    t.equal(response.status, 200)
  }
  const agent = new UserAgent(server.issuer)
  const done = pageOf(await agent.submit(await opened(url, agent), { password, repeated: password }))
  t.match(done.url, /\/account$/)
})

t.test('of several simultaneous forms one succeeds, and its password is the one that is set', async (t) => {
  const { id } = await userOf('bob')
  const url = await give({ purpose: 'password-reset', userId: id })
  const agents = Array.from({ length: 4 }, () => new UserAgent(server.issuer))
  const pages = await Promise.all(agents.map((agent) => opened(url, agent)))
  const landings = await Promise.all(
    agents.map((agent, index) => {
      const chosen = `${password} ${index}`
      return agent.submit(pages[index] as Page, { password: chosen, repeated: chosen })
    }),
  )
  const statuses = landings.map((landing) => pageOf(landing).status)
  t.strictSame([...statuses].sort(), [200, 404, 404, 404])
  const winner = `${password} ${statuses.indexOf(200)}`
  t.ok(await verifyPassword(winner, (await userOf('bob')).passwordHash ?? ''))
})

t.test('a form from another browser or site changes nothing', async (t) => {
  const { id, passwordHash } = await userOf('alice')
  const url = await give({ purpose: 'password-reset', userId: id })
  const page = await opened(url)
  const strange = await new UserAgent(server.issuer).submit(page, { password, repeated: password })
  t.equal(pageOf(strange).status, 403)
  const agent = new UserAgent(server.issuer)
  const own = await opened(url, agent)
  const fields = Object.fromEntries((own.forms[0]?.fields ?? []).map(({ name, value }) => [name, value]))
  const body = new URLSearchParams({ ...fields, password, repeated: password })
  const headers = { 'sec-fetch-site': 'cross-site' }
  const crossSite = await agent.send(`${server.issuer}/link`, { method: 'POST', body, headers })
  t.equal(crossSite.status, 403)
  t.equal((await userOf('alice')).passwordHash, passwordHash)
  t.equal((await opened(url)).status, 200, 'and the link still works')
})

t.test('a rejected password is explained, and the link still works', async (t) => {
  const url = await give({ purpose: 'invitation', userId: (await invite('henk')).id })
  const agent = new UserAgent(server.issuer)
  const page = await opened(url, agent)
  for (const [typed, repeated, problem] of [
    ['short', 'short', 'A password has 8 to 256 characters.'],
    ['password1', 'password1', 'too common'],
    [password, `${password}.`, 'are not the same'],
  ] as const) {
    const response = pageOf(await agent.submit(page, { given_name: 'Henk', password: typed, repeated }))
    t.equal(response.status, 400)
    t.match(response.html, problem)
    t.match(response.html, 'value="Henk"')
    t.notMatch(response.html, typed === password ? password : `value="${typed}"`)
  }
  t.equal((await userOf('henk')).passwordHash, undefined)
})

t.test('a new password ends sessions, and grants if the user asks for it', async (t) => {
  const url = async () => give({ purpose: 'password-reset', userId: (await userOf('alice')).id })
  const { id } = await userOf('alice')
  const client = await register(server)
  const agent = new UserAgent(server.issuer)
  const login = pageOf(await agent.open(authorizationUrl(server, client)))
  const consent = pageOf(await agent.submit(login, alice))
  await agent.submit(consent, { decision: 'approve' })
  const living = async () =>
    (await store.listOf('grant', id)).filter(({ revokedAt }) => revokedAt === undefined)
  t.equal((await living()).length, 1)
  const [before] = await store.listOf('session', id)
  const first = await opened(await url(), agent)
  await agent.submit(first, { password, repeated: password })
  const after = await store.listOf('session', id)
  t.equal(after.length, 1, 'the one that began with it')
  t.not(after[0]?.id, before?.id)
  t.equal((await living()).length, 1, 'an app goes on')
  const again = await opened(await url(), agent)
  await agent.submit(again, { password, repeated: password, disconnect: ['yes'] })
  t.equal((await living()).length, 0)
})

t.test('the secret of a link is in no log line and in no Referer', async (t) => {
  const url = await give({ purpose: 'invitation', userId: (await invite('ida')).id })
  const code = new URL(url).searchParams.get('code') ?? ''
  const agent = new UserAgent(server.issuer)
  const page = await opened(url, agent)
  await agent.submit(page, { password: 'x', repeated: 'x' })
  await opened(`${server.issuer}/link/${code}`, agent)
  await opened(url.replace('/link?', '/nowhere?'), agent)
  t.ok(server.log.length > 0)
  t.notOk(server.log.join('\n').includes(code.slice(10, 30)))
  const stored = await findLink(store, code)
  t.notOk(JSON.stringify(stored).includes(code.slice(10, 30)), 'and the store has its hash')
})

t.test('the first user is created by a link, while there are no users', async (t) => {
  const url = await give({ purpose: 'first-user' })
  t.equal((await opened(url)).status, 404, 'there is somebody')
  const empty = await startServer(t)
  for (const { id } of await empty.deps.store.list('user')) await empty.deps.store.write(removeUser(id, 0))
  const deps = { config: empty.deps.config, store: empty.deps.store, random }
  const link = await makeLink(deps, { purpose: 'first-user' }, context())
  const agent = new UserAgent(empty.issuer)
  const page = pageOf(await agent.open(link.url))
  const typed = { given_name: 'Zoe', password, repeated: password }
  const spaced = pageOf(await agent.submit(page, { ...typed, username: 'z o e', email: '' }))
  t.match(spaced.html, 'A user name has 1 to 128 characters')
  const strange = pageOf(await agent.submit(page, { ...typed, username: 'zoe', email: 'nothing' }))
  t.match(strange.html, 'That is not an email address')
  const done = pageOf(await agent.submit(page, { ...typed, username: 'Zoe', email: 'zoe@example.org' }))
  t.match(done.url, /\/admin$/)
  const [zoe, ...others] = await empty.deps.store.list('user')
  t.strictSame(others, [])
  t.match(zoe, {
    username: 'zoe',
    email: 'zoe@example.org',
    claims: { given_name: 'Zoe', name: 'Zoe', email_verified: false },
  })
  t.match(await groupsOf(empty.deps.store, zoe?.id ?? ''), [{ name: 'admins' }], 'and is an administrator')
  t.equal(pageOf(await agent.open(link.url)).status, 404)
})
