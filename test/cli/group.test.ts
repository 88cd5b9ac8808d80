import { writeFileSync } from 'node:fs'
import t from 'tap'
import { accept, put, update } from '../../src/domain/decision.ts'
import type { User } from '../../src/domain/model.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { newFolder } from '../helpers/command.ts'
import { runAll } from '../helpers/commands.ts'
import { startServer } from '../helpers/server.ts'
import * as sample from '../storage/samples.ts'

const data = newFolder(t)
const server = await startServer(t, { store: `sqlite:${data}/lychgate.db` })
const { store } = server.deps

async function run(...line: string[]) {
  const [ended] = await runAll([[...line, '--data', data]])
  if (ended === undefined) throw new Error('nothing was run')
  return ended
}

async function ok(...line: string[]) {
  const { code, stdout, stderr } = await run(...line, '--json')
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

async function fails(line: string[], reason: RegExp, code = 1) {
  const ended = await run(...line)
  t.equal(ended.code, code, line.join(' '))
  t.match(ended.stderr, reason)
}

t.test('groups are created, changed and deleted', async (t) => {
  const staff = await ok('group', 'create', 'staff', '--description', 'Everyone who works here')
  t.match(staff.group_id, /^group_[\w-]{22}$/)
  t.match(staff, { name: 'staff', description: 'Everyone who works here' })
  await ok('group', 'create', 'teachers', '--parent', 'STAFF')
  await ok('group', 'create', 'écoliers')
  t.match(await ok('group', 'list'), [
    { name: 'staff' },
    { name: 'teachers', parent: 'staff' },
    { name: 'écoliers' },
  ])
  t.match((await run('group', 'list')).stdout, /^teachers +group_\S+ +in staff$/m)
  t.match(await ok('group', 'rename', 'teachers', 'lecturers'), { name: 'lecturers', parent: 'staff' })
  await fails(['group', 'show', 'teachers'], /no group has this name or id/)
  t.match(await ok('group', 'set', 'lecturers', '--description', 'They teach'), { description: 'They teach' })
  t.match(await ok('group', 'show', 'staff'), { children: ['lecturers'], members: [], more: false })
  await fails(['group', 'delete', 'staff', '--yes'], /the group is the parent of another one/)
  t.strictSame(Object.keys(await ok('group', 'set', 'lecturers', '--parent', '', '--description', '')), [
    'group_id',
    'name',
    'created_at',
  ])
  t.match(await ok('group', 'delete', staff.group_id, '--yes'), { deleted: true })
  t.strictSame((await ok('group', 'list')).length, 2)
  await ok('group', 'create', 'staff')
})

t.test('a group names the group whose members administer it', async (t) => {
  await ok('group', 'create', 'leads')
  t.match(await ok('group', 'create', 'course', '--administrators', 'LEADS'), { administrators: 'leads' })
  t.match((await run('group', 'list')).stdout, /^course +group_\S+ +by leads$/m)
  await fails(['group', 'set', 'course', '--administrators', 'none'], /no group has this name or id/)
  await fails(['group', 'set', 'course'], /--description, --parent or --administrators/, 64)
  t.match(await ok('group', 'show', 'course'), { administrators: 'leads' })
  t.notOk('administrators' in (await ok('group', 'set', 'course', '--administrators', '')))
  await ok('group', 'set', 'course', '--administrators', 'leads')
  await ok('group', 'delete', 'leads', '--yes')
  t.notOk('administrators' in (await ok('group', 'show', 'course')), 'it has none then')
  await ok('group', 'delete', 'course', '--yes')
})

t.test('what cannot be a group is rejected', async () => {
  await fails(['group', 'create', 'Staff'], /another group has this name/)
  for (const name of ['', ' ', 'a,b', 'a\u202eb', 'a'.repeat(101), 'a\nb', 'a;b', 'a"b'])
    await fails(['group', 'create', name], /the name of a group has 1 to 100 characters/)
  await fails(['group', 'create', 'x', '--parent', 'nowhere'], /no group has this name or id/)
  await fails(['group', 'create', 'x', '--description', 'a\u202eb'], /none that is invisible/)
  await fails(['group', 'set', 'staff'], /nothing to change/, 64)
  await fails(['group', 'set', 'staff', '--parent', 'staff'], /the parent is the group itself, or below it/)
  await ok('group', 'create', 'd1', '--parent', 'staff')
  await fails(['group', 'set', 'staff', '--parent', 'd1'], /the parent is the group itself, or below it/)
  for (let depth = 2; depth < 10; depth += 1)
    await ok('group', 'create', `d${depth}`, '--parent', `d${depth - 1}`)
  await fails(['group', 'create', 'd10', '--parent', 'd9'], /groups lie at most 10 deep/)
  await ok('group', 'create', 'above')
  await fails(['group', 'set', 'staff', '--parent', 'above'], /groups lie at most 10 deep/)
})

t.test('users are added and removed', async (t) => {
  t.strictSame((await ok('group', 'add', 'staff', 'alice', 'bob@example.test')).added, ['alice', 'bob'])
  t.strictSame((await ok('group', 'add', 'staff', 'alice')).added, [])
  await fails(['group', 'add', 'staff', 'bob', 'nobody'], /no user has this user name/)
  const { members } = await ok('group', 'show', 'staff')
  t.strictSame(members.map(({ username }: { username: string }) => username).sort(), ['alice', 'bob'])
  const first = await ok('group', 'show', 'staff', '--limit', '1')
  t.match(first, { more: true, members: [members[0]] })
  const rest = await ok('group', 'show', 'staff', '--limit', '1', '--after', members[0].sub)
  t.match(rest, { more: false, members: [members[1]] })
  t.match((await run('group', 'show', 'staff')).stdout, /\n\n(alice|bob) +user_/)
  t.strictSame((await ok('group', 'remove', 'staff', 'bob')).removed, ['bob'])
  t.strictSame((await ok('group', 'remove', 'staff', 'bob')).removed, [])
  t.match((await ok('user', 'show', 'alice')).groups, ['staff'])
  await ok('user', 'remove', 'alice', '--yes')
  t.strictSame((await ok('group', 'show', 'staff')).members, [], 'a user who is removed is in no group')
  await ok('group', 'add', 'staff', 'bob')
  await ok('group', 'set', 'd1', '--parent', '')
  await ok('group', 'delete', 'staff', '--yes')
  t.strictSame((await ok('user', 'show', 'bob')).groups, [])
  const events = await store.audit({ since: 0, name: 'group-member-added', limit: 10 })
  t.strictSame(
    events.map(({ by }) => by),
    ['operator', 'operator', 'operator'],
  )
})

t.test('access to a client is given by the names of groups', async (t) => {
  const added = await ok('client', 'add', '--name', 'Grades', '--redirect-uri', 'https://grades.example/cb')
  const id = added.client_id
  t.strictSame(await ok('client', 'access', id), { client_id: id, allowed_groups: null })
  await ok('group', 'create', 'pupils')
  await ok('group', 'create', 'teachers')
  const allowed = await ok('client', 'access', id, '--allow', 'pupils', '--allow', 'Teachers')
  t.strictSame(allowed.allowed_groups, ['pupils', 'teachers'])
  await ok('group', 'rename', 'pupils', 'students')
  t.match((await run('client', 'access', id)).stdout, /allowed_groups +students teachers/)
  t.match(
    (await ok('client', 'set', id, '--name', 'Marks')).allowed_groups,
    /^|group_/,
    'another change keeps it',
  )
  const [event] = await store.audit({ since: 0, name: 'client-changed', clientId: id, limit: 10 })
  t.match(event, { by: 'operator', facts: { changed: 'allowed_groups', allowed: /^group_\S+ group_\S+$/ } })
  await ok('group', 'delete', 'teachers', '--yes')
  t.match((await ok('client', 'access', id)).allowed_groups, ['students', /^group_\S+ \(deleted\)$/])
  t.strictSame((await ok('client', 'access', id, '--everyone')).allowed_groups, null)
  await fails(['client', 'access', id, '--allow', 'nowhere'], /no group has this name or id/)
  await fails(['client', 'access', id, '--allow', 'students', '--everyone'], /exclude each other/, 64)
  await fails(['client', 'set', id, '--allowed-groups', 'students'], /allowed_groups must be ids of groups/)
})

t.test('claims of the tokens of a client are set from a file', async (t) => {
  const added = await ok('client', 'add', '--name', 'Grafana', '--redirect-uri', 'https://grafana.example/cb')
  const id = added.client_id
  const file = `${data}/claims.yaml`
  writeFileSync(file, '[{ claim: roles, roles: { STUDENTS: Viewer } }, { claim: org, value: school }]')
  const set = await ok('client', 'claims', id, '--set', file)
  const into = ['id_token', 'userinfo']
  const rules = [
    { claim: 'roles', in: into, roles: { students: 'Viewer' } },
    { claim: 'org', in: into, value: 'school' },
  ]
  t.strictSame(set, rules)
  await ok('group', 'rename', 'students', 'pupils')
  t.match(await ok('client', 'claims', id), [{ roles: { pupils: 'Viewer' } }, {}])
  const [stored] = (await ok('client', 'show', id)).token_claims
  t.match(Object.keys(stored.roles)[0], /^group_[\w-]{22}$/)
  writeFileSync(file, '[{ claim: sub, value: root }]')
  await fails(['client', 'claims', id, '--set', file], /only the server sets/)
  writeFileSync(file, '[{ claim: roles, roles: { nowhere: Viewer } }]')
  await fails(['client', 'claims', id, '--set', file], /no group has this name or id/)
  writeFileSync(file, 'claim: roles')
  await fails(['client', 'claims', id, '--set', file], /must have a list of claims/)
  await fails(['client', 'claims', id, '--set', `${data}/none.yaml`], /cannot be read/)
  writeFileSync(file, '[]')
  t.strictSame(await ok('client', 'claims', id, '--set', file), [])
})

t.test(
  'the last passkey of a last administrator without a password stays, unless it is forced',
  async (t) => {
    await ok('group', 'create', 'admins')
    await ok('group', 'add', 'admins', 'bob')
    const bob = (await store.find('userByLogin', 'bob')) as User
    const { passwordHash: _, ...without } = bob
    await store.transact('user', bob.id, () => accept(undefined, update('user', without)))
    await store.write(put(passkeyKind, { ...sample.passkey, userId: bob.id }))
    const line = ['user', 'remove-passkeys', 'bob', '--yes']
    await fails(line, /no administrator would be left/)
    t.equal((await store.listOf(passkeyKind, bob.id)).length, 1)
    t.match(await ok(...line, '--force'), { removed: 1 })
    await store.transact('user', bob.id, () => accept(undefined, update('user', bob)))
    await ok('group', 'delete', 'admins', '--yes', '--force')
  },
)

t.test('the last administrator stays, unless the operator forces it', async (t) => {
  await ok('group', 'create', 'admins')
  await ok('group', 'create', 'on call', '--parent', 'admins')
  await ok('group', 'add', 'on call', 'bob')
  const ends = [
    ['group', 'remove', 'on call', 'bob'],
    ['group', 'rename', 'admins', 'owners'],
    ['group', 'set', 'on call', '--parent', ''],
    ['group', 'delete', 'on call', '--yes'],
    ['user', 'lock', 'bob', '--yes'],
    ['user', 'remove', 'bob', '--yes'],
  ]
  for (const line of ends) await fails(line, /no administrator would be left/)
  t.match(await ok('group', 'show', 'on call'), { members: [{ username: 'bob' }], parent: 'admins' })
  for (const line of ends) {
    await ok(...line, '--force')
    if (line[1] === 'rename') await ok('group', 'rename', 'owners', 'admins')
    if (line[1] === 'set') await ok('group', 'set', 'on call', '--parent', 'admins')
    if (line[1] === 'delete') await ok('group', 'create', 'on call', '--parent', 'admins')
    if (line[1] === 'lock') await ok('user', 'unlock', 'bob')
    if (line[1] !== 'remove' || line[0] === 'group') await ok('group', 'add', 'on call', 'bob')
  }
  await fails(['user', 'show', 'bob'], /no user/)
})
