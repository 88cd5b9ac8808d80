/** Operators' commands while a server runs: it uses their changes from the next request on. */

import t from 'tap'
import { endSession, insert, put, update } from '../../src/domain/decision.ts'
import type { AuditEventName } from '../../src/domain/model.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { rowKeys, throttleKind } from '../../src/users/rules/throttle.ts'
import { newFolder } from '../helpers/command.ts'
import { runAll } from '../helpers/commands.ts'
import {
  authorizationUrl,
  type CodeOptions,
  callApi,
  obtainTokens,
  refresh,
  register,
  type TestClient,
} from '../helpers/flow.ts'
import { bob, startServer } from '../helpers/server.ts'
import { type Landing, type Page, UserAgent } from '../helpers/user-agent.ts'

const data = newFolder(t)
const server = await startServer(t, { store: `sqlite:${data}/lychgate.db` })
const { store } = server.deps
const at = ['--data', data]

/** Runs command lines on the store of the server. */
function operate(...lines: string[][]) {
  return runAll(lines.map((line) => [...line.slice(0, 2), ...at, ...line.slice(2)]))
}

function pageOf(landing: Landing): Page {
  if (landing.at !== 'page') throw new Error('sent away')
  return landing.page
}

async function told(name: AuditEventName) {
  return (await store.audit({ since: 0, name, limit: 100 })).filter(({ by }) => by === 'operator')
}

/** Tokens of a flow, a second after anything before: lists are in the order of time. */
function tokensOf(...[client, options]: [TestClient, CodeOptions?]) {
  server.advance(1)
  return obtainTokens(server, client, options)
}

async function works(token: string): Promise<boolean> {
  return (await callApi(server, '/api/courses', token)).status === 200
}

t.test('grants are listed, shown and revoked: one, those at a client, all of a user', async (t) => {
  const [one, other] = [await register(server), await register(server, { client_name: 'Other' })]
  const scope = 'openid courses:read'
  const [first, second, third, bobs] = [
    await tokensOf(one, { fields: { scope } }),
    await tokensOf(one, { fields: { scope } }),
    await tokensOf(other, { fields: { scope } }),
    await tokensOf(one, { fields: { scope }, user: bob }),
  ]
  const { refresh_token: rotated } = (await (await refresh(server, one, first.refresh_token)).json()) as {
    refresh_token: string
  }
  const [all, ofAlice, atOther] = await operate(
    ['grant', 'list', '--json'],
    ['grant', 'list', '--user', 'alice@example.test', '--json'],
    ['grant', 'list', '--client', other.id],
  )
  t.equal(JSON.parse(all?.stdout ?? '').length, 4)
  const grants = JSON.parse(ofAlice?.stdout ?? '')
  t.match(grants[0], { state: 'active', username: 'alice', client_id: one.id, scope, refreshed_at: Number })
  t.equal(grants.length, 3)
  t.match(
    atOther?.stdout,
    /^[\w-]{16} {2}active {2}alice {2}client_\S+ {2}Other {2}.* openid courses:read\n$/,
  )
  t.notMatch(all?.stdout, /secret/)

  const id = grants[0].grant
  const [show, ask, revoke, again, gone] = await operate(
    ['grant', 'show', '--', id],
    ['grant', 'revoke', '--', id],
    ['grant', 'revoke', '--yes', '--', id],
    ['grant', 'revoke', '--yes', '--', id],
    ['grant', 'show', '--json', '--', id],
  )
  t.match(show?.stdout, new RegExp(`^grant +${id}\nstate +active\n`))
  t.match(ask, { code: 1, stderr: 'lychgate: cannot ask for confirmation without a terminal; use --yes\n' })
  t.match(revoke, { code: 0, stdout: `revoked  ${id}\n` })
  t.match(again, { code: 1, stderr: 'lychgate: the grant had ended already\n' })
  t.match(JSON.parse(gone?.stdout ?? ''), { state: 'revoked', revoked_at: Number })
  t.strictSame(await Promise.all([first, second].map(({ access_token }) => works(access_token))), [
    false,
    true,
  ])
  t.match(await (await refresh(server, one, rotated)).json(), { error: 'invalid_grant' })

  const [both] = await operate(['grant', 'revoke', '--user', 'alice', '--client', one.id, '--yes', '--json'])
  t.strictSame(JSON.parse(both?.stdout ?? ''), { revoked: 1 })
  t.strictSame(await Promise.all([second, third, bobs].map(({ access_token }) => works(access_token))), [
    false,
    true,
    true,
  ])
  const [ofUser, ofClient] = await operate(
    ['grant', 'revoke', '--user', 'alice', '--yes'],
    ['grant', 'revoke', '--client', one.id, '--yes'],
  )
  t.strictSame([ofUser?.stdout, ofClient?.stdout], ['revoked  1\n', 'revoked  1\n'])
  t.strictSame(await Promise.all([third, bobs].map(({ access_token }) => works(access_token))), [
    false,
    false,
  ])
  t.equal((await told('revocation')).length, 4)
  const [, ended] = await operate(['grant', 'list'], ['grant', 'list', '--ended', '--json'])
  t.equal(JSON.parse(ended?.stdout ?? '').length, 4)
})

t.test('sessions are listed and ended, and tokens stay valid', async (t) => {
  const client = await register(server)
  const agents = [new UserAgent(server.issuer), new UserAgent(server.issuer)]
  const tokens = await tokensOf(client, {
    agent: agents[0] as UserAgent,
    fields: { scope: 'openid courses:read' },
  })
  await tokensOf(client, { agent: agents[1] as UserAgent })
  const { id } = (await store.find('userByLogin', 'alice')) ?? { id: '' }
  for (const { id: old } of (await store.listOf('session', id)).slice(0, -2))
    await store.write(endSession(old, 0))
  const asks = async (agent = agents[0] as UserAgent) =>
    pageOf(await agent.open(authorizationUrl(server, client, { prompt: undefined }))).html
  t.notMatch(await asks(), 'type="password"')
  const [list] = await operate(['session', 'list', '--user', 'alice', '--json'])
  const sessions = JSON.parse(list?.stdout ?? '')
  t.equal(sessions.length, 2)
  t.match(sessions[0], {
    sub: id,
    username: 'alice',
    from: /127\.0\.0\.0|0:0:0:0/,
    amr: ['pwd'],
    ends_at: Number,
  })
  const [one, gone, table] = await operate(
    ['session', 'end', '--yes', '--', sessions[0].session],
    ['session', 'end', '--yes', '--', sessions[0].session],
    ['session', 'list', '--user', 'alice'],
  )
  t.match(one, { code: 0, stdout: 'ended  1\n' })
  t.match(gone, { code: 1, stderr: 'lychgate: no session has this id\n' })
  t.match(table?.stdout, /^\S{43} {2}alice .* pwd {2}signed in .* ends [^\n]*\n$/)
  t.match(await asks(), 'type="password"')
  t.notMatch(await asks(agents[1]), 'type="password"')
  await operate(['session', 'end', '--user', 'alice', '--yes'])
  t.match(await asks(agents[1]), 'type="password"')
  t.ok(await works(tokens.access_token))
  t.equal((await told('session-ended')).length, 2)
})

t.test('a locked user loses every session and grant, and can sign in again when unlocked', async (t) => {
  const client = await register(server)
  const tokens = await tokensOf(client, { user: bob, fields: { scope: 'openid courses:read' } })
  t.ok(await works(tokens.access_token))
  const [ask, lock, link] = await operate(
    ['user', 'lock', 'bob'],
    ['user', 'lock', 'bob', '--yes', '--json'],
    ['user', 'reset-link', 'bob'],
  )
  t.match(ask, { code: 1, stderr: 'lychgate: cannot ask for confirmation without a terminal; use --yes\n' })
  t.match(JSON.parse(lock?.stdout ?? ''), { username: 'bob', locked_at: Number })
  t.match(link, { code: 1, stderr: 'lychgate: bob is locked; unlock first\n' })
  t.notOk(await works(tokens.access_token))
  const agent = new UserAgent(server.issuer)
  const login = pageOf(await agent.open(authorizationUrl(server, client)))
  t.match(pageOf(await agent.submit(login, bob)).html, 'This account is locked')
  const [, again] = await operate(['user', 'unlock', 'bob'], ['user', 'unlock', 'bob', '--json'])
  t.match(JSON.parse(again?.stdout ?? ''), { username: 'bob', was_locked: false, forgotten_failures: 0 })
  t.notOk(await works(tokens.access_token), 'what ended stays ended')
  t.match(pageOf(await agent.submit(login, bob)).url, '/consent')
  t.equal((await told('user-locked')).length, 1)
  t.match(await told('user-unlocked'), [{ facts: { was: 'locked' } }, { facts: { was: 'not locked' } }])
})

t.test('a user who is not locked can sign in again after too many failures', async (t) => {
  const client = await register(server)
  const agent = new UserAgent(server.issuer)
  const login = pageOf(await agent.open(authorizationUrl(server, client)))
  const { username, password } = bob
  for (let n = 0; n < 10; n += 1) await agent.submit(login, { username, password: 'wrong' })
  t.equal(pageOf(await agent.submit(login, { username, password })).status, 429)
  const [unlock] = await operate(['user', 'unlock', 'bob'])
  t.equal(unlock?.stdout, 'unlocked            bob was not locked\nfailures forgotten  10\n')
  t.match(pageOf(await agent.submit(login, { username, password })).url, '/consent')
})

t.test('a user is shown, changed, and signed out of everything', async (t) => {
  const client = await register(server)
  const tokens = await tokensOf(client, { fields: { scope: 'openid profile email courses:read' } })
  const alices = (await store.find('userByLogin', 'alice'))?.id ?? ''
  await store.write(put(throttleKind, { key: rowKeys(alices).others, failures: 7, expiresAt: 4_000_000_000 }))
  const [show, set, wrong, nothing, taken] = await operate(
    ['user', 'show', 'alice', '--json'],
    ['user', 'set', 'alice', '--name', 'Alice B.', '--website', '', '--email', 'a@new.example'],
    ['user', 'set', 'alice', '--zoneinfo', 'nowhere'],
    ['user', 'set', 'alice'],
    ['user', 'set', 'alice', '--email', 'bob@example.test'],
  )
  t.match(JSON.parse(show?.stdout ?? ''), {
    has_password: true,
    second_factor: false,
    passkeys: 0,
    failures_in_a_row: 7,
  })
  t.match(set, { code: 0, stdout: /^changed +alice\nwhat +name website email\n$/ })
  t.match(wrong, { code: 64, stderr: 'lychgate: --zoneinfo: must be a time zone, such as Europe/Berlin\n' })
  t.match(nothing, { code: 64, stderr: /^lychgate: nothing to change; name at least one flag/ })
  t.match(taken, { code: 1, stderr: 'lychgate: the user name or email address is taken\n' })
  const seen = (await (await callApi(server, '/api/oauth/userinfo', tokens.access_token)).json()) as object
  t.match(seen, { name: 'Alice B.', email: 'a@new.example', email_verified: false })
  t.notOk('website' in seen)
  t.ok(await works(tokens.access_token))
  const { id } = (await store.find('userByLogin', 'alice')) ?? { id: '' }
  const [verified, revoke, factor, passkeys] = await operate(
    ['user', 'set', id, '--email-verified', '--json'],
    ['user', 'revoke', id, '--yes', '--json'],
    ['user', 'remove-second-factor', 'alice', '--yes'],
    ['user', 'remove-passkeys', 'alice', '--yes'],
  )
  t.match(JSON.parse(verified?.stdout ?? '').claims, { email_verified: true })
  const revoked = JSON.parse(revoke?.stdout ?? '')
  t.match(revoked, { sub: id, revoked: true })
  t.ok(revoked.clients.includes(client.id))
  t.notOk(await works(tokens.access_token))
  t.strictSame(await store.listOf('session', id), [])
  t.match(factor, { code: 1, stderr: 'lychgate: alice has no second factor\n' })
  t.match(passkeys, { code: 1, stderr: 'lychgate: alice has no passkey\n' })
})

t.test('second factors and passkeys are removed, with an event each', async (t) => {
  const { id: userId } = (await store.find('userByLogin', 'alice')) ?? { id: '' }
  const times = { createdAt: 1, usedAt: 1 }
  const passkey = { userId, publicKey: 'AAAA', counter: 0, transports: [], backedUp: false, ...times }
  await store.write(
    put(secondFactorKind, { userId, sealedSecret: 'x', confirmedAt: 1, recoveryHashes: [], createdAt: 1 }),
    insert(passkeyKind, { ...passkey, id: 'first', name: 'Phone' }),
    insert(passkeyKind, { ...passkey, id: 'second', name: 'Key' }),
  )
  const session = { id: 'a session', userId, authenticatedAt: 1, methods: ['pop'], createdAt: 1 }
  const insertSession = insert('session', { ...session, idleExpiresAt: 9e9, expiresAt: 9e9 })
  await store.write(insertSession)
  const [show, factor] = await operate(
    ['user', 'show', 'alice'],
    ['user', 'remove-second-factor', 'alice', '--yes'],
  )
  t.strictSame(await store.listOf('session', userId), [], 'no session stays that began with a code')
  await store.write(insertSession)
  const [passkeys] = await operate(['user', 'remove-passkeys', 'alice', '--yes'])
  t.strictSame(await store.listOf('session', userId), [], 'nor one that began with a passkey')
  t.match(show?.stdout, /^second factor +one-time codes\npasskeys +2$/m)
  t.match([factor, passkeys], [{ code: 0 }, { code: 0, stdout: /2 passkeys/ }])
  t.equal(await store.find(secondFactorKind, userId), undefined)
  t.strictSame(await store.listOf(passkeyKind, userId), [])
  t.equal((await told('second-factor-removed')).length, 1)
  t.match(await told('passkeys-removed'), [{ facts: { passkeys: 2 } }])
})

t.test('a client is changed, and users see it at once', async (t) => {
  const redirect = 'https://app.example/callback'
  const [added] = await operate(['client', 'add', '--name', 'Before', '--redirect-uri', redirect, '--json'])
  const { client_id: id } = JSON.parse(added?.stdout ?? '')
  const about = ['--client-uri', 'https://app.example/', '--tos-uri', 'https://app.example/terms']
  const [set, show, foreign, wrong, kind] = await operate(
    [
      'client',
      'set',
      id,
      '--name',
      'After',
      ...about,
      '--contact',
      'ops@app.example',
      '--localized',
      'client_name#fr=Après',
    ],
    ['client', 'show', id, '--json'],
    ['client', 'set', id, '--client-uri', 'ftp://app.example'],
    ['client', 'set', id, '--localized', 'client_id#fr=x'],
    ['client', 'set', id, '--auth', 'none'],
  )
  t.match(set, { code: 0, stderr: '' })
  t.match(JSON.parse(show?.stdout ?? ''), {
    client_name: 'After',
    'client_name#fr': 'Après',
    client_uri: 'https://app.example/',
    tos_uri: 'https://app.example/terms',
    contacts: ['ops@app.example'],
    redirect_uris: [redirect],
    token_endpoint_auth_method: 'client_secret_basic',
  })
  t.match(foreign, { code: 1, stderr: /client_uri must be an absolute http or https URI/ })
  t.match(wrong, { code: 64, stderr: /^lychgate: --localized: must be MEMBER#TAG=TEXT/ })
  t.match(kind, { code: 1, stderr: /auth cannot change between none and a secret/ })
  const client = { id, method: 'client_secret_basic', redirectUri: redirect }
  const agent = new UserAgent(server.issuer)
  const login = pageOf(await agent.open(authorizationUrl(server, client)))
  t.match(login.html, 'After')
  const [narrowed] = await operate(['client', 'set', id, '--client-uri', '', '--scope', 'openid', '--json'])
  const after = JSON.parse(narrowed?.stdout ?? '')
  t.notOk('client_uri' in after)
  t.match(after, { scope: 'openid', tos_uri: 'https://app.example/terms' })
  t.match(await told('client-changed'), [{ clientId: id, facts: { changed: /^client_name / } }, {}])
  const self = await register(server)
  const [rejected, ask, rotated, vague, both] = await operate(
    ['client', 'set', self.id, '--name', 'Mine'],
    ['client', 'rotate-secret', id],
    ['client', 'rotate-secret', id, '--yes', '--json'],
    ['grant', 'revoke'],
    ['session', 'end', 'x', '--user', 'alice'],
  )
  t.match(rejected, { code: 1, stderr: /a client that registered itself changes itself/ })
  t.match(ask, { code: 1, stderr: 'lychgate: cannot ask for confirmation without a terminal; use --yes\n' })
  t.match(JSON.parse(rotated?.stdout ?? ''), { client_id: id, client_secret: /^lyc_secret_/ })
  t.match(vague, { code: 64, stderr: 'lychgate: name a grant, or say --user, --client or both\n' })
  t.match(both, { code: 64, stderr: 'lychgate: name a session, or say --user\n' })
})

t.test('unused clients are found by their age, and removed', async (t) => {
  const [idle, used] = [await register(server), await register(server)]
  const tokens = await tokensOf(used, { fields: { scope: 'openid courses:read' } })
  t.ok(await works(tokens.access_token))
  const month = 30 * 86_400
  for (const { id } of [idle, used]) {
    const client = await store.find('client', id)
    if (client === undefined) throw new Error('gone')
    const issuedAt = client.issuedAt - month
    const usedAt = id === used.id ? client.usedAt - month + 60 : issuedAt
    await store.write(update('client', { ...client, issuedAt, usedAt }))
  }
  const recent = await register(server)
  const [list, ask, removal, again] = await operate(
    ['client', 'list', '--origin', 'registered', '--unused', '29d'],
    ['client', 'remove-unused', '29d'],
    ['client', 'remove-unused', '29d', '--yes', '--json'],
    ['client', 'remove-unused', '29d'],
  )
  const lines = (list?.stdout ?? '').trimEnd().split('\n')
  t.equal(lines.length, 2)
  t.ok(lines.some((line) => line.startsWith(idle.id) && line.includes('never used')))
  t.ok(lines.some((line) => line.startsWith(used.id) && /used \d{4}-\d\d-\d\d/.test(line)))
  t.match(ask, { code: 1, stderr: 'lychgate: cannot ask for confirmation without a terminal; use --yes\n' })
  t.strictSame(new Set(JSON.parse(removal?.stdout ?? '').removed), new Set([idle.id, used.id]))
  t.match(again, { code: 0, stdout: 'removed 0\n' })
  t.notOk(await works(tokens.access_token))
  t.ok(await store.find('client', recent.id))
})
