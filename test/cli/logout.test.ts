/** However a session ends, its clients hear of it, also when a command ends it while the server runs. */

import t from 'tap'
import { finishedDeliveryKind } from '../../src/domain/logout-delivery.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import { ask, integrate, pageOf, sentAway, signedIn } from '../helpers/authorization.ts'
import { newFolder } from '../helpers/command.ts'
import { runAll } from '../helpers/commands.ts'
import { claimsOf, exchange, type TestClient, type Tokens } from '../helpers/flow.ts'
import { startLogoutReceiver, verifyLogoutToken } from '../helpers/logout-receiver.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { enter, offered, press } from '../pages/account/sections.ts'

const data = newFolder(t)
const server = await startServer(t, { mode: 'dev', store: `sqlite:${data}/lychgate.db` })
const { store } = server.deps
const receiver = await startLogoutReceiver(t)
const client = await integrate(server, {
  consent: 'skip',
  description: { backchannel_logout_uri: receiver.uri },
})

// It is sent no logout tokens.
const quiet = await integrate(server, { consent: 'skip' })

/** Runs command lines on the store of the server. */
function operate(...lines: string[][]) {
  return runAll(lines.map((line) => [...line.slice(0, 2), '--data', data, ...line.slice(2)]))
}

async function sidIn(agent: UserAgent, of: TestClient = client): Promise<string> {
  const { code = '' } = sentAway(await ask(server, of, {}, agent))
  const { id_token: token } = (await (await exchange(server, of, code)).json()) as Tokens
  return String(claimsOf(token)['sid'])
}

async function signInAs(user: typeof alice) {
  const agent = await signedIn(server, client, user)
  return { agent, sid: await sidIn(agent) }
}

async function nextSid(): Promise<unknown> {
  const { claims } = await verifyLogoutToken(server, client, await receiver.next())
  return claims['sid']
}

/** How the session of the first browser ends; the second one is another browser of the user. */
const ways: Readonly<Record<string, (here: UserAgent, there: UserAgent) => Promise<unknown>>> = {
  'the user ends one other session on the account page': async (_here, there) => {
    const page = await enter(server, there, '/sessions')
    const [session = ''] = offered(page, 'session')
    await press(there, page, 'session', session)
  },
  'the user ends all other sessions': async (_here, there) => {
    const page = await enter(server, there, '/sessions')
    await press(there, page, 'others', '1')
  },
  'an operator ends the session': (here) =>
    operate(['session', 'end', '--yes', '--', hashSecret(here.cookie('session') ?? '')]),
  'an operator ends all sessions of the user': () => operate(['session', 'end', '--user', 'alice', '--yes']),
  'an operator revokes all access': () => operate(['user', 'revoke', 'alice', '--yes']),
  'an operator locks the user': () =>
    operate(['user', 'lock', 'alice', '--yes'], ['user', 'unlock', 'alice']),
  'a link sets another password': async () => {
    const [link] = await operate(['user', 'reset-link', 'alice', '--json'])
    const other = new UserAgent(server.issuer)
    const { pathname, search } = new URL(JSON.parse(link?.stdout ?? '').link)
    const page = pageOf(await other.open(server.issuer + pathname + search))
    const typed = 'another-one-in-tests'
    await other.submit(page, { password: typed, repeated: typed })
  },
}

t.test('every way to end a session reaches its clients', async (t) => {
  let { password } = alice
  for (const [way, end] of Object.entries(ways)) {
    const { agent: here, sid } = await signInAs({ ...alice, password })
    const there = await signedIn(server, quiet, { ...alice, password })
    await end(here, there)
    t.equal(await nextSid(), sid, way)
    if (way.startsWith('a link')) password = 'another-one-in-tests'
    const user = await store.find('userByLogin', alice.username)
    await operate(['session', 'end', '--user', 'alice', '--yes'])
    t.equal((await store.listOf('session', user?.id ?? '')).length, 0)
  }
})

t.test('[oidc-bcl-2.3-remembers-clients] a removed user is signed out of their clients, too', async (t) => {
  const { sid } = await signInAs(bob)
  const user = await store.find('userByLogin', bob.username)
  await operate(['user', 'remove', 'bob', '--yes'])
  const { claims } = await verifyLogoutToken(server, client, await receiver.next())
  t.match(claims, { sub: user?.id, sid })
})

t.test('deliveries are listed', async (t) => {
  const rejecting = await startLogoutReceiver(t)
  rejecting.conduct = 400
  const other = await integrate(server, {
    consent: 'skip',
    description: { backchannel_logout_uri: rejecting.uri },
  })
  const user = { ...alice, password: 'another-one-in-tests' }
  const agent = await signedIn(server, client, user)
  const sids = [await sidIn(agent), await sidIn(agent, other)]
  await operate(['session', 'end', '--user', 'alice', '--yes'])
  await Promise.all([receiver.next(), rejecting.next()])
  while ((await store.find(finishedDeliveryKind, sids[0] ?? '')) === undefined)
    await new Promise((resolve) => setTimeout(resolve, 20))
  const pending = async () => {
    const [list] = await operate(['logout', 'deliveries', '--client', other.id, '--json'])
    return JSON.parse(list?.stdout ?? '')
  }
  while ((await pending())[0]?.tries !== 1) await new Promise((resolve) => setTimeout(resolve, 20))
  t.match(await pending(), [
    { state: 'pending', client_id: other.id, sid: sids[1], tries: 1, error: 'the response has status 400' },
  ])
  const [all, failed, one, wrong] = await operate(
    ['logout', 'deliveries', '--json'],
    ['logout', 'deliveries', '--failed', '--json'],
    ['logout', 'deliveries', '--limit', '2'],
    ['logout', 'deliveries', '--limit', '0'],
  )
  const delivered = JSON.parse(all?.stdout ?? '').find(({ sid }: { sid: string }) => sid === sids[0])
  t.match(delivered, {
    state: 'delivered',
    client_id: client.id,
    sub: /^\w+_/,
    tries: 1,
    finished_at: Number,
  })
  t.notOk('error' in delivered)
  t.strictSame(JSON.parse(failed?.stdout ?? ''), [])
  t.match(one?.stdout.split('\n'), [/^delivered {2}.* 1 try /, /^pending {4}.* 1 try .*due .* status 400$/])
  t.equal(wrong?.code, 64)
})
