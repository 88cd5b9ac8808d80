/** Commands about clients are the same on a store and on a running server: one operation is behind both. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { put, update } from '../../src/domain/decision.ts'
import { type InitialToken, initialTokenKind } from '../../src/domain/initial-token.ts'
import type { AuditEvent } from '../../src/domain/model.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { integrate, signedIn } from '../helpers/authorization.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { callApi, postAs, register } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { startStandInDocuments } from '../helpers/stand-in-documents.ts'

const data = newFolder(t)
const server = await startServer(t, {
  mode: 'dev',
  store: `sqlite:${data}/lychgate.db`,
  admin: { api: 'on' },
  fetch: { perOriginPerMinute: 500 },
})
const { store } = server.deps
const areas = ['users', 'clients'].flatMap((area) => [`admin:${area}:read`, `admin:${area}:write`])
const pipeline = await integrate(server, {
  grantTypes: ['client_credentials'],
  redirectUris: [],
  scope: [...areas, 'admin:audit:read'],
  name: 'Pipeline',
})
writeFileSync(join(data, 'secret'), `${pipeline.secret}\n`)
const site = await startStandInDocuments(t)

const doors = {
  store: ['--data', data],
  server: ['--server', server.issuer, '--client-id', pipeline.id, '--secret-file', join(data, 'secret')],
}

/** What is drawn or read from a clock, and differs between two runs. */
const drawn =
  /\b\d{10}\b|\b\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d UTC)?|(?:client|group)_[\w-]{22}|lyc_[\w-]+|(?<="token(?:_id)?": ?")[\w-]{12}|(?<=\b(?:token_id|Revoke the token) +)[\w-]{12}|(?<![\w-])[\w-]{43}(?![\w-])/g

/** What a run of lines prints and leaves in the audit log, without what is drawn. */
async function outcomesOn(
  door: keyof typeof doors,
  linesOf: (name: string) => AsyncGenerator<readonly string[], void, string>,
) {
  const name = `by-${door}`
  const before = (await store.audit({ since: 0, limit: 10_000 })).length
  const outputs: string[] = []
  const lines = linesOf(name)
  for (let next = await lines.next(); !next.done; ) {
    const { code, stdout, stderr } = await runHere([...next.value, ...doors[door]])
    const text = `${next.value.slice(0, 3).join(' ')} → ${code}\n${stdout}${stderr}`
    outputs.push(text.replaceAll(name, 'NAME').replaceAll(drawn, 'DRAWN'))
    next = await lines.next(stdout)
  }
  const events = (await store.audit({ since: 0, limit: 10_000 })).slice(before)
  // The server issued an access token for each command.
  return {
    outputs,
    events: events.filter((event) => event.name !== 'grant').map((event) => shown(event, name)),
  }
}

function shown({ name, facts }: AuditEvent, door: string) {
  const { actor: _, via: __, request: ___, ...rest } = facts
  return `${name} ${JSON.stringify(rest)}`.replaceAll(door, 'NAME').replaceAll(drawn, 'DRAWN')
}

const sameOnBoth: Readonly<
  Record<string, (name: string) => AsyncGenerator<readonly string[], void, string>>
> = {
  async *client(name) {
    const command = (...line: readonly string[]) => ['client', ...line]
    const web = ['--name', name, '--redirect-uri', `https://${name}.example/callback`]
    const made = yield command('add', ...web, '--json')
    const { client_id: id } = JSON.parse(made) as { client_id: string }
    yield command('add', ...web, '--auth', 'client_secret_post')
    yield command('add', ...web, '--scope', 'nope')
    yield command('add', ...web, '--name', '')
    yield command('list', '--origin', 'resource-server', '--json')
    yield command('show', id)
    yield command('show', 'client_nobody')
    yield command('set', id, '--pkce', 'optional', '--policy-uri', `https://${name}.example/privacy`)
    yield command(
      'set',
      id,
      '--pkce',
      '',
      '--consent',
      'skip',
      '--localized',
      'client_name#fr=Cours',
      '--json',
    )
    yield command('set', id, '--localized', 'client_name#fr=')
    yield command('set', id, '--name', '')
    yield command('set', id, '--auth', 'none')
    yield command('set', 'client_nobody', '--name', 'Other')
    yield command('rotate-secret', id)
    yield command('rotate-secret', id, '--yes', '--keep-old', '7d')
    yield command('rotate-secret', id, '--yes', '--json')
    yield command('lock', id)
    yield command('lock', id, '--yes', '--json')
    yield command('unlock', id)
    yield command('unlock', 'client_nobody')
    yield command('remove', id)
    yield command('remove', id, '--yes')
    yield command('remove', id, '--yes')
    const { id: own } = await register(server)
    yield command('set', own, '--name', 'Mine')
    yield command('remove-unused', '30d')
    const registered = await store.find('client', own)
    if (registered === undefined) throw new Error('it is not stored')
    const issuedAt = registered.issuedAt - 31 * 86_400
    await store.write(update('client', { ...registered, issuedAt, usedAt: issuedAt }))
    yield command('remove-unused', '30d')
    yield command('delete-unused', '30d', '--yes', '--json')
  },
  async *'client access'(name) {
    const command = (...line: readonly string[]) => ['client', ...line]
    const web = ['--name', name, '--redirect-uri', `https://${name}.example/callback`]
    const made = yield command('add', ...web, '--json')
    const { client_id: id } = JSON.parse(made) as { client_id: string }
    yield ['group', 'create', name]
    yield command('access', id)
    yield command('access', id, '--allow', name)
    yield command('access', id, '--allow', 'nobody')
    yield command('access', 'client_nobody', '--everyone')
    yield command('access', id, '--everyone', '--json')
    const file = join(data, 'claims.json')
    writeFileSync(file, JSON.stringify([{ claim: 'roles', roles: { [name]: 'Editor' } }]))
    yield command('claims', id, '--set', file)
    yield command('claims', id)
    writeFileSync(file, JSON.stringify([{ claim: 'sub', value: 'x' }]))
    yield command('claims', id, '--set', file)
  },
  async *'client key'(name) {
    const command = (...line: readonly string[]) => ['client', ...line]
    const [one, two] = ['one', 'two'].map((kid) => {
      const file = join(data, `${kid}.json`)
      writeFileSync(file, JSON.stringify(makeClientKey('ES256', kid).jwk))
      return file
    })
    const web = ['--name', name, '--redirect-uri', `https://${name}.example/callback`]
    const keyed = ['--auth', 'private_key_jwt', '--jwks', one ?? '']
    const made = yield command('add', ...web, ...keyed, '--json')
    const { client_id: id } = JSON.parse(made) as { client_id: string }
    yield command('key', 'list', id)
    yield command('key', 'add', id, two ?? '')
    yield command('key', 'add', id, two ?? '', '--json')
    yield command('key', 'remove', id, 'one')
    yield command('key', 'remove', id, 'one', '--yes')
    yield command('key', 'remove', id, 'two', '--yes')
    yield command('key', 'list', 'client_nobody')
    const entry = ['--issuer', `https://${name}.example`, '--subject', 'one']
    yield command('trust', 'add', id, ...entry, '--reusable', '--json')
    yield command('trust', 'add', id, ...entry)
    yield command('trust', 'list', id)
    const trusting = JSON.stringify([{ issuer: `https://${name}.example`, subject: 'one' }])
    yield command('add', ...web, '--auth', 'private_key_jwt', '--trusted-issuers', trusting)
    yield command('trust', 'remove', id, ...entry, '--yes')
    yield command('trust', 'remove', id, ...entry, '--yes')
    yield command('profile', 'fapi2', id)
    yield command('profile', 'fapi2', id)
    yield command('profile', 'none', id, '--json')
    yield command('profile', 'none', 'client_nobody')
  },
  async *'client document'(name) {
    const { client, document } = site.publish({}, `/${name}.json`)
    const command = (...line: readonly string[]) => ['client', 'document', ...line]
    yield command('show', client.id)
    yield command('refresh', client.id)
    yield command('show', client.id, '--json')
    document.body = { client_id: client.id, client_secret: 'x' }
    yield command('refresh', client.id)
    yield command('deny', client.id)
    yield command('deny', client.id, '--yes', '--json')
    yield command('allow', client.id, '--json')
    yield command('allow', client.id)
    yield command('deny', 'not a URL', '--yes')
  },
  async *'registration token'(name) {
    const command = (...line: readonly string[]) => ['registration', 'token', ...line]
    yield ['logout', 'deliveries', '--json']
    yield command('create')
    const made = yield command('create', '--name', name, '--uses', '3', '--pkce', 'optional', '--json')
    yield command('create', '--redirects', 'loopback', '--legacy-audience', 'true', '--json')
    const { token_id: id } = JSON.parse(made) as { token_id: string }
    yield command('revoke', id)
    yield command('revoke', id, '--yes', '--json')
    yield command('revoke', id, '--yes')
  },
}

await signedIn(server, await integrate(server), alice)

for (const [what, lines] of Object.entries(sameOnBoth))
  t.test(`lychgate ${what} does and says the same on a store and on a server`, async (t) => {
    const [one, other] = [await outcomesOn('store', lines), await outcomesOn('server', lines)]
    t.strictSame(other.outputs, one.outputs)
    t.strictSame(other.events, one.events)
    t.not(one.events.length, 0)
    t.match(one.outputs[0], /→ [01]\n./, 'it is a command')
  })

t.test('the audit log of a server is that of its store', async (t) => {
  for (const line of [
    ['--client', `${site.origin}/by-server.json`],
    ['--client', `${site.origin}/by-store.json`, '--limit', '2', '--json'],
    ['--event', 'client-unlocked', '--since', '1h'],
    ['--event', 'client-unlocked', '--until', '0s', '--csv'],
    ['--until', '1h'],
    ['--event', 'sign-in', '--user', 'alice', '--json'],
    ['--event', 'sign-in', '--user', `user_${'A'.repeat(22)}`, '--json'],
    ['--user', 'nobody'],
  ]) {
    const one = await runHere(['audit', ...line, ...doors.store])
    t.strictSame(await runHere(['audit', ...line, ...doors.server]), one, line.join(' '))
    t.equal(one.code, line.includes('nobody') ? 1 : 0)
  }
  const csv = await runHere(['audit', '--event', 'client-unlocked', '--csv', ...doors.store])
  t.match(
    csv.stdout,
    /^at,event,by,from,sub,client_id,facts\r\n"20\d\d-\d\d-\d\dT[^"]+Z","client-unlocked","operator",/,
  )
  t.equal((await runHere(['audit', '--until', '1h', ...doors.store])).stdout, '', 'none is that old')
  for (const line of [
    ['--csv', '--json'],
    ['--csv', '--follow'],
    ['--until', '1h', '--follow'],
  ])
    t.match(await runHere(['audit', ...line, ...doors.store]), { stderr: 'cannot be used with' })
})

t.test('a server explains what its store explains', async (t) => {
  const environment = {
    LYCHGATE_SECRET: 'a secret for tests that is long enough',
    LYCHGATE_ADMIN_API: 'on',
    LYCHGATE_ISSUER: server.issuer,
  }
  const rejected = await callApi(server, '/api/oauth/userinfo', 'none')
  const request = rejected.headers.get('x-request-id') ?? ''
  // It is stored after the response.
  while ((await store.find('rejection', request)) === undefined) await setTimeout(10)
  const machine = { grant_type: 'client_credentials', scope: 'admin:audit:read' }
  const { access_token: token } = (await (
    await postAs(server, pipeline, '/api/oauth/token', machine)
  ).json()) as { access_token: string }
  for (const line of [[], [request], [request.toUpperCase()], [token], [`${pipeline.secret}`], ['none']])
    for (const how of [[], ['--json']]) {
      const one = await runHere(['explain', ...line, ...how, ...doors.store], { environment })
      t.strictSame(await runHere(['explain', ...line, ...how, ...doors.server]), one, line.join(' '))
      t.match(one, { code: 0, stderr: /^$|as the server of/ })
    }
  const unknown = ['explain', '0f9d3c6e-7a0b-4c55-9f0e-5d9b6f8f4a52']
  const one = await runHere([...unknown, ...doors.store], { environment })
  t.match(one, { code: 1, stderr: /no rejected request with this id is stored/ })
  t.match(await runHere([...unknown, ...doors.server]), { code: 1, stderr: one.stderr.split('\n').at(-2) })
})

t.test('what a command sends is checked by the same schema on a store and on a server', async (t) => {
  for (const [line, reason] of [
    [['registration', 'token', 'create', '--uses', '1000000'], 'uses is missing or malformed'],
    [['explain', 'x'.repeat(8001)], 'token is missing or malformed'],
  ] as const)
    for (const door of Object.values(doors))
      t.match(await runHere([...line, ...door]), { code: 1, stderr: `lychgate: ${reason}\n` })
})

t.test('an initial access token that expired is in no list', async (t) => {
  const lines = async (door: readonly string[]) =>
    (await runHere(['registration', 'token', 'list', '--json', ...door])).stdout
  const made = await runHere(['registration', 'token', 'create', '--json', ...doors.store])
  const { token_id: id } = JSON.parse(made.stdout) as { token_id: string }
  t.match(await lines(doors.store), id)
  const [record] = await store.listFrom(initialTokenKind, { prefix: id, limit: 1 })
  await store.write(put(initialTokenKind, { ...(record as InitialToken), expiresAt: 1 }))
  for (const door of Object.values(doors)) t.notMatch(await lines(door), id)
})
