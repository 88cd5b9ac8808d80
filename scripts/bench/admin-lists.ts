/**
 * Measures the lists of the admin API over a store with many users and clients: the first page, and one far in, for an
 * administrator of the server and for one of a group. `--store` names a database; by default a new SQLite file.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildApp } from '../../src/app/app.ts'
import { addOperatorClient } from '../../src/clients/operator-client.ts'
import { insert, put, type Write } from '../../src/domain/decision.ts'
import { mintGrantId } from '../../src/domain/grant.ts'
import { createGroup, membershipKind } from '../../src/domain/group.ts'
import { sealHandle } from '../../src/domain/handle.ts'
import type { Grant } from '../../src/domain/model.ts'
import { catalogueOf } from '../../src/feature/service.ts'
import { declared } from '../../src/features.ts'
import { cursorOf } from '../../src/http/cursor.ts'
import { keyPolicy } from '../../src/keys/key-policy.ts'
import { loadKeyRing } from '../../src/keys/key-ring.ts'
import { loadConfig } from '../../src/settings/load.ts'
import { openStore } from '../../src/storage/open.ts'
import { systemClock, systemRandom } from '../../src/system/system.ts'
import { reachOf } from '../../src/users/delegation.ts'
import { changeGroups, listGroups } from '../../src/users/groups.ts'
import { beginSession } from '../../src/users/rules/session.ts'
import { createUser } from '../../src/users/rules/user.ts'
import { readCount, scriptCommand } from '../command.ts'

const {
  users,
  clients,
  groups,
  rounds,
  store: url,
} = scriptCommand('bench:lists', 'Measures the lists of the admin API.')
  .option('--users <number>', 'how many users', readCount, 100_000)
  .option('--clients <number>', 'how many clients', readCount, 10_000)
  .option('--groups <number>', 'how many groups', readCount, 1000)
  .option('--rounds <number>', 'how often each page is read; the median counts', readCount, 50)
  .option('--store <url>', 'an empty database')
  .parse()
  .opts<{ users: number; clients: number; groups: number; rounds: number; store?: string }>()

const folder = mkdtempSync(join(tmpdir(), 'lychgate-lists-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const loaded = loadConfig({
  mode: 'serve',
  flags: { issuer: 'http://localhost:9400', secret: 'only for this measurement, of no use elsewhere' },
})
const config = {
  ...loaded,
  rateLimits: 'off' as const,
  admin: { ...loaded.admin, api: 'on' as const },
} as typeof loaded
const store = await openStore(url ?? `sqlite:${folder}/lychgate.db`, { waitMilliseconds: 20_000 })
const clock = systemClock
const sources = {
  store,
  secret: config.secret ?? '',
  clock,
  random: systemRandom,
  server: 'production',
} as const
const keys = await loadKeyRing({ ...sources, policy: keyPolicy(config) })
const app = await buildApp(
  { config, store, keys, clock, random: systemRandom },
  { logTo: { write: () => undefined } },
)
await app.ready()

const context = { by: 'operator', at: clock() } as const
const known = {
  declared,
  scopes: catalogueOf(config, declared.scopes).map(({ name }) => name),
  resources: [config.issuer],
}
const scope = ['admin:users:read', 'admin:clients:read', 'admin:audit:read', 'admin:keys:read']

/** Writes in parts: a transaction of everything would be too large. */
async function writeAll(count: number, make: (each: number) => readonly Write[]): Promise<void> {
  for (let from = 0; from < count; from += 100)
    await store.write(
      ...Array.from({ length: Math.min(100, count - from) }, (_, each) => make(from + each)).flat(),
    )
}
const group = (name: string, administratorsId?: string) =>
  changeGroups(store, (all) => createGroup(all, { name, administratorsId }, systemRandom(16), context))
const leads = await group('leads')
const course = await group('course', leads.id)
for (let each = 0; each < groups; each += 1) await group(`group ${each}`)
const ids: string[] = []
await writeAll(users, (each) => {
  const user = createUser(
    { username: `user${each}`, email: `user${each}@example.test` },
    systemRandom(16),
    clock(),
  )
  ids.push(user.id)
  // Half of them are in the group.
  const membership = { groupId: course.id, userId: user.id, addedAt: clock() }
  return [insert('user', user), ...(each % 2 === 0 ? [put(membershipKind, membership)] : [])]
})
const lead = ids[1] ?? ''
await store.write(put(membershipKind, { groupId: leads.id, userId: lead, addedAt: clock() }))
const add = (name: string, more: object = {}) =>
  addOperatorClient(
    { client_name: name, redirect_uris: ['https://app.example/cb'], ...more },
    known,
    { id: systemRandom(16), secret: systemRandom(32) },
    { by: 'operator', at: clock() },
  )
const clientIds: string[] = []
await writeAll(clients, (each) => {
  const { client, writes } = add(`Client ${each}`)
  clientIds.push(client.id)
  return writes
})
const grantOf = (userId: string, clientId: string, more: Partial<Grant> = {}): Grant => ({
  id: mintGrantId(systemRandom(8), clock()),
  secret: systemRandom(16).toString('base64url'),
  clientId,
  userId,
  scope: ['openid', 'email'],
  resource: [config.issuer],
  redirectUri: 'https://app.example/cb',
  redirectUriSent: true,
  authenticatedAt: clock(),
  methods: ['pwd'],
  authTimeOwed: false,
  claims: { userinfo: [], idToken: [] },
  approvedAt: clock(),
  seq: 1,
  rotatedAt: clock(),
  refreshExpiresAt: clock() + 1_000_000,
  absoluteExpiresAt: clock() + 1_000_000,
  expiresAt: clock() + 1_000_000,
  ...more,
})
// Each user has a session, and grants to three clients.
await writeAll(users, (each) => {
  const userId = ids[each] ?? ''
  const session = beginSession(
    systemRandom(32).toString('base64url'),
    userId,
    ['pwd'],
    config.lifetimes,
    clock(),
  )
  const grants = [0, 1, 2].map((n): Write => {
    const clientId = clientIds[(each * 3 + n * 7) % clients] ?? ''
    return { op: 'insertGrant', grant: grantOf(userId, clientId) }
  })
  return [insert('session', session), ...grants]
})
const machine = add('Measurement', { redirectUris: [], grantTypes: ['client_credentials'], scope })
await store.write(...machine.writes)
const basic = Buffer.from(`${machine.client.id}:${machine.secret}`).toString('base64')
const issued = await app.inject({
  method: 'POST',
  url: '/api/oauth/token',
  headers: { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' },
  payload: `grant_type=client_credentials&scope=${encodeURIComponent(scope.join(' '))}`,
})
const full = `Bearer ${issued.json().access_token}`
const console = add('Console', { scope: ['openid', ...scope] })
const own = grantOf(lead, console.client.id, { scope: ['openid', 'admin:users:read'] })
await store.write(...console.writes, { op: 'insertGrant', grant: own })
const handle = {
  kind: 'access',
  grantId: own.id,
  seq: 1,
  issuedAt: clock(),
  expiresAt: clock() + 86_400,
} as const
const delegate = `Bearer ${sealHandle(handle, keys.handles.current, own.secret)}`

const far = {
  '/users': cursorOf(Math.floor(users * 0.9)),
  '/users?state=unlocked': cursorOf(Math.floor(users * 0.9)),
  '/users?state=locked': undefined,
  '/users?search=user': cursorOf(`user${Math.floor(users * 0.9)}`),
  [`/users?search=user${users - 1}@ex`]: undefined,
  '/clients': cursorOf(Math.floor(clients * 0.9)),
  '/groups': cursorOf('group_y'),
  [`/groups/${course.id}/members`]: cursorOf(`${course.id}/user_y`),
  '/audit': undefined,
  '/registration-tokens': undefined,
  '/deliveries/pending': undefined,
  '/deliveries/finished': undefined,
  '/resources': undefined,
  [`/users/${ids[0]}/sessions`]: undefined,
  [`/users/${ids[0]}/grants`]: undefined,
  [`/users/${ids[0]}/links`]: undefined,
  [`/users/${ids[0]}/groups`]: undefined,
  '/sessions': cursorOf('x'),
  '/grants': undefined,
  [`/grants?client_id=${clientIds[7]}`]: undefined,
  '/grants?state=revoked': undefined,
  [`/grants?sub=${ids[0]}`]: undefined,
}
const farForDelegate = {
  '/users': cursorOf(`${course.id}/user_y`),
  '/users?state=locked': cursorOf(`${course.id}/user_y`),
  [`/users?search=user${users - 1}@ex`]: cursorOf(`${course.id}/user_y`),
  '/groups': undefined,
  [`/groups/${course.id}/members`]: cursorOf(`${course.id}/user_y`),
  '/sessions': cursorOf(`${course.id}/user_y`),
  '/grants': cursorOf(`${course.id}/user_y`),
  [`/grants?client_id=${clientIds[7]}`]: cursorOf(`${course.id}/user_y`),
  '/grants?state=revoked': cursorOf(`${course.id}/user_y`),
}
async function median(read: () => Promise<unknown>): Promise<string> {
  const times: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const begin = performance.now()
    await read()
    times.push(performance.now() - begin)
  }
  return (times.toSorted((one, other) => one - other)[Math.floor(rounds / 2)] ?? 0).toFixed(1)
}
async function read(path: string, authorization: string): Promise<void> {
  const { statusCode, body } = await app.inject({ url: `/api/admin/v1${path}`, headers: { authorization } })
  if (statusCode !== 200) throw new Error(`${path}: ${statusCode} ${body}`)
}
async function measure(
  lists: Readonly<Record<string, string | undefined>>,
  authorization: string,
  title: string,
): Promise<void> {
  process.stdout.write(`${title}\n`)
  for (const [path, after] of Object.entries(lists)) {
    const first = await median(() => read(path, authorization))
    const next =
      after === undefined
        ? ''
        : await median(() => read(`${path}${path.includes('?') ? '&' : '?'}after=${after}`, authorization))
    process.stdout.write(
      `${path.replaceAll(/(?:user|group|client)_[\w-]{8,}/g, '…').padEnd(28)} ${first.padStart(7)} ms ${next.padStart(7)} ms\n`,
    )
  }
}
await measure(far, full, 'an administrator of the server')
await measure(farForDelegate, delegate, 'an administrator of the group of half of the users')
const groupsOfLead = new Set([leads.id])
const reach = await median(async () => reachOf(await listGroups(store), groupsOfLead, config.admin.group))
process.stdout.write(`${'what a delegate reaches'.padEnd(28)} ${reach.padStart(7)} ms\n`)
await app.close()
await store.close()
