import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ConfigError } from '../../src/config/error.ts'
import { seedGroups } from '../../src/dev/groups.ts'
import { readUsers } from '../../src/dev/read-users.ts'
import { type DevelopmentUser, developmentUsers, seedUsers, withKnownPasswords } from '../../src/dev/users.ts'
import type { Attribute } from '../../src/domain/attributes.ts'
import { insert, update } from '../../src/domain/decision.ts'
import { openStore } from '../../src/storage/open.ts'
import { groupsOf, inOrder } from '../../src/users/groups.ts'
import { verifyPassword } from '../../src/users/passwords.ts'
import { createUser } from '../../src/users/rules/user.ts'
import { testClock } from '../helpers/clock.ts'
import { newFolder } from '../helpers/command.ts'

const own = { visible: 'administrator', editable: 'administrator' } as const
const level: Attribute = { name: 'level', type: 'number', ...own }
const department: Attribute = { name: 'department', type: 'choice', values: ['physics', 'biology'], ...own }

function file(t: Test, text: string): string {
  const path = join(newFolder(t), 'users.yaml')
  writeFileSync(path, text)
  return path
}

function faultsOf(t: Test, text: string): readonly string[] {
  const path = file(t, text)
  try {
    readUsers(path, [level])
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults.map((line) => line.replace(path, 'users.yaml'))
  }
}

async function world(t: Test) {
  const store = await openStore('sqlite::memory:')
  t.teardown(() => store.close())
  const clock = testClock()
  const find = (name: string) => store.find('userByLogin', name)
  return { store, clock, find, seed: (...users: DevelopmentUser[]) => seedUsers(store, clock, users) }
}

t.test('a file of users is read, with claims of every kind', (t) => {
  const users = readUsers(
    file(
      t,
      `users:
  - username: carol
    password: carol-knows
    email: carol@example.com
    email_verified: false
    sub: user-7
    claims: { name: Carol, age: 7, phone_number_verified: true, address: { locality: Ulm } }
    attributes: { level: 3 }
  - { username: dan }
`,
    ),
    [level],
  )
  t.strictSame(users, [
    {
      username: 'carol',
      password: 'carol-knows',
      email: 'carol@example.com',
      email_verified: false,
      sub: 'user-7',
      claims: { name: 'Carol', age: 7, phone_number_verified: true, address: { locality: 'Ulm' } },
      attributes: { level: 3 },
    },
    { username: 'dan' },
  ])
  t.end()
})

t.test('every error of a file of users is a line with its place and what is expected', (t) => {
  const cases: [string, readonly string[]][] = [
    ['users: [', ['users: users.yaml is not valid YAML: ']],
    ['', ['users (users.yaml): must be a section of named options']],
    [
      'users: [{username: a, attributes: {level: high}}]',
      ['users (users.yaml): "a": attributes: level must be a number'],
    ],
    [
      'users: [{username: a, attributes: {size: 3}}]',
      ['users (users.yaml): "a": attributes: size is not declared'],
    ],
    ['users: []', ['users (users.yaml): users must ']],
    [
      'usrs: [{ username: dan }]',
      [
        'users (users.yaml): has a member that does not exist here; did you mean users?',
        'users (users.yaml): users is missing',
      ],
    ],
    [
      'users: [{ usernam: dan }]',
      [
        'users (users.yaml): users.0 has a member that does not exist here; did you mean username?',
        'users (users.yaml): users.0.username is missing',
      ],
    ],
    ['users: [{ username: 7 }]', ['users (users.yaml): users.0.username must be text']],
    ['users: [{ username: a b }]', ['users (users.yaml): "a b": username must have ']],
    ['users: [{ username: dan }, { username: dan }]', ['users (users.yaml): dan is listed twice']],
  ]
  for (const [text, expected] of cases) {
    const found = [...faultsOf(t, text)].sort()
    t.equal(found.length, expected.length, text)
    for (const [index, line] of [...expected].sort().entries())
      t.ok(found[index]?.startsWith(line), found[index] ?? line)
  }
  t.end()
})

t.test('a listed user has the same sub in every development server, or the given one', async (t) => {
  const [one, other] = [await world(t), await world(t)]
  await one.seed({ username: 'carol' }, { username: 'dan', sub: 'user-7' })
  await other.seed({ username: 'carol' })
  const id = (await one.find('carol'))?.id
  t.match(id, /^user_[\w-]{22}$/)
  t.equal((await other.find('carol'))?.id, id)
  t.equal((await one.find('dan'))?.id, 'user-7')
})

t.test('reading a list again updates only its own users', async (t) => {
  const { store, find, seed } = await world(t)
  const own = { username: 'erin', passwordHash: 'x', claims: { name: 'Erin' } }
  await store.write(insert('user', createUser(own, Buffer.alloc(16), 5)))
  t.strictSame(await seed({ username: 'carol', claims: { name: 'Carol' } }, { username: 'dan' }), [])
  const before = await find('carol')
  const again = [{ username: 'carol', email: 'c@example.com', claims: { name: 'C.' } }, { username: 'erin' }]
  t.strictSame(await seed(...again), ['erin'])
  t.match(await find('carol'), {
    id: before?.id,
    claims: { name: 'C.' },
    email: 'c@example.com',
    seeded: true,
  })
  t.match(await find('dan'), { username: 'dan' }, 'whoever is listed no more stays')
  t.match(await find('erin'), { claims: { name: 'Erin' }, passwordHash: 'x', seeded: false })
})

t.test('a password that a user set is kept when the list is read again', async (t) => {
  const { store, find, seed } = await world(t)
  await seed({ username: 'carol', password: 'first one' })
  await seed({ username: 'carol', password: 'second one' })
  const check = withKnownPasswords(async () => false)
  const carol = await find('carol')
  t.equal(await check('second one', carol?.passwordHash), true)
  t.equal(await check('first one', carol?.passwordHash), false)
  if (carol) await store.write(update('user', { ...carol, passwordHash: '$argon2id$own' }))
  await seed({ username: 'carol', password: 'third one' })
  t.equal((await find('carol'))?.passwordHash, '$argon2id$own')
})

t.test('a known password works on a development server only', async (t) => {
  const { find, seed } = await world(t)
  await seed({ username: 'carol' })
  const stored = (await find('carol'))?.passwordHash ?? ''
  t.equal(await verifyPassword('carol-in-dev', stored), false)
  const asked: (string | undefined)[] = []
  const check = withKnownPasswords(async (_password, phc) => {
    asked.push(phc)
    return true
  })
  t.equal(await check('carol-in-dev', stored), true)
  t.strictSame(asked, [], 'without a hash')
  t.equal(await check('x', '$argon2id$'), true)
  t.equal(await check('x', undefined), true)
  t.strictSame(asked, ['$argon2id$', undefined])
})

t.test('alice has a value of every declared attribute, and a list sets others', async (t) => {
  const { store, clock, find } = await world(t)
  const of = async (name: string) => (await find(name))?.attributes
  await seedUsers(store, clock)
  t.equal(await of('alice'), undefined)
  await seedUsers(store, clock, developmentUsers, [level])
  t.strictSame(await of('alice'), { level: 1 }, 'also one that was declared later')
  await seedUsers(store, clock, [{ username: 'alice', attributes: { level: 7 } }], [level])
  await seedUsers(store, clock, developmentUsers, [level, department])
  t.strictSame(await of('alice'), { level: 7, department: 'physics' }, 'attributes that are not named stay')
  t.equal(await of('bob'), undefined)
  await seedUsers(store, clock, [{ username: 'bob', attributes: { department: 'biology' } }], [department])
  await seedUsers(store, clock, [{ username: 'bob' }], [department])
  t.strictSame(await of('bob'), { department: 'biology' }, 'without a list they stay')
})

t.test('users are put into the groups of the list, and into no other', async (t) => {
  const { store, find, seed, clock } = await world(t)
  await seedUsers(store, clock)
  const names = async (username: string) => {
    const user = await find(username)
    return inOrder(await groupsOf(store, user?.id ?? '')).map(({ name }) => name)
  }
  t.strictSame(await names('alice'), ['admins', 'staff'])
  t.strictSame(await names('bob'), ['students'])
  await seed({ username: 'alice', groups: ['Staff', 'choir'] }, { username: 'bob' })
  t.strictSame(await names('alice'), ['choir', 'staff'])
  t.strictSame(await names('bob'), ['students'], 'without a list they stay')
  await seedUsers(store, clock)
  t.strictSame(await names('alice'), ['choir', 'staff'], 'the default list changes no known user')
})

t.test('servers that start on one store at the same time create a group once', async (t) => {
  const { store, clock } = await world(t)
  const seed = (user: string) => seedGroups(store, user, ['choir', 'orchestra'], clock)
  await Promise.all(['user-1', 'user-2', 'user-3'].map(seed))
  const groups = inOrder(await groupsOf(store, 'user-2'))
  t.strictSame(
    groups.map(({ name }) => name),
    ['choir', 'orchestra'],
  )
  t.strictSame(await groupsOf(store, 'user-1'), await groupsOf(store, 'user-3'))
})
