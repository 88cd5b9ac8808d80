/** Every command on users, groups, grants and sessions says and does the same on a store and on a running server. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import t from 'tap'
import { commandLine } from '../../src/main.ts'
import { integrate } from '../helpers/authorization.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { obtainTokens, register } from '../helpers/flow.ts'
import { startProxy } from '../helpers/proxy.ts'
import { bob, startServer } from '../helpers/server.ts'

const data = newFolder(t)
const level = { name: 'level', type: 'number', visible: 'administrator', editable: 'administrator' } as const
const server = await startServer(t, {
  store: `sqlite:${data}/lychgate.db`,
  admin: { api: 'on' },
  accounts: { attributes: [level] },
})
const { store } = server.deps
const pipeline = await integrate(server, {
  grantTypes: ['client_credentials'],
  redirectUris: [],
  scope: ['users', 'clients'].flatMap((kind) => [`admin:${kind}:read`, `admin:${kind}:write`]),
  name: 'Pipeline',
})
const [config, secret] = [join(data, 'lychgate.yaml'), join(data, 'secret')]
writeFileSync(
  config,
  `data: ${data}\nissuer: ${server.issuer}\naccounts:\n  attributes: [${JSON.stringify(level)}]\n`,
)
writeFileSync(secret, `${pipeline.secret}\n`)
const doors = {
  store: ['--config', config],
  server: ['--server', server.issuer, '--client-id', pipeline.id, '--secret-file', secret],
} as const
type Door = keyof typeof doors

const seen = new Set<string>()

/** Runs a command through a door; what follows `--` stays last. */
async function run(door: Door, line: readonly string[], input = '') {
  seen.add(line.slice(0, 2).join(' '))
  const end = line.includes('--') ? line.indexOf('--') : line.length
  return runHere(line.toSpliced(end, 0, ...doors[door]), { input })
}

const app = await register(server, { client_name: 'Reader' })
for (const user of [undefined, undefined, bob]) {
  server.advance(1)
  await obtainTokens(server, app, { ...(user && { user }), fields: { scope: 'openid courses:read' } })
}
for (const line of [
  ['group', 'create', 'staff'],
  ['group', 'create', 'teachers', '--parent', 'staff', '--description', 'They teach'],
  ['group', 'create', 'pupils', '--administrators', 'teachers'],
  ['group', 'add', 'teachers', 'alice', 'bob'],
  // The password is on standard input.
  ['user', 'add', 'root', '--admin'],
  ['user', 'invite', 'guest@example.test'],
  ['user', 'set', 'alice', '--attribute', 'level=3'],
  ['user', 'lock', 'guest@example.test', '--yes'],
  ['user', 'reset-link', 'bob'],
])
  await succeed(line)

async function succeed(line: readonly string[]) {
  const { code, stderr } = await run('store', line, 'correct horse battery\n')
  if (code !== 0) throw new Error(`${line.join(' ')}: ${stderr}`)
}

/** What a command lists first. */
async function idOf(line: readonly string[], name: string): Promise<string> {
  const [first] = JSON.parse((await run('store', [...line, '--json'])).stdout)
  return String(first[name])
}
const alices = (await store.find('userByLogin', 'alice'))?.id ?? ''
const grant = await idOf(['grant', 'list', '--user', 'alice'], 'grant')

for (const line of [
  ['user', 'list'],
  ['user', 'show', 'alice'],
  ['user', 'show', 'guest@example.test'],
  ['user', 'show', 'nobody'],
  ['user', 'factors'],
  ['user', 'factors', '--lacks', 'second-factor'],
  ['user', 'links', 'bob'],
  ['group', 'list'],
  ['group', 'show', 'staff'],
  ['group', 'show', 'teachers'],
  ['group', 'show', 'teachers', '--limit', '1'],
  ['group', 'show', 'teachers', '--after', alices],
  // Not all of them: each call of a server makes another one.
  ['grant', 'list', '--client', app.id],
  ['grant', 'list', '--client', app.id, '--ended'],
  ['grant', 'list', '--user', 'bob', '--client', app.id],
  ['grant', 'show', '--', grant],
  ['grant', 'show', '--', 'nothing'],
  ['session', 'list'],
  ['session', 'list', '--user', 'bob'],
])
  t.test(`lychgate ${line.join(' ')} shows the same`, async (t) => {
    for (const json of [[], ['--json']]) {
      const end = line.includes('--') ? line.indexOf('--') : line.length
      const whole = line.toSpliced(end, 0, ...json)
      const [one, other] = [await run('store', whole), await run('server', whole)]
      t.strictSame(shown(other), shown(one))
      const isThere = !line.some((word) => word.startsWith('no'))
      t.equal(one.code, isThere ? 0 : 1)
      t.not(one.stdout + one.stderr, isThere ? '[]\n' : '')
    }
  })

/** The order of the members of JSON means nothing. */
function shown({ code, stdout, stderr }: Awaited<ReturnType<typeof run>>) {
  return { code, stderr, said: /^[[{]/.test(stdout) ? JSON.parse(stdout) : stdout }
}

/** What is done through a door to a user of its own: everything, in an order that makes it possible. */
function* linesOf(door: Door): Generator<readonly string[]> {
  const name = door
  const email = `${name}@example.test`
  yield [
    'user',
    'add',
    name,
    '--email',
    email,
    '--email-verified',
    '--attribute',
    'level=3',
    '--given-name',
    'C',
  ]
  yield ['user', 'add', name]
  yield ['user', 'add', 'no name']
  yield ['user', 'add', `${name}2`, '--attribute', 'level=high']
  yield ['user', 'invite', `guest-${email}`, '--username', `guest-${name}`, '--locale', 'de', '--print']
  yield ['user', 'invite', `guest-${email}`]
  yield ['user', 'invite', `guest-${email}`, '--username', name]
  yield ['user', 'invite', email]
  const list = join(data, `${name}.csv`)
  writeFileSync(list, `email\nlisted-${email}\n`)
  yield ['user', 'invite-list', list, '--print']
  yield ['user', 'invite-list', list]
  yield ['user', 'test-email', name]
  yield ['user', 'reset-link', name]
  yield ['user', 'set', name, '--name', 'Carol', '--website', '', '--attribute', 'level=']
  yield ['user', 'set', name, '--email', 'alice@example.test']
  yield ['user', 'set', name, '--attribute', 'unknown=1']
  yield ['user', 'passwd', name, '--disconnect']
  yield ['user', 'delete-link', name, '--yes', '--', 'unknown']
  yield ['user', 'tokens', name]
  yield ['user', 'revoke-token', name, 'unknown', '--yes']
  yield ['group', 'create', `${name}s`]
  yield ['group', 'rename', `${name}s`, `${name}-group`]
  yield ['group', 'set', `${name}-group`, '--description', 'All']
  yield ['group', 'add', `${name}-group`, name, `guest-${name}`]
  yield ['group', 'add', `${name}-group`, name]
  yield ['group', 'add', `${name}-group`, 'nobody']
  yield ['group', 'remove', `${name}-group`, name]
  yield ['group', 'remove', `${name}-group`, name]
  yield ['group', 'delete', `${name}-group`, '--yes']
  yield ['grant', 'revoke', '--user', name, '--yes']
  yield ['grant', 'revoke', '--user', name, '--client', 'unknown', '--yes']
  yield ['grant', 'revoke', '--yes', '--', 'unknown']
  yield ['session', 'end', '--yes', '--', 'unknown']
  yield ['session', 'end', '--yes', '--user', name]
  yield ['user', 'lock', name, '--yes']
  yield ['user', 'reset-link', name]
  yield ['user', 'unlock', name]
  yield ['user', 'revoke', name, '--yes']
  yield ['user', 'remove-second-factor', name, '--yes']
  yield ['user', 'remove-passkeys', name, '--yes']
  yield ['user', 'delete', `guest-${name}`, '--yes']
  yield ['user', 'delete', name, '--yes']
}

/** Without what differs between two users, or two moments. */
function plain(text: string, door: Door): string {
  return text
    .replaceAll(door, 'NAME')
    .replaceAll(/(?<=code=lyc_link_|user_|group_)[\w-]{22,43}/g, 'ID')
    .replaceAll(/(?<=_at": )\d+/g, '0')
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, 'A TIME')
}

/** The audit log without the grants of the client that calls the server. */
async function log() {
  const events = await store.audit({ since: 0, limit: 10_000 })
  return events.filter(({ clientId }) => clientId !== pipeline.id)
}

t.test('a list of sessions or grants reads no user', async (t) => {
  const asked: string[] = []
  const proxy = await startProxy(t, () => Number(new URL(server.issuer).port))
  proxy.behaviour.responses = ({ url = '' }) => {
    asked.push(url)
    return false
  }
  const flags = [...doors.server, '--api', `http://localhost:${proxy.port}`]
  const { stdout: sessions } = await runHere(['session', 'list', ...flags])
  t.match(sessions, / {2}alice .*\n.* {2}bob /s)
  const { stdout: grants } = await runHere(['grant', 'list', ...flags, '--json'])
  const owners = (JSON.parse(grants) as readonly { readonly username: string }[]).map((one) => one.username)
  t.strictSame([...new Set(owners)], ['alice', 'bob', '-'], 'by user; what acts for itself is last')
  t.strictSame(
    asked,
    ['sessions', 'grants'].map((list) => `/api/admin/v1/${list}?limit=200`),
  )
})

t.test('what is done to a user and a group is the same', async (t) => {
  const did = async (door: Door) => {
    const { length } = await log()
    const said: string[] = []
    for (const line of linesOf(door)) {
      const json = line.includes('--print') || line.includes('--') ? [] : ['--json']
      const { code, stdout, stderr } = await run(door, [...line, ...json], 'correct horse battery\n')
      const sorted = stdout.startsWith('{') ? stdout.split('\n').toSorted().join('\n') : stdout
      said.push(plain(`${line.join(' ')}\n${code} ${sorted}${stderr}`, door).replaceAll(',', ''))
    }
    const events = (await log()).slice(length)
    return { said, events: events.map(({ name, facts: { changed } }) => [name, changed]) }
  }
  const [one, other] = [await did('store'), await did('server')]
  t.strictSame(other, one)
  const codes = one.said.map((text) => text.split('\n')[1]?.[0]).join('')
  t.equal(codes, '01110011011001101010000010000111001001100', 'which of them are done')
})

t.test('one session and the grants of a user or to a client end on a server, too', async (t) => {
  const bobs = await idOf(['session', 'list', '--user', 'bob'], 'session')
  const one = ['session', 'end', '--yes', '--json', '--', bobs]
  t.strictSame(await run('server', one), { code: 0, stdout: '{\n  "ended": 1\n}\n', stderr: '' })
  t.match(await run('server', one), { code: 1, stderr: 'lychgate: no session has this id\n' })
  const line = ['grant', 'revoke', '--yes', '--', grant]
  t.match(await run('server', line), { code: 0, stdout: `revoked  ${grant}\n` })
  t.match(await run('server', line), { code: 1, stderr: 'lychgate: the grant had ended already\n' })
  const rest = ['grant', 'revoke', '--yes', '--client', app.id]
  t.match(await run('server', [...rest, '--user', 'alice']), { code: 0, stdout: 'revoked  1\n' })
  t.match(await run('server', rest), { code: 0, stdout: 'revoked  1\n' })
  t.match(await run('store', rest), { code: 0, stdout: 'revoked  0\n' })
  const [link] = JSON.parse((await run('server', ['user', 'links', 'bob', '--json'])).stdout)
  const removal = ['user', 'delete-link', 'bob', '--yes', '--', link.link_id]
  t.match(await run('server', removal), { code: 0, stdout: `deleted  ${link.link_id}\n` })
  const event = { name: 'link-deleted', facts: { purpose: 'password-reset', actor: pipeline.id } }
  t.match((await store.audit({ since: 0, name: 'link-deleted', limit: 9 })).at(-1), event)
})

t.test('the first administrator is made on a store alone', async (t) => {
  t.match(await run('server', ['user', 'add', 'ada', '--admin']), {
    code: 64,
    stderr: /--admin is for a store/,
  })
  // A client without a user must not make administrators.
  t.match(await run('server', ['group', 'add', 'admins', 'bob']), { code: 1, stderr: /must not change/ })
})

t.test('each of these commands takes --server, and is run here on both', async (t) => {
  const program = await commandLine()
  const own = program.commands.filter((one) => ['user', 'group', 'grant', 'session'].includes(one.name()))
  const hasServer = (one: Command) => one.options.some(({ long }) => long === '--server')
  for (const kind of own) {
    for (const one of kind.commands) {
      t.ok(hasServer(one), `${kind.name()} ${one.name()}`)
      t.ok(seen.has(`${kind.name()} ${one.name()}`), `${kind.name()} ${one.name()} is run`)
    }
  }
})
