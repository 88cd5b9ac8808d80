/** A grant is inserted in one way, whatever the door: limited, with what features store with it, and its request ends. */
import { globSync, readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { put, update } from '../../src/domain/decision.ts'
import type { Grant } from '../../src/domain/model.ts'
import { recordKind } from '../../src/domain/record.ts'
import { grantType } from '../../src/specs/rfc8628-device-grant/rules/codes.ts'
import { integrate } from '../helpers/authorization.ts'
import { addDeviceClient, decide, poll, startDevice } from '../helpers/device.ts'
import { exchange, obtainCode, obtainTokens, postAs, register, type TestClient } from '../helpers/flow.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const limit = 10
const more = 3

interface Note {
  readonly id: string
  readonly of: string
}
const note = recordKind<Note>('note', { id: ({ id }) => id, clientId: ({ of }) => of })

/** A server whose features store something with every grant, and something else when its request ends. */
async function start(dev: object = {}): Promise<TestServer> {
  let ended = 0
  const observe = async ({ seams }: FastifyInstance) => {
    seams.approvals.add(async ({ grant }) => ({
      extra: { noted: grant.id },
      writes: [put(note, { id: grant.id, of: grant.clientId })],
    }))
    seams.requestEnds.add(({ clientId }) => {
      ended += 1
      return [put(note, { id: `end ${ended}`, of: clientId })]
    })
  }
  const limits = { grantsPerUserAndClient: limit }
  const server = await startServer(t, { mode: 'dev', limits, dev, observe })
  const user = await server.deps.store.find('userByLogin', 'alice')
  if (user !== undefined) await server.deps.store.write(update('user', { ...user, seeded: true }))
  return server
}

const server = await start()
const alone = await start({ autoSignIn: 'alice', autoConsent: 'on' })
const agent = new UserAgent(server.issuer)

async function act(path: string, body: object): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(server.issuer + path, { method: 'POST', headers, body: JSON.stringify(body) })
  t.equal(response.status, 200, await response.text())
}

async function connect(at: TestServer, client: TestClient, decides: (userCode: string) => Promise<unknown>) {
  const device = await startDevice(at, client, { scope: 'openid' })
  await decides(device.user_code)
  t.equal((await poll(at, client, device)).status, 200)
}

const browse = async (at: TestServer, client: TestClient, browser = agent) => {
  const code = await obtainCode(at, client, { agent: browser })
  t.equal((await exchange(at, client, code)).status, 200)
}

/** Every way to a grant of a user. */
const doors: Readonly<
  Record<
    string,
    { readonly at?: TestServer; add(): Promise<TestClient>; insert(to: TestClient): Promise<unknown> }
  >
> = {
  'a request whose consent is skipped': {
    add: () => integrate(server, { consent: 'skip' }),
    insert: (client) => browse(server, client),
  },
  'a request after its sign-in': {
    add: () => integrate(server, { consent: 'skip' }),
    insert: (client) => browse(server, client, new UserAgent(server.issuer)),
  },
  'remembered consent': {
    add: () => integrate(server, { consent: 'remember' }),
    insert: (client) => browse(server, client),
  },
  'the consent page': { add: () => register(server), insert: (client) => browse(server, client) },
  'the page of a device': {
    add: () => addDeviceClient(server),
    insert: (client) => connect(server, client, (code) => decide(server, code, 'approve', agent)),
  },
  'a device approved by a test': {
    add: () => addDeviceClient(server),
    insert: (client) =>
      connect(server, client, (code) => act(`/_dev/devices/${code}/approve`, { user: 'alice' })),
  },
  'a device of a server that consents by itself': {
    at: alone,
    add: () => register(alone, { grant_types: [grantType], redirect_uris: [] }),
    insert: (client) => connect(alone, client, async () => undefined),
  },
  'a consent page that agrees by itself': {
    at: alone,
    add: () => register(alone),
    insert: (client) => browse(alone, client, new UserAgent(alone.issuer)),
  },
  'minted tokens': {
    add: () => register(server),
    insert: ({ id }) => act('/_dev/token', { user: 'alice', client_id: id }),
  },
  'minted tokens of a device': {
    add: () => addDeviceClient(server),
    insert: ({ id }) => act('/_dev/token', { user: 'alice', client_id: id }),
  },
}

async function grantsOf(
  { id: clientId }: TestClient,
  { deps: { store } }: TestServer,
): Promise<readonly Grant[]> {
  return (await store.grantsFrom({ clientId, after: undefined, limit: 100 })).grants
}

for (const [door, { at = server, add, insert }] of Object.entries(doors))
  t.test(`${door}: the grant is limited, stored with what features add, and ends its request`, async (t) => {
    const client = await add()
    const { store } = at.deps
    for (let n = 0; n < limit + more; n += 1) {
      at.advance(1)
      await insert(client)
    }
    const grants = await grantsOf(client, at)
    t.equal(grants.length, limit, 'the oldest are deleted')
    t.ok(grants.every(({ id, extra }) => extra?.['noted'] === id))
    const ids = (await store.someOfClient(note, client.id, 100)).map(({ id }) => id)
    const isEnd = (id: string) => id.startsWith('end ')
    t.equal(ids.filter((id) => !isEnd(id)).length, limit + more, 'stored with every grant')
    t.equal(ids.filter(isEnd).length, limit + more, 'every request ended once')
    t.ok(grants.every(({ id }) => ids.includes(id)))
  })

t.test('a client that acts for itself has no user whose grants are limited', async (t) => {
  const client = await integrate(server, {
    redirectUris: [],
    grantTypes: ['client_credentials'],
    scope: ['courses:read'],
  })
  for (let n = 0; n < limit + more; n += 1)
    t.equal(
      (await postAs(server, client, '/api/oauth/token', { grant_type: 'client_credentials' })).status,
      200,
    )
  const grants = await grantsOf(client, server)
  t.equal(grants.length, limit + more)
  t.ok(grants.every(({ userId, extra }) => userId === undefined && extra === undefined))
})

t.test('a request that the user denies ends without a grant', async (t) => {
  const client = await register(server)
  await obtainTokens(server, client, { agent })
  const before = await server.deps.store.someOfClient(note, client.id, 9)
  await t.rejects(obtainCode(server, client, { agent, scope: [], fields: { scope: 'courses:read' } }))
  const after = await server.deps.store.someOfClient(note, client.id, 9)
  t.equal(after.length - before.length, 1, 'the end of the request alone')
  t.equal((await grantsOf(client, server)).length, 1)
})

t.test('no other place inserts a grant, but for those that no user approves', async (t) => {
  const inserting = globSync('src/!(storage)/**/*.ts').filter((file) =>
    /op: 'insertGrant',/.test(readFileSync(file, 'utf8')),
  )
  t.strictSame(inserting.sort(), [
    'src/specs/rfc6749-authorization/approval.ts',
    'src/specs/rfc6749-client-credentials/rules.ts',
    'src/specs/rfc8693-token-exchange/rules.ts',
  ])
})
