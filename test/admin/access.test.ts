/** What operators see of who may sign in how: the factors of users, through each door. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { auditEvent } from '../../src/domain/audit.ts'
import { insert, put, remove, update } from '../../src/domain/decision.ts'
import { createGroup } from '../../src/domain/group.ts'
import type { User } from '../../src/domain/model.ts'
import { readPastAccess } from '../../src/observability/past-access.ts'
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
  scope: ['users', 'clients']
    .flatMap((kind) => [`admin:${kind}:read`, `admin:${kind}:write`])
    .concat('admin:audit:read'),
})
const form = { grant_type: 'client_credentials' }
const token = String((await json(await postAs(server, machine, '/api/oauth/token', form)))['access_token'])
const call = async (path: string) => {
  const headers = { authorization: `Bearer ${token}` }
  return json(await fetch(`${server.issuer}/api/admin/v1${path}`, { headers }))
}
const secretFile = join(folder, 'secret')
writeFileSync(secretFile, `${machine.secret}\n`)
const remote = ['--server', server.issuer, '--client-id', machine.id, '--secret-file', secretFile]
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

const app = await integrate(server, { name: 'Payroll' })
const clientOf = async () => {
  const client = await store.find('client', app.id)
  if (client === undefined) throw new Error('the client is there')
  return client
}

/** What each rule says, through the API, the command and the page, which must agree. */
async function explain(t: Test, username: string, at?: number) {
  const sub = (await store.find('userByLogin', username))?.id ?? ''
  const access = await call(`/users/${sub}/access/${app.id}${at === undefined ? '' : `?at=${at}`}`)
  const time = at === undefined ? [] : ['--at', new Date(at * 1000).toISOString()]
  const line = ['explain', 'access', username, app.id, ...time, ...remote]
  const printed = await runHere([...line, '--json'])
  t.equal(printed.stderr, '')
  // Time goes on between two calls.
  t.strictSame({ ...JSON.parse(printed.stdout), at: at ?? 0 }, { ...access, at: at ?? 0 })
  const { stdout } = await runHere(line)
  const rules = access['rules'] as readonly Record<'about' | 'result' | 'why', string>[]
  for (const { about, result, why } of rules)
    t.ok(stdout.includes(`${result}`) && stdout.includes(why), about)
  const local = at === undefined ? '' : new Date(at * 1000).toISOString().slice(0, 19)
  const url = `${server.issuer}/admin/users/${sub}/access?${new URLSearchParams({ client: app.id, at: local })}`
  const { html } = pageOf(await agent.open(url))
  for (const { why } of rules) t.ok(html.includes(why.replaceAll("'", '&#39;')), `the page says: ${why}`)
  return {
    ...Object.fromEntries(rules.map(({ about, result }) => [about, result])),
    result: access['result'],
  }
}
const passed = { user: 'passed', client: 'passed', factor: 'passed', group: 'passed', policy: 'passed' }

t.test('each rule is passed or failed now', async (t) => {
  t.strictSame(await explain(t, 'dora'), { ...passed, result: 'passed' })
  t.strictSame(await explain(t, 'carl'), { ...passed, policy: 'failed', result: 'failed' })
  t.strictSame(await explain(t, 'bob'), { ...passed, result: 'passed' }, 'its day has not come')
  await store.write(
    update('client', {
      ...(await clientOf()),
      extra: { allowed_groups: [admins.id], required_sign_in: 'second factor' },
    }),
  )
  const bobs = await explain(t, 'bob')
  t.strictSame(bobs, { ...passed, group: 'failed', policy: 'failed', result: 'failed' })
  t.strictSame(await explain(t, 'erin'), { ...bobs, user: 'failed' })
  t.match(await explain(t, 'carl'), { group: 'failed' }, 'being in another group is not enough')
})

t.test('for an earlier time the log says what was, and what it cannot know is said', async (t) => {
  const dora = (await store.find('userByLogin', 'dora'))?.id ?? ''
  const change = async (...line: readonly string[]) => {
    const { code, stderr } = await runHere([...line, ...remote])
    t.equal(code, 0, stderr)
  }
  await store.write(update('client', { ...(await clientOf()), extra: {} }))
  server.advance(60)
  const before = clock()
  server.advance(60)
  await change('user', 'lock', 'dora', '--yes')
  await change('group', 'remove', 'staff', 'dora')
  await change('client', 'access', app.id, '--allow', 'staff')
  await store.write(remove(passkeyKind, 'key-dora'))
  await store.write(auditEvent('passkey-removed', { by: 'user', at: clock() }, { userId: dora, left: 0 }))
  const between = clock()
  server.advance(60)
  await change('user', 'unlock', 'dora')
  await change('client', 'access', app.id, '--allow', 'admins')
  const now = await explain(t, 'dora')
  t.match(now, { user: 'passed', group: 'failed', result: 'failed' })
  const then = await explain(t, 'dora', between)
  t.strictSame(then, { ...passed, user: 'failed', group: 'failed', policy: 'not known', result: 'failed' })
  const first = await explain(t, 'dora', before)
  t.strictSame(first, { ...passed, group: 'not known', policy: 'not known', result: 'not known' })
  t.match(await explain(t, 'dora', 1), {
    user: 'failed',
    client: 'failed',
    factor: 'not known',
    group: 'not known',
  })
  const url = `/users/${dora}/access/${app.id}`
  t.match(await call(`${url}?at=${clock() + 60}`), { error: 'invalid_request' }, 'the future')
  t.match(await call(`${url}?at=yesterday`), { error: 'invalid_request' })
  t.match(await call(`/users/${dora}/access/nobody`), { error: 'not_found' })
})

t.test('a password that a passkey replaced was there until then, and not afterwards', async (t) => {
  const userId = await add('gita', { passkey: true })
  const user = (await store.find('user', userId)) as User
  const past = async (at: number, password: boolean) => {
    const factors = { password, codes: false, passkeys: 1, upstreams: 0 }
    return (await readPastAccess(store, { user, client: await clientOf(), factors }, at)).factors
  }
  const event = async (name: 'user-invited' | 'user-password-changed' | 'passkey-added', facts = {}) => {
    await store.write(auditEvent(name, { by: 'user', at: clock() }, { userId, ...facts }))
    server.advance(60)
    return clock() - 30
  }
  const invited = await event('user-invited')
  const set = await event('user-password-changed', { link: 'invitation' })
  const replaced = await event('passkey-added', { name: 'Phone', replaced: 'password' })
  const again = await event('user-password-changed')
  for (const [at, password, passkey] of [
    [invited, false, false],
    [set, true, false],
    [replaced, false, true],
    [again, true, true],
  ] as const)
    t.match(await past(at, true), { value: { password, passkey } }, String(at))
  t.match(await past(set, false), { value: { password: true } }, 'also where the user has none today')
})
