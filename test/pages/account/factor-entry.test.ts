import t from 'tap'
import { insert, put, remove } from '../../../src/domain/decision.ts'
import { passkeyKind } from '../../../src/users/rules/passkey.ts'
import { secondFactorKind } from '../../../src/users/rules/second-factor.ts'
import { integrate, pageOf, signedIn, title } from '../../helpers/authorization.ts'
import { alice, startServer } from '../../helpers/server.ts'
import { doneOf, enter, formWith, textOf } from './sections.ts'

const server = await startServer(t)
const portal = await integrate(server)
const { store, keys } = server.deps
const user = await store.find('userByLogin', 'alice')
const userId = user?.id ?? ''

t.test('a user without a second factor manages factors with a fresh sign-in alone', async (t) => {
  const agent = await signedIn(server, portal)
  for (const section of ['/passkeys', '/one-time-codes']) {
    t.notMatch(textOf(await enter(server, agent, section)), 'Confirm that it is you')
  }
  server.advance(601)
  const login = pageOf(await agent.open(`${server.issuer}/account/passkeys`))
  t.equal(title(login), 'Confirm that it is you')
})

t.test('a session of the password alone changes nothing once there is a second factor', async (t) => {
  const agent = await signedIn(server, portal)
  const before = await enter(server, agent, '/one-time-codes')
  const secondFactor = {
    userId,
    sealedSecret: keys.seal(Buffer.alloc(20), userId, secondFactorKind),
    confirmedAt: server.now(),
    recoveryHashes: [],
    createdAt: server.now(),
  }
  await store.write(put(secondFactorKind, secondFactor))
  for (const section of ['/passkeys', '/one-time-codes']) {
    const page = pageOf(await agent.open(`${server.issuer}/account${section}`))
    t.match(page.html, 'name="code"')
    t.notMatch(page.html, 'name="password"')
  }
  const sent = await agent.submit(before, { decision: 'remove' }, formWith(before, 'decision', 'begin'))
  t.match(pageOf(sent).html, 'name="code"')
  t.ok(await store.find(secondFactorKind, userId), 'and it is still there')
  await store.write(remove(secondFactorKind, userId))
})

t.test('a passkey is added only with a response to the challenge of this page', async (t) => {
  const agent = await signedIn(server, portal)
  const page = await enter(server, agent, '/passkeys')
  const form = page.forms.find(({ fields }) => fields.some(({ name }) => name === 'credential'))
  const credential = JSON.stringify({ id: 'a', rawId: 'a', type: 'public-key', response: {} })
  for (const [sent, problem] of [
    [{ credential }, 'That passkey could not be added'],
    [{ credential }, 'This page was already used'],
    [{ credential: 'null', interaction: 'gone' }, 'This page was already used'],
  ] as const) {
    const rejected = pageOf(await agent.submit(page, sent, form))
    t.equal(rejected.status, 400)
    t.match(rejected.html, problem)
  }
  t.strictSame(await store.listOf(passkeyKind, userId), [])
})

t.test('passkeys of another user are neither shown nor removed', async (t) => {
  const passkey = {
    id: 'c29tZWJvZHktZWxzZQ',
    userId: 'user_else',
    publicKey: 'AA',
    counter: 0,
    transports: [],
    name: 'Of another user',
    backedUp: false,
    createdAt: 1,
    usedAt: 1,
  }
  await store.write(insert(passkeyKind, passkey))
  const agent = await signedIn(server, portal, alice)
  const page = await enter(server, agent, '/passkeys')
  t.notMatch(page.html, 'Of another user')
  const form = page.forms[0]
  const sent = pageOf(await agent.submit(page, { remove: passkey.id }, form))
  t.match(doneOf(sent), 'That had already ended')
  t.ok(await store.find(passkeyKind, passkey.id))
})
