import t, { type Test } from 'tap'
import { insert } from '../../src/domain/decision.ts'
import { openStore } from '../../src/storage/open.ts'
import type { Store } from '../../src/storage/store.ts'
import { verifyPassword } from '../../src/users/passwords.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere as run } from '../helpers/commands.ts'

async function opened(t: Test, data: string): Promise<Store> {
  const store = await openStore(`sqlite:${data}/lychgate.db`)
  t.teardown(() => store.close())
  return store
}

const password = ' päss word 1 '

t.test(
  'a user is added with the password of the first line of standard input, exactly as it is',
  async (t) => {
    const data = newFolder(t)
    const args = ['user', 'add', ' Carol ', '--data', data, '--json']
    const flags = [
      '--email',
      'Carol@Example.com',
      '--name',
      'Carol Cooper',
      '--given-name',
      'Carol',
      '--locale',
      '',
    ]
    const result = await run([...args, ...flags], { input: `${password}\r\nmore\n` })
    t.equal(result.code, 0, result.stderr)
    t.match(JSON.parse(result.stdout), {
      sub: /^user_[\w-]{22}$/,
      username: 'carol',
      seeded: false,
      claims: {
        name: 'Carol Cooper',
        given_name: 'Carol',
        email: 'carol@example.com',
        email_verified: false,
      },
    })
    t.notMatch(result.stdout, /argon2|locale/)
    const user = await (await opened(t, data)).find('userByLogin', 'carol@example.com')
    t.ok(await verifyPassword(password, user?.passwordHash ?? ''))
  },
)

t.test('ids of users and of clients are disjoint', async (t) => {
  const data = newFolder(t)
  const user = await run(['user', 'add', 'client_x', '--data', data, '--json'], { input: 'long enough' })
  const flags = ['--name', 'user_x', '--redirect-uri', 'https://a.example/b']
  const client = await run(['client', 'add', '--data', data, '--json', ...flags])
  t.match(JSON.parse(user.stdout).sub, /^user_/)
  t.match(JSON.parse(client.stdout).client_id, /^client_/)
})

t.test('an invalid user is one line, ends with 1 and is not added', async (t) => {
  const data = newFolder(t)
  const cases: [string[], string, string][] = [
    [['dora'], 'short', 'the password must have 8 to 256 characters'],
    [['dora'], '', 'the password must have 8 to 256 characters'],
    [['do ra'], 'long enough', 'username must have 1 to 128 characters, none of them invisible or a space'],
    [['dora', '--email', 'dora'], 'long enough', 'email must be an email address'],
  ]
  for (const [args, input, line] of cases) {
    const result = await run(['user', 'add', ...args, '--data', data], { input })
    t.match(result, { code: 1, stdout: '', stderr: `lychgate: ${line}\n` })
  }
  t.same(await (await opened(t, data)).list('user'), [])
})

t.test('a user name or email address belongs to one user', async (t) => {
  const data = newFolder(t)
  const input = 'long enough'
  t.equal((await run(['user', 'add', 'erin', '--email', 'e@example.com', '--data', data], { input })).code, 0)
  for (const args of [['ERIN'], ['other', '--email', 'E@example.com']]) {
    const result = await run(['user', 'add', ...args, '--data', data], { input })
    t.match(result, { code: 1, stderr: 'lychgate: the user name or email address is taken\n' })
  }
  const list = await run(['user', 'list', '--data', data])
  t.match(list.stdout, /^user_[\w-]{22} {2}erin {2}e@example\.com\n$/)
})

t.test('a new password ends the sessions of the user and of no other', async (t) => {
  const data = newFolder(t)
  for (const name of ['frank', 'grace'])
    await run(['user', 'add', name, '--data', data], { input: 'long enough' })
  const store = await opened(t, data)
  const [frank, grace] = await Promise.all(['frank', 'grace'].map((name) => store.find('userByLogin', name)))
  for (const user of [frank, grace]) {
    const times = { authenticatedAt: 1, createdAt: 1, idleExpiresAt: 4_000_000_000, expiresAt: 4_000_000_000 }
    const session = {
      id: `session of ${user?.username}`,
      userId: user?.id ?? '',
      methods: ['pwd'],
      ...times,
    }
    await store.write(insert('session', session))
  }
  const result = await run(['user', 'passwd', 'Frank', '--data', data], { input: 'another one' })
  t.match(result, { code: 0, stdout: 'changed  frank\n' })
  const changed = await store.find('userByLogin', 'frank')
  t.ok(await verifyPassword('another one', changed?.passwordHash ?? ''))
  t.equal(await store.find('session', 'session of frank'), undefined)
  t.match(await store.find('session', 'session of grace'), { userId: grace?.id })
})

t.test('a user who is removed and added again is a new user', async (t) => {
  const data = newFolder(t)
  const add = async () => {
    const { stdout } = await run(['user', 'add', 'heidi', '--data', data, '--json'], { input: 'long enough' })
    return JSON.parse(stdout).sub
  }
  const first = await add()
  const remove = ['user', 'delete', 'heidi', '--data', data]
  t.match(await run(remove), {
    code: 1,
    stderr: 'lychgate: cannot ask for confirmation without a terminal; use --yes\n',
  })
  t.match(await run([...remove, '--yes']), { code: 0, stdout: 'removed  heidi\n' })
  t.match(await run(['user', 'list', '--data', data]), { code: 0, stdout: '' })
  const second = await add()
  t.not(second, first)
  for (const sub of [first, second]) t.ok(typeof sub === 'string' && sub.length <= 255)
})

t.test('an unknown user cannot be removed or given a password', async (t) => {
  const data = newFolder(t)
  for (const args of [['remove'], ['passwd']]) {
    const result = await run(['user', ...args, 'nobody', '--data', data], { input: 'long enough' })
    t.match(result, { code: 1, stderr: 'lychgate: no user has this user name, email address or sub\n' })
  }
})
