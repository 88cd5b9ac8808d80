/** What a command does to a user is the same on a store and on a running server: one operation is behind both. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { insert, put, removeAll } from '../../src/domain/decision.ts'
import type { AuditEvent, User } from '../../src/domain/model.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { integrate } from '../helpers/authorization.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { obtainTokens, register } from '../helpers/flow.ts'
import { alice, bob, startServer } from '../helpers/server.ts'

const data = newFolder(t)
const server = await startServer(t, { store: `sqlite:${data}/lychgate.db`, admin: { api: 'on' } })
const { store } = server.deps
const pipeline = await integrate(server, {
  grantTypes: ['client_credentials'],
  redirectUris: [],
  scope: ['admin:users:read', 'admin:users:write'],
  name: 'Pipeline',
})
writeFileSync(join(data, 'secret'), `${pipeline.secret}\n`)
const app = await register(server)

const doors = {
  store: { user: alice, where: ['--data', data] },
  server: {
    user: bob,
    where: ['--server', server.issuer, '--client-id', pipeline.id, '--secret-file', join(data, 'secret')],
  },
}

/** Signs a user in who was not, with a grant; then they have one-time codes and a passkey. */
async function equip({ id: userId }: User, user: typeof alice): Promise<void> {
  await store.write(removeAll(passkeyKind, userId), removeAll(secondFactorKind, userId))
  await obtainTokens(server, app, { user, fields: { scope: 'openid courses:read' } })
  const times = { createdAt: 1, usedAt: 1 }
  const passkey = { userId, publicKey: 'AAAA', counter: 0, transports: [], backedUp: false, ...times }
  await store.write(
    put(secondFactorKind, { userId, sealedSecret: 'x', confirmedAt: 1, recoveryHashes: [], createdAt: 1 }),
    insert(passkeyKind, { ...passkey, id: `key of ${userId}`, name: 'Key' }),
  )
}

/** Without what tells the doors apart: who it was done to, and who did it from where. */
function shown({ name, facts }: AuditEvent) {
  const { actor: _, request: __, ...rest } = facts
  return { name, ...rest }
}

for (const line of [
  ['user', 'lock'],
  ['user', 'unlock'],
  ['session', 'end', '--user'],
  ['user', 'revoke'],
  ['user', 'remove-second-factor'],
  ['user', 'remove-passkeys'],
  ['user', 'remove'],
]) {
  t.test(`lychgate ${line.join(' ')} does and says the same on a store and on a server`, async (t) => {
    const [one, other] = [await on('store'), await on('server')]
    t.strictSame(other, one)
    t.equal(one.code, 0)
    t.not(one.events.length, 0)
  })

  async function on(door: keyof typeof doors) {
    const { user, where } = doors[door]
    const found = (await store.find('userByLogin', user.username)) as User
    const { id } = found
    if (!line.includes('unlock')) await equip(found, user)
    const earlier = await eventsOf(id)
    const yes = line.includes('unlock') ? [] : ['--yes']
    const { code, stdout, stderr } = await runHere([...line, user.username, ...yes, '--json', ...where])
    const {
      claims: _,
      created_at: __,
      updated_at: ____,
      locked_at: ___,
      ...said
    } = JSON.parse(stdout.replaceAll(id, 'SUB').replaceAll(user.username, 'NAME'))
    const left = {
      sessions: (await store.listOf('session', id)).length,
      passkeys: (await store.listOf(passkeyKind, id)).length,
      codes: (await store.find(secondFactorKind, id)) !== undefined,
      user: (await store.find('user', id)) !== undefined,
    }
    if (line.includes('lock')) t.match(await store.find('user', id), { lockedAt: Number })
    const events = (await eventsOf(id)).slice(earlier.length)
    return { code, stderr, events: events.map(shown), said, left }
  }
}

/** Everything the audit log says about a user. */
async function eventsOf(userId: string) {
  return store.audit({ since: 0, userId, limit: 1000 })
}

t.test('what is for a store is no flag for a server', async (t) => {
  const { where } = doors.server
  t.match(await runHere(['user', 'lock', 'bob', '--yes', '--force', ...where]), {
    code: 64,
    stderr: /--force is for a store/,
  })
  t.match(await runHere(['user', 'lock', 'nobody', '--yes', ...where]), {
    code: 1,
    stderr: 'lychgate: no user has this user name, email address or sub\n',
  })
})

t.test('an id that nothing has is an unknown name, on a server as on a store', async (t) => {
  for (const line of [
    ['user', 'unlock', `user_${'A'.repeat(22)}`],
    ['group', 'delete', `group_${'A'.repeat(22)}`, '--yes'],
  ]) {
    const [one, other] = [
      await runHere([...line, ...doors.store.where]),
      await runHere([...line, ...doors.server.where]),
    ]
    t.match(one, { code: 1, stderr: /^lychgate: no (user|group) has this/ })
    t.strictSame(other, one)
  }
})

t.test('a group is created, renamed, set and deleted on a server as on a store', async (t) => {
  const on = async ({ where }: { readonly where: readonly string[] }, name: string) => {
    const outputs: string[] = []
    for (const line of [
      ['create', `${name}-above`],
      ['create', name, '--description', 'Those who teach', '--parent', `${name}-above`],
      ['rename', name, `${name}-two`],
      ['set', `${name}-two`, '--description', '', '--administrators', `${name}-above`],
      ['set', `${name}-two`, '--parent', '', '--administrators', ''],
      ['delete', `${name}-two`, '--yes'],
      ['delete', `${name}-two`, '--yes'],
      ['rename', `${name}-above`, ' '],
    ]) {
      const { code, stdout, stderr } = await runHere(['group', ...line, '--json', ...where])
      const text = `${code} ${stdout}${stderr}`.replaceAll(name, 'NAME')
      outputs.push(
        text.replaceAll(/group_[\w-]{22}/g, 'ID').replaceAll(/"created_at": \d+/g, '"created_at": 0'),
      )
    }
    const events = (await store.audit({ since: 0, limit: 1000 })).filter(
      ({ name: event, facts }) =>
        event.startsWith('group-') && Object.values(facts).some((one) => `${one}`.includes(name)),
    )
    return { outputs, events: events.map(({ name: event }) => event) }
  }
  const [one, other] = [await on(doors.store, 'north'), await on(doors.server, 'south')]
  t.match(one.outputs.map((line) => line[0]).join(''), '00000011')
  t.strictSame(other.outputs, one.outputs)
  t.not(one.events.length, 0)
  t.strictSame(other.events, one.events)
})
