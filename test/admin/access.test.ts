/** What operators see of who may sign in how: the factors of users, through each door. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { insert, put, update } from '../../src/domain/decision.ts'
import { createGroup } from '../../src/domain/group.ts'
import { systemRandom } from '../../src/system/system.ts'
import { addToGroup, changeGroups } from '../../src/users/groups.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { createUser } from '../../src/users/rules/user.ts'
import { integrate, pageOf } from '../helpers/authorization.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { postAs } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { json } from '../helpers/wire.ts'

const folder = newFolder(t)
const signInPolicy = {
  require: 'second factor from 2027-01-31',
  groups: [{ group: 'staff', require: 'passkey' }],
}
const server = await startServer(t, {
  mode: 'dev',
  store: `sqlite:${folder}/lychgate.db`,
  admin: { api: 'on', secondFactor: 'off' },
  signInPolicy,
})
const { store, clock } = server.deps
const config = join(folder, 'lychgate.yaml')
const settings = {
  data: folder,
  issuer: server.issuer,
  secret: 'a secret for tests that is long enough',
  signInPolicy,
}
writeFileSync(config, JSON.stringify(settings))
const operator = { by: 'operator', at: clock() } as const
const group = (name: string) =>
  changeGroups(store, (groups) => createGroup(groups, { name }, systemRandom(16), operator))
const [admins, staff] = [await group('admins'), await group('staff')]

/** Adds a user with a password, and what else they have. */
async function add(username: string, has: { codes?: true; passkey?: true; locked?: true }) {
  const user = createUser({ username, claims: {}, passwordHash: 'none' }, systemRandom(16), clock())
  const { id: userId } = user
  await store.write(insert('user', has.locked ? { ...user, lockedAt: clock() } : user))
  const codes = { sealedSecret: 'sealed', recoveryHashes: [], createdAt: clock(), confirmedAt: clock() }
  if (has.codes) await store.write(put(secondFactorKind, { userId, ...codes }))
  const device = { publicKey: '', counter: 0, transports: [], backedUp: false, usedAt: 0, createdAt: 0 }
  if (has.passkey) await store.write(put(passkeyKind, { id: `key-${username}`, userId, name: '', ...device }))
  return userId
}

for (const member of [await add('carl', { codes: true }), await add('dora', { passkey: true })])
  await addToGroup(store, staff, member, operator)
await add('erin', { locked: true })
const aliceId = (await store.find('userByLogin', 'alice'))?.id ?? ''
await addToGroup(store, admins, aliceId, operator)

const machine = await integrate(server, {
  grantTypes: ['client_credentials'],
  redirectUris: [],
  scope: ['admin:users:read', 'admin:audit:read', 'admin:clients:read'],
})
const form = { grant_type: 'client_credentials' }
const token = String((await json(await postAs(server, machine, '/api/oauth/token', form)))['access_token'])
const call = async (path: string) => {
  const headers = { authorization: `Bearer ${token}` }
  return json(await fetch(`${server.issuer}/api/admin/v1${path}`, { headers }))
}
const agent = new UserAgent(server.issuer)
await agent.submit(pageOf(await agent.open(`${server.issuer}/admin`)), alice)

const from = Date.UTC(2027, 0, 31) / 1000
const short = { lacks: 'second factor', required_from: from }
const everyone = [
  { username: 'alice', password: true, codes: false, passkeys: 0, ...short },
  { username: 'bob', password: true, codes: false, passkeys: 0, ...short },
  { username: 'carl', password: true, codes: true, passkeys: 0, lacks: 'passkey' },
  { username: 'dora', password: true, codes: false, passkeys: 1 },
]
const lists = {
  '': ['alice', 'bob', 'carl', 'dora'],
  'second-factor': ['alice', 'bob'],
  passkey: ['alice', 'bob', 'carl'],
  policy: ['alice', 'bob', 'carl'],
}

/** The users that the page lists, each with its line. */
const linesOf = (html: string) =>
  [...html.matchAll(/<li><a href="[^"]*\/users\/[^"]*">(?:<[^>]*>)?(\w+)<.*?<\/li>/gs)].map(
    ([line, name]) => ({
      line,
      name,
    }),
  )

type Row = { readonly sub: string; readonly username: string }

for (const [lacks, names] of Object.entries(lists))
  t.test(`who lacks what is the same through each door: ${lacks || 'all'}`, async (t) => {
    const { items } = await call(`/factors?${new URLSearchParams(lacks && { lacks })}`)
    const rows = items as readonly Row[]
    t.strictSame(
      rows.map(({ sub: _, ...row }) => row),
      everyone.filter(({ username }) => names.includes(username)),
    )
    const { stdout } = await runHere([
      ...['user', 'factors', ...(lacks ? ['--lacks', lacks] : [])],
      ...['--config', config, '--json'],
    ])
    t.strictSame(JSON.parse(stdout), rows)
    const { html } = pageOf(await agent.open(`${server.issuer}/admin/users/factors?lacks=${lacks}`))
    t.strictSame(
      linesOf(html).map(({ name }) => name),
      names,
    )
  })

t.test('a page of the list ends where it is full, and its cursor leads on', async (t) => {
  const first = await call('/factors?limit=1&lacks=passkey')
  t.match(first, { items: [{ username: 'alice' }], next: /./ })
  const second = await call(`/factors?limit=2&lacks=passkey&after=${first['next']}`)
  t.match(second, { items: [{ username: 'bob' }, { username: 'carl' }] })
  const after = Buffer.from('after bob').toString('base64url')
  t.match(await call(`/factors?after=${after}`), { error: 'invalid_request' }, 'no cursor of this list')
  t.match(await call('/factors?lacks=everything'), { error: 'invalid_request' })
})

t.test('the page says what each user needs, and from when on', async (t) => {
  const { html } = pageOf(await agent.open(`${server.issuer}/admin/users/factors`))
  const lineOf = (name: string) => linesOf(html).find((one) => one.name === name)?.line ?? ''
  t.match(lineOf('bob'), /needs a second factor.*required from 31 January 2027/s)
  t.match(lineOf('carl'), /needs a passkey/)
  t.notMatch(lineOf('carl'), 'required from')
  t.notMatch(lineOf('dora'), 'needs')
})

t.test('a user who sets the factor up leaves the list', async (t) => {
  const codes = { sealedSecret: 'sealed', recoveryHashes: [], createdAt: clock(), confirmedAt: clock() }
  await store.write(put(secondFactorKind, { userId: aliceId, ...codes }))
  t.match(await call('/factors?lacks=policy'), { items: [{ username: 'bob' }, { username: 'carl' }] })
  const begun = await store.find(secondFactorKind, aliceId)
  if (begun === undefined) throw new Error('the codes are there')
  const { confirmedAt: _, ...unconfirmed } = begun
  await store.write(update(secondFactorKind, unconfirmed))
  t.match(await call('/factors?lacks=policy&limit=1'), { items: [{ username: 'alice' }] }, 'not yet shown')
})
