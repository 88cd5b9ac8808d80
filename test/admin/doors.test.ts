/**
 * Operators have six doors: the admin API, the admin pages, commands and files, on a store and on a running server.
 * Whatever is done through one of them leaves the same events in the audit log.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { insert, put } from '../../src/domain/decision.ts'
import { createGroup } from '../../src/domain/group.ts'
import { initialTokenKind, mintInitialToken, nameOfToken } from '../../src/domain/initial-token.ts'
import type { AuditEvent } from '../../src/domain/model.ts'
import { omitUndefined } from '../../src/domain/omit-undefined.ts'
import { commandLine } from '../../src/main.ts'
import { systemRandom } from '../../src/system/system.ts'
import { addToGroup, changeGroups } from '../../src/users/groups.ts'
import { insertLink, linkKinds } from '../../src/users/rules/one-time-link.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import {
  idOfPersonalToken,
  mintPersonalToken,
  personalTokenKind,
} from '../../src/users/rules/personal-token.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { createUser } from '../../src/users/rules/user.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { integrate, pageOf } from '../helpers/authorization.ts'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { postAs } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { startStandInDocuments } from '../helpers/stand-in-documents.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { json } from '../helpers/wire.ts'
import * as sample from '../storage/samples.ts'

const folder = newFolder(t)
const level = { name: 'level', type: 'number', visible: 'administrator', editable: 'administrator' } as const
const server = await startServer(t, {
  mode: 'dev',
  nodes: 1,
  store: `sqlite:${folder}/lychgate.db`,
  admin: { api: 'on', secondFactor: 'off' },
  accounts: { attributes: [level] },
  fetch: { perOriginPerMinute: 500 },
})
const { store, clock } = server.deps
const config = join(folder, 'lychgate.yaml')
writeFileSync(
  config,
  `data: ${folder}\nsecret: a secret for tests that is long enough\naccounts:\n  attributes: [${JSON.stringify(level)}]\n`,
)
const operator = () => ({ by: 'operator', at: clock() }) as const
const userId = (await store.find('userByLogin', alice.username))?.id ?? ''
const group = (name: string) =>
  changeGroups(store, (groups) => createGroup(groups, { name }, systemRandom(16), operator()))
await addToGroup(store, await group('admins'), userId, operator())

const machine = await integrate(server, {
  grantTypes: ['client_credentials'],
  redirectUris: [],
  scope: ['users', 'clients', 'upstreams', 'keys'].flatMap((kind) => [
    `admin:${kind}:read`,
    `admin:${kind}:write`,
  ]),
})
const form = { grant_type: 'client_credentials' }
const token = String((await json(await postAs(server, machine, '/api/oauth/token', form)))['access_token'])
const site = await startStandInDocuments(t)
const agent = new UserAgent(server.issuer)
await agent.submit(pageOf(await agent.open(`${server.issuer}/admin`)), alice)

const path = (...parts: readonly (string | undefined)[]) =>
  parts.map((part = '') => `/${encodeURIComponent(part)}`).join('')

async function call(method: string, at: string, body?: object) {
  const headers = {
    authorization: `Bearer ${token}`,
    ...(body && { 'content-type': 'application/json' }),
    'if-match': '*',
  }
  const request = { method, headers, ...(body && { body: JSON.stringify(body) }) }
  const response = await fetch(`${server.issuer}/api/admin/v1${at}`, request)
  if (!response.ok) throw new Error(`${method} ${at}: ${response.status} ${await response.text()}`)
}

/** Sends the form of a page, with its hidden fields. */
async function submit(at: string, fields: Readonly<Record<string, string>> = {}) {
  const url = `${server.issuer}/admin${at}`
  const { forms } = pageOf(await agent.open(url))
  const hidden = forms
    .flatMap((one) => one.fields)
    .filter(({ name, type }) => type === 'hidden' && ['csrf', 'version', 'kind', 'once'].includes(name))
    .map(({ name, value }) => [name, value])
  const body = new URLSearchParams({ ...Object.fromEntries(hidden), ...fields })
  const response = await agent.send(url, { method: 'POST', body })
  if (response.status >= 400) throw new Error(`${at}: ${response.status} ${await response.text()}`)
}

const onStore = ['--config', config]
const secretFile = join(folder, 'pipeline.secret')
writeFileSync(secretFile, `${machine.secret}\n`)
const onServer = ['--server', server.issuer, '--client-id', machine.id, '--secret-file', secretFile]
/** Where commands work. */
let where: readonly string[] = onStore

/** The commands that work on a running server, too. */
const remote = new Set(
  (await commandLine()).commands.flatMap((kind) =>
    [kind, ...kind.commands].flatMap((one) =>
      one.options.some(({ long }) => long === '--server')
        ? [one === kind ? one.name() : `${kind.name()} ${one.name()}`]
        : [],
    ),
  ),
)
class OnlyOnStore extends Error {}

async function command(line: readonly string[], input = '') {
  const isLocal =
    !(remote.has(line.slice(0, 2).join(' ')) || remote.has(line[0] ?? '')) || line.includes('--force')
  if (where === onServer && isLocal) throw new OnlyOnStore()
  const end = line.indexOf('--')
  const [flags, rest] = end < 0 ? [line, []] : [line.slice(0, end), line.slice(end)]
  const { code, stderr } = await runHere([...flags, ...where, ...rest], { input })
  if (code !== 0) throw new Error(`${line.join(' ')}: ${stderr}`)
}

/** The same command on the running server; nothing if it has no such flag. */
async function commandOnServer(perform: () => Promise<void>): Promise<void> {
  where = onServer
  try {
    await perform()
  } finally {
    where = onStore
  }
}

async function apply(text: string) {
  const file = join(folder, 'applied.yaml')
  writeFileSync(file, text)
  await command(['apply', '-f', file, '--yes'])
}

/** What an act is done to: ids and names, by what they are. */
type Subject = Readonly<Record<string, string>>

let made = 0
const fresh = (what: string) => `${what}${++made}`

async function aUser(more: { readonly locked?: true; readonly signsIn?: true } = {}): Promise<Subject> {
  const [username, now] = [fresh('user'), clock()]
  const email = `${username}@example.test`
  const passwordHash = alice.password
  const user = createUser({ username, email, emailVerified: true, passwordHash }, systemRandom(16), now)
  const session = { ...sample.session, id: systemRandom(32).toString('base64url'), userId: user.id }
  const lives = { idleExpiresAt: now + 1000, expiresAt: now + 1000 }
  const passkey = { ...sample.passkey, id: systemRandom(16).toString('base64url'), userId: user.id }
  await store.write(insert('user', { ...user, ...(more.locked && { lockedAt: now }) }))
  if (more.signsIn)
    await store.write(
      insert('session', { ...session, ...lives }),
      put(secondFactorKind, { ...sample.secondFactor, userId: user.id, confirmedAt: now }),
      insert(passkeyKind, passkey),
    )
  return { user: user.id, username, email, session: session.id }
}

async function aMember(): Promise<Subject> {
  const [user, { id, name }] = [await aUser(), await group(fresh('group'))]
  await addToGroup(store, { ...sample, id, name, createdAt: clock() }, user['user'] ?? '', operator())
  return { ...user, group: id, name }
}

async function aGroup(): Promise<Subject> {
  const { id, name } = await group(fresh('group'))
  return { group: id, name }
}

async function aClient(locked = false): Promise<Subject> {
  const name = fresh('App')
  const client = await integrate(
    server,
    { name, redirectUris: ['https://app.example.test/cb'] },
    locked ? { lockedAt: clock() } : {},
  )
  return { client: client.id, name }
}

async function aGrant(): Promise<Subject> {
  const [user, client, now] = [await aUser(), await aClient(), clock()]
  const id = systemRandom(12).toString('base64url')
  const refreshes = { rotatedAt: now, refreshExpiresAt: now + 500, expiresAt: now + 500 }
  const grant = { ...sample.grant, id, approvedAt: now, ...refreshes, absoluteExpiresAt: now + 900 }
  const of = { userId: user['user'] ?? '', clientId: client['client'] ?? '' }
  await store.write({ op: 'insertGrant', grant: { ...grant, ...of } })
  return { ...user, ...client, grant: id }
}

async function aLink(): Promise<Subject> {
  const [user, now] = [await aUser(), clock()]
  const id = systemRandom(32).toString('base64url')
  const link = { ...sample.fullLink, id, userId: user['user'] ?? '', createdAt: now, expiresAt: now + 900 }
  await store.write(insertLink(link))
  return { ...user, link: id }
}

async function aToken(): Promise<Subject> {
  const wanted = { redirects: 'https', pkce: 'required', uses: 1 } as const
  const { record } = mintInitialToken(wanted, systemRandom(32), 900, clock())
  await store.write(insert(initialTokenKind, record))
  return { token: nameOfToken(record) }
}

const words = { group: 'Bills', access: 'read', description: 'All bills' }

async function aScope(): Promise<Subject> {
  const scope = `${fresh('scope')}:read`
  await call('POST', '/scopes', { name: scope, ...words })
  return { scope }
}

async function aResource(): Promise<Subject> {
  const resource = `https://${fresh('api')}.example`
  await call('POST', '/resources', { identifier: resource, name: 'Bills', scopes: ['courses:read'] })
  return { resource }
}

async function aPersonalToken(): Promise<Subject> {
  const user = await aUser()
  const described = { name: 'CI', scope: ['admin:users:read'], seconds: 900 }
  const { record } = mintPersonalToken(described, user['user'] ?? '', systemRandom(32), clock())
  await store.write(insert(personalTokenKind, record))
  return { ...user, token: idOfPersonalToken(record) }
}

/** A document that is stored, and has changed since. */
async function aDocument(): Promise<Subject> {
  const { client, document } = site.publish({ client_name: 'Before' })
  await call('POST', `${path('client-documents', client.id)}/refresh`)
  document.body = { ...Object(document.body), client_name: 'After', client_uri: site.origin }
  return { client: client.id }
}

const withIssuer = (upstream: string): Subject => ({ upstream, issuer: anUpstream(upstream).issuer })

/** An upstream without a secret. */
const anUpstream = (id = '') => ({
  name: 'Work',
  issuer: `https://${id}.example.com`,
  client_id: 'lychgate',
  client_authentication: 'private_key_jwt',
})

async function aStoredUpstream(): Promise<Subject> {
  const upstream = fresh('upstream')
  await call('POST', '/upstreams', { upstream_id: upstream, ...anUpstream(upstream) })
  return withIssuer(upstream)
}

/** What the form of an upstream sends. */
const formOf = (id = '') => ({ ...anUpstream(id), enabled: 'on' })

const upstreamEntry = (id = '', more = '') =>
  entry(
    'upstreams',
    `upstream_id: ${id}, name: Work, issuer: 'https://${id}.example.com', client_id: lychgate, client_authentication: private_key_jwt${more}`,
  )

/** Each door has keys of its own: what is left of a ring depends on what was done to it. */
const algorithms = ['ES256', 'RS256', 'EdDSA']
let drawn = 0
const nextAlgorithm = () => algorithms[drawn++ % algorithms.length] ?? ''
const staff = await aGroup()
const callback = 'https://app.example.test/cb'
const after = { client_name: 'After', client_uri: 'https://app.example.test' }
/** A client as a file has it. */
const whole = ({ client, name }: Subject, locked: string) =>
  entry(
    'clients',
    `client_id: ${client}, client_name: ${name}, locked: ${locked}, redirect_uris: ['${callback}'], token_endpoint_auth_method: client_secret_basic, consent: remember`,
  )
const entry = (kind: string, members: string) => `${kind}:\n  - { ${members} }\n`

/** How the same is done through each door. */
interface Act {
  readonly of: () => Promise<Subject>
  readonly api: (subject: Subject) => Promise<void>
  readonly page?: (subject: Subject) => Promise<void>
  readonly command?: (subject: Subject) => Promise<void>
  readonly files?: (subject: Subject) => Promise<void>
}

const onUser = (act: string, page: string, line: string, of = () => aUser({ signsIn: true })): Act => ({
  of,
  api: ({ user }) => call('POST', `${path('users', user)}/${act}`),
  page: ({ user, username = '' }) => submit(`${path('users', user)}/${page}`, { confirm: username }),
  command: ({ username = '' }) => command([...line.split(' '), username]),
})

/** Operation of the API → the act. */
const acts: Readonly<Record<string, Act>> = {
  inviteUser: {
    of: async () => ({ email: `${fresh('user')}@example.test` }),
    api: ({ email }) => call('POST', '/users', { email }),
    page: ({ email = '' }) => submit('/users/invite', { email, name: 'Carol' }),
    command: ({ email = '' }) => command(['user', 'invite', email]),
    files: ({ email = '' }) => apply(entry('users', `username: ${email}, email: ${email}`)),
  },
  inviteUsers: {
    of: async () => ({ email: `${fresh('user')}@example.test` }),
    api: ({ email }) => call('POST', '/invitations', { list: email }),
    page: ({ email = '' }) => submit('/users/invite-list', { list: email }),
    command: ({ email = '' }) => {
      writeFileSync(join(folder, 'list.csv'), `email\n${email}\n`)
      return command(['user', 'invite-list', join(folder, 'list.csv')])
    },
  },
  'inviteUser with a password': {
    of: async () => ({ email: `${fresh('user')}@example.test` }),
    api: ({ email }) => call('POST', '/users', { email, password: 'correct horse battery' }),
    command: ({ email = '' }) => command(['user', 'add', email, '--email', email], 'correct horse battery\n'),
  },
  changeUser: {
    of: () => aUser(),
    // What stays as it is is no change.
    api: ({ user, email }) =>
      call('PATCH', path('users', user), {
        email,
        email_verified: false,
        claims: { name: 'Carol', website: '' },
        attributes: { level: 3 },
      }),
    command: ({ username = '', email = '' }) =>
      command([
        ...['user', 'set', username, '--email', email, '--no-email-verified'],
        ...['--name', 'Carol', '--website', '', '--attribute', 'level=3'],
      ]),
    files: ({ username, email }) =>
      apply(
        entry(
          'users',
          `username: ${username}, email: ${email}, email_verified: false, claims: { name: Carol, website: '' }, attributes: { level: 3 }`,
        ),
      ),
  },
  'changeUser, the user name': {
    of: () => aUser(),
    api: ({ user, username }) => call('PATCH', path('users', user), { username: `${username}-2` }),
    page: ({ user, username }) => submit(`${path('users', user)}/edit`, { username: `${username}-2` }),
    command: ({ username = '' }) => command(['user', 'set', username, '--username', `${username}-2`]),
  },
  'changeUser, the attributes': {
    of: () => aUser(),
    api: ({ user }) => call('PATCH', path('users', user), { attributes: { level: 3 } }),
    page: ({ user }) => submit(`${path('users', user)}/edit`, { 'attribute.level': '3' }),
    command: ({ username = '' }) => command(['user', 'set', username, '--attribute', 'level=3']),
    files: ({ username }) => apply(entry('users', `username: ${username}, attributes: { level: 3 }`)),
  },
  deleteUser: {
    of: () => aUser(),
    api: ({ user }) => call('DELETE', path('users', user)),
    page: ({ user, username = '' }) => submit(`${path('users', user)}/remove`, { confirm: username }),
    command: ({ username = '' }) => command(['user', 'delete', username, '--yes']),
  },
  lockUser: {
    ...onUser('lock', 'lock', 'user lock --yes'),
    files: ({ username }) => apply(entry('users', `username: ${username}, locked: true`)),
  },
  unlockUser: {
    ...onUser('unlock', 'unlock', 'user unlock', () => aUser({ locked: true })),
    files: ({ username }) => apply(entry('users', `username: ${username}, locked: false`)),
  },
  'unlockUser who is not locked': onUser('unlock', 'unlock', 'user unlock'),
  setPassword: {
    of: () => aUser(),
    api: ({ user }) => call('POST', `${path('users', user)}/password`, { password: 'correct horse battery' }),
    page: ({ user }) =>
      submit(`${path('users', user)}/password`, {
        password: 'correct horse battery',
        repeated: 'correct horse battery',
      }),
    command: ({ username = '' }) => command(['user', 'passwd', username], 'correct horse battery\n'),
  },
  endSession: {
    of: () => aUser({ signsIn: true }),
    api: ({ user, session }) => call('DELETE', `${path('users', user)}${path('sessions', session)}`),
    command: ({ session = '' }) => command(['session', 'end', '--yes', '--', session]),
  },
  signOutUser: onUser('sign-out', 'sign-out', 'session end --yes --user'),
  'signOutUser without sessions': onUser('sign-out', 'sign-out', 'session end --yes --user', () => aUser()),
  removeCodes: onUser('remove-codes', 'remove-codes', 'user remove-second-factor --yes'),
  removePasskeys: onUser('remove-passkeys', 'remove-passkeys', 'user remove-passkeys --yes'),
  revokeUser: onUser('revoke', 'revoke', 'user revoke --yes'),
  'revokeUser who granted something': onUser('revoke', 'revoke', 'user revoke --yes', aGrant),
  revokeGrants: {
    of: aGrant,
    api: ({ user, client }) => call('DELETE', `${path('users', user)}${path('grants', client)}`),
    page: ({ user, client = '' }) => submit(path('users', user), { client }),
    command: ({ username = '', client = '' }) =>
      command(['grant', 'revoke', '--yes', '--user', username, '--client', client]),
  },
  revokeGrant: {
    of: aGrant,
    api: ({ grant }) => call('DELETE', path('grants', grant)),
    command: ({ grant = '' }) => command(['grant', 'revoke', '--yes', '--', grant]),
  },
  revokeClient: {
    of: aGrant,
    api: ({ client }) => call('POST', `${path('clients', client)}/revoke`),
    command: ({ client = '' }) => command(['grant', 'revoke', '--yes', '--client', client]),
  },
  createLink: {
    of: () => aUser(),
    api: ({ user }) => call('POST', `${path('users', user)}/links`, { purpose: 'password-reset' }),
    page: ({ user }) => submit(`${path('users', user)}/link`),
    command: ({ username = '' }) => command(['user', 'reset-link', username]),
  },
  deleteLink: {
    of: aLink,
    api: ({ user, link }) => call('DELETE', `${path('users', user)}${path('links', link)}`),
    command: ({ username = '', link = '' }) =>
      command(['user', 'delete-link', '--yes', username, '--', link]),
  },
  revokePersonalToken: {
    of: aPersonalToken,
    api: ({ user, token }) => call('DELETE', `${path('users', user)}${path('personal-tokens', token)}`),
    page: ({ user, token = '' }) => submit(`${path('users', user)}/tokens`, { revoke: token }),
    command: ({ username = '', token = '' }) => command(['user', 'revoke-token', '--yes', username, token]),
  },
  addScope: {
    of: async () => ({ scope: `${fresh('scope')}:read` }),
    api: ({ scope }) => call('POST', '/scopes', { name: scope, ...words }),
    page: ({ scope = '' }) => submit('/apis/scopes/add', { name: scope, ...words }),
    command: ({ scope = '' }) =>
      command(['scope', 'add', scope, '--group', 'Bills', '--access', 'read', '--description', 'All bills']),
  },
  changeScope: {
    of: aScope,
    api: ({ scope }) => call('PATCH', path('scopes', scope), { description: 'Some' }),
    page: ({ scope }) => submit(path('apis', 'scopes', scope), { ...words, description: 'Some' }),
    command: ({ scope = '' }) => command(['scope', 'set', scope, '--description', 'Some']),
  },
  deleteScope: {
    of: aScope,
    api: ({ scope }) => call('DELETE', path('scopes', scope)),
    page: ({ scope = '' }) => submit(path('apis', 'scopes', scope, 'delete'), { confirm: scope }),
    command: ({ scope = '' }) => command(['scope', 'delete', scope, '--yes']),
  },
  addResource: {
    of: async () => ({ resource: `https://${fresh('api')}.example` }),
    api: ({ resource }) =>
      call('POST', '/resources', { identifier: resource, name: 'Bills', scopes: ['courses:read'] }),
    page: ({ resource = '' }) =>
      submit('/apis/resources/add', { identifier: resource, name: 'Bills', scope: 'courses:read' }),
    command: ({ resource = '' }) =>
      command(['resource', 'add', resource, '--name', 'Bills', '--scope', 'courses:read']),
  },
  changeResource: {
    of: aResource,
    api: ({ resource }) => call('PATCH', path('resources', resource), { name: 'Some' }),
    page: ({ resource }) =>
      submit(path('apis', 'resources', resource), { name: 'Some', scope: 'courses:read', format: 'opaque' }),
    command: ({ resource = '' }) => command(['resource', 'set', resource, '--name', 'Some']),
  },
  deleteResource: {
    of: aResource,
    api: ({ resource }) => call('DELETE', path('resources', resource)),
    page: ({ resource = '' }) => submit(path('apis', 'resources', resource, 'delete'), { confirm: resource }),
    command: ({ resource = '' }) => command(['resource', 'delete', resource, '--yes']),
  },
  createGroup: {
    of: async () => ({ name: fresh('group') }),
    api: ({ name }) => call('POST', '/groups', { name }),
    page: ({ name = '' }) => submit('/groups', { name, description: '' }),
    command: ({ name = '' }) => command(['group', 'create', name]),
    files: ({ name }) => apply(entry('groups', `name: ${name}`)),
  },
  changeGroup: {
    of: aGroup,
    // The name stays.
    api: ({ group, name }) => call('PATCH', path('groups', group), { name, description: 'All' }),
    page: ({ group, name = '' }) => submit(path('groups', group), { name, description: 'All', parent: '' }),
    command: ({ name = '' }) => command(['group', 'set', name, '--description', 'All']),
    files: ({ group, name }) => apply(entry('groups', `id: ${group}, name: ${name}, description: All`)),
  },
  'changeGroup, the administrators': {
    of: aGroup,
    api: ({ group }) => call('PATCH', path('groups', group), { administrators_id: staff['group'] }),
    command: ({ name = '' }) => command(['group', 'set', name, '--administrators', staff['name'] ?? '']),
    files: ({ name }) => apply(entry('groups', `name: ${name}, administrators: ${staff['name']}`)),
  },
  'changeGroup, the name': {
    of: async () => ({ ...(await aGroup()), next: fresh('group') }),
    api: ({ group, next }) => call('PATCH', path('groups', group), { name: next }),
    page: ({ group, next = '' }) =>
      submit(path('groups', group), { name: next, description: '', parent: '' }),
    command: ({ name = '', next = '' }) => command(['group', 'rename', name, next]),
    files: ({ group, next }) => apply(entry('groups', `id: ${group}, name: ${next}`)),
  },
  deleteGroup: {
    of: aGroup,
    api: ({ group }) => call('DELETE', path('groups', group)),
    page: ({ group, name = '' }) => submit(`${path('groups', group)}/delete`, { confirm: name }),
    command: ({ name = '' }) => command(['group', 'delete', name, '--yes']),
  },
  addMember: {
    of: async () => ({ ...(await aUser()), ...(await aGroup()) }),
    api: ({ user, group }) => call('POST', `${path('groups', group)}/members`, { sub: user }),
    page: ({ username = '', group }) => submit(path('groups', group), { join: username }),
    command: ({ username = '', name = '' }) => command(['group', 'add', name, username]),
    files: ({ username, name }) => apply(entry('users', `username: ${username}, groups: [${name}]`)),
  },
  removeMember: {
    of: aMember,
    api: ({ user, group }) => call('DELETE', `${path('groups', group)}${path('members', user)}`),
    page: ({ user = '', group }) => submit(path('groups', group), { leave: user }),
    command: ({ username = '', name = '' }) => command(['group', 'remove', name, username]),
    files: ({ username }) => apply(entry('users', `username: ${username}, groups: []`)),
  },
  addClient: {
    of: async () => ({ name: fresh('App') }),
    api: ({ name }) => call('POST', '/clients', { client_name: name, redirect_uris: [callback] }),
    page: ({ name = '' }) => submit('/clients/add?kind=web', { name, redirect_uris: callback }),
    command: ({ name = '' }) => command(['client', 'add', '--name', name, '--redirect-uri', callback]),
    files: ({ name }) =>
      apply(
        entry(
          'clients',
          `client_id: client_${systemRandom(16).toString('hex')}, client_name: ${name}, redirect_uris: ['${callback}']`,
        ),
      ),
  },
  changeClient: {
    of: () => aClient(),
    api: ({ client }) => call('PATCH', path('clients', client), { ...after, scope: '' }),
    page: ({ client }) =>
      submit(`${path('clients', client)}/edit`, {
        ...{ name: 'After', redirect_uris: callback, client_uri: after.client_uri },
        ...{ post_logout_redirect_uris: '', consent: '', policy_uri: '', tos_uri: '' },
      }),
    command: ({ client = '' }) =>
      command(['client', 'set', client, '--name', 'After', '--client-uri', after.client_uri]),
    files: ({ client }) =>
      apply(
        entry(
          'clients',
          `client_id: ${client}, client_name: After, client_uri: '${after.client_uri}', redirect_uris: ['${callback}'], token_endpoint_auth_method: client_secret_basic, consent: remember`,
        ),
      ),
  },
  replaceClient: {
    of: () => aClient(),
    api: ({ client }) =>
      call('PUT', path('clients', client), {
        ...after,
        redirect_uris: [callback],
        token_endpoint_auth_method: 'client_secret_basic',
        consent: 'remember',
      }),
  },
  deleteClient: {
    of: () => aClient(),
    api: ({ client }) => call('DELETE', path('clients', client)),
    page: ({ client, name = '' }) => submit(`${path('clients', client)}/remove`, { confirm: name }),
    command: ({ client = '' }) => command(['client', 'delete', client, '--yes']),
  },
  rotateClientSecret: {
    of: () => aClient(),
    api: ({ client }) => call('POST', `${path('clients', client)}/secret`, { keep_old_seconds: 86_400 }),
    page: ({ client }) => submit(`${path('clients', client)}/secret`),
    command: ({ client = '' }) => command(['client', 'rotate-secret', client, '--keep-old', '24h', '--yes']),
  },
  'rotateClientSecret that leaked': {
    of: () => aClient(),
    api: ({ client }) => call('POST', `${path('clients', client)}/secret`, { keep_old_seconds: 0 }),
    page: ({ client, name = '' }) => submit(`${path('clients', client)}/leaked-secret`, { confirm: name }),
    command: ({ client = '' }) => command(['client', 'rotate-secret', client, '--yes']),
  },
  lockClient: {
    of: () => aClient(),
    api: ({ client }) => call('POST', `${path('clients', client)}/lock`),
    page: ({ client, name = '' }) => submit(`${path('clients', client)}/lock`, { confirm: name }),
    command: ({ client = '' }) => command(['client', 'lock', client, '--yes']),
    files: (subject) => apply(whole(subject, 'true')),
  },
  unlockClient: {
    of: () => aClient(true),
    api: ({ client }) => call('POST', `${path('clients', client)}/unlock`),
    page: ({ client }) => submit(`${path('clients', client)}/unlock`),
    command: ({ client = '' }) => command(['client', 'unlock', client]),
    files: (subject) => apply(whole(subject, 'false')),
  },
  profileClient: {
    of: async () => {
      const description = { jwks: { keys: [makeClientKey('ES256').jwk] } }
      const { id } = await integrate(server, { authenticationMethod: 'private_key_jwt', description })
      return { client: id }
    },
    api: ({ client }) => call('POST', `${path('clients', client)}/profile`, { profile: 'fapi2' }),
    command: ({ client = '' }) => command(['client', 'profile', 'fapi2', client]),
  },
  refreshClientDocument: {
    of: aDocument,
    api: ({ client }) => call('POST', `${path('client-documents', client)}/refresh`),
    command: ({ client = '' }) => command(['client', 'document', 'refresh', client]),
  },
  'refreshClientDocument that is new': {
    of: async () => ({ client: site.publish().client.id }),
    api: ({ client }) => call('POST', `${path('client-documents', client)}/refresh`),
    command: ({ client = '' }) => command(['client', 'document', 'refresh', client]),
  },
  denyClientDocument: {
    of: aDocument,
    api: ({ client }) => call('POST', `${path('client-documents', client)}/deny`),
    command: ({ client = '' }) => command(['client', 'document', 'deny', client, '--yes']),
  },
  allowClientDocument: {
    of: async () => {
      const document = await aDocument()
      await call('POST', `${path('client-documents', document['client'])}/deny`)
      return document
    },
    api: ({ client }) => call('POST', `${path('client-documents', client)}/allow`),
    command: ({ client = '' }) => command(['client', 'document', 'allow', client]),
  },
  createRegistrationToken: {
    of: async () => ({}),
    api: () => call('POST', '/registration-tokens', { name: 'Suite', uses: 3 }),
    command: () => command(['registration', 'token', 'create', '--name', 'Suite', '--uses', '3']),
  },
  revokeRegistrationToken: {
    of: aToken,
    api: ({ token: id }) => call('DELETE', path('registration-tokens', id)),
    command: ({ token: id = '' }) => command(['registration', 'token', 'revoke', '--yes', '--', id]),
  },
  createUpstream: {
    of: async () => withIssuer(fresh('upstream')),
    api: ({ upstream }) => call('POST', '/upstreams', { upstream_id: upstream, ...anUpstream(upstream) }),
    command: ({ upstream = '' }) =>
      command([
        ...['upstream', 'add', upstream, '--name', 'Work', '--issuer', `https://${upstream}.example.com`],
        ...['--client', 'lychgate', '--client-authentication', 'private_key_jwt'],
      ]),
    page: ({ upstream = '' }) => submit('/add-upstream', { upstream_id: upstream, ...formOf(upstream) }),
    files: ({ upstream }) => apply(upstreamEntry(upstream)),
  },
  changeUpstream: {
    of: aStoredUpstream,
    api: ({ upstream }) => call('PATCH', path('upstreams', upstream), { enabled: false }),
    command: ({ upstream = '' }) => command(['upstream', 'disable', upstream, '--yes']),
    page: ({ upstream }) => {
      const { issuer: _, enabled: __, ...shown } = formOf(upstream)
      return submit(path('upstreams', upstream), shown)
    },
    files: ({ upstream }) => apply(upstreamEntry(upstream, ', enabled: false')),
  },
  deleteUpstream: {
    of: aStoredUpstream,
    api: ({ upstream }) => call('DELETE', path('upstreams', upstream)),
    page: ({ upstream }) => submit(`${path('upstreams', upstream)}/delete`, { confirm: 'Work' }),
    command: ({ upstream = '' }) => command(['upstream', 'delete', upstream, '--yes']),
  },
  retireKey: {
    of: async () => {
      const algorithm = nextAlgorithm()
      const ring = (await store.list('key')).filter((key) => key.algorithm === algorithm)
      return { algorithm, key: ring.find(({ retiredAt }) => retiredAt === undefined)?.id ?? '' }
    },
    api: ({ key }) => call('POST', `${path('keys', key)}/retire`),
    page: ({ key = '' }) => submit(`${path('keys', key)}/retire`, { confirm: key.slice(0, 8) }),
    command: ({ key = '' }) => command(['keys', 'retire', '--yes', '--', key]),
  },
  rotateKeys: {
    of: async () => ({ algorithm: nextAlgorithm() }),
    api: ({ algorithm }) => call('POST', '/keys/rotate', { algorithms: [algorithm], now: true }),
    page: ({ algorithm = '' }) => submit('/keys/rotate', { algorithm, now: 'on' }),
    command: ({ algorithm = '' }) => command(['keys', 'rotate', '--algorithm', algorithm, '--now']),
  },
}

/** Operations that change nothing. */
const quiet = ['compareClientSecret', 'compareUpstreamSecret', 'explainToken']
/** Compared where there is a mail server, and where a user is signed in. */
const elsewhere = ['sendTestEmail', 'createPersonalToken']

/** The audit log without the tokens of the client that calls the server. */
const log = async () =>
  (await store.audit({ since: 0, limit: 10_000 })).filter(
    ({ name, clientId }) => name !== 'grant' || clientId !== machine.id,
  )

type Plain = Readonly<Record<string, unknown>>

/** An event without who did it, and with names in place of what differs between two subjects. */
function plain({ name, by, userId, clientId, facts }: AuditEvent, subject: Subject): Plain {
  const { actor: _, via: __, request: ___, file: ____, ...others } = facts
  const names = new Map(Object.entries(subject).map(([what, value]) => [value, what]))
  const isDrawn = (value: string) => /^(?:(?:user|client|group)_)?[\w-]{22,}$|^[\w-]{12}$/.test(value)
  const shown = (value: string | number | undefined) => {
    if (typeof value === 'number') return value > 1_000_000_000 ? 'a time' : value
    return value === undefined ? undefined : (names.get(value) ?? (isDrawn(value) ? 'an id' : value))
  }
  const entries = Object.entries(others).map(([key, value]) => [key, shown(value)])
  return {
    event: name,
    by,
    ...omitUndefined({ user: shown(userId), client: shown(clientId) }),
    ...Object.fromEntries(entries),
  }
}

/** The events of each act; those of acts that are not here are compared between doors only. */
const expected: Readonly<Record<string, readonly string[]>> = {
  changeUser: ['user-changed email_verified name attributes.level'],
  'signOutUser without sessions': [],
  revokeUser: ['session-ended'],
  'changeGroup, the administrators': ['group-changed administrators_id'],
  changeUpstream: ['upstream-changed enabled'],
  changeClient: ['client-changed client_name client_uri'],
  replaceClient: ['client-changed client_name client_uri'],
  refreshClientDocument: ['client-changed client_name client_uri'],
  'refreshClientDocument that is new': ['client-added'],
}

for (const [what, act] of Object.entries(acts)) {
  const { of, ...own } = act
  const { command: line, files } = own
  const doors = {
    ...own,
    ...(line && { server: (subject: Subject) => commandOnServer(() => line(subject)) }),
    ...(files && { 'files on a server': (subject: Subject) => commandOnServer(() => files(subject)) }),
  }
  t.test(`${what}: ${Object.keys(own).join(', ')}`, async (t) => {
    const logged = new Map<string, readonly Plain[]>()
    for (const [door, perform] of Object.entries(doors)) {
      const subject = await of()
      const { length } = await log()
      try {
        await perform(subject)
      } catch (error) {
        if (!(error instanceof OnlyOnStore)) throw error
        continue
      }
      const events = await log()
      logged.set(
        door,
        events.slice(length).map((event) => plain(event, subject)),
      )
    }
    const [[, first = []] = []] = logged
    for (const [door, events] of logged) t.strictSame(events, first, door)
    const lines = first.map(({ event, changed }) => [event, changed].filter(Boolean).join(' '))
    if (expected[what] === undefined) t.not(lines.length, 0, 'it is in the log')
    else t.strictSame(lines, expected[what])
  })
}

t.test('a link to an old address ends with it, through each door', async (t) => {
  const doors: Readonly<Record<string, (subject: Subject, email: string) => Promise<void>>> = {
    api: ({ user }, email) => call('PATCH', path('users', user), { email }),
    command: ({ username = '' }, email) => command(['user', 'set', username, '--email', email]),
    files: ({ username }, email) => apply(entry('users', `username: ${username}, email: ${email}`)),
  }
  for (const [door, change] of Object.entries(doors)) {
    const subject = await aLink()
    const link = () => store.find(linkKinds['password-reset'], subject['link'] ?? '')
    await change(subject, subject['email'] ?? '')
    t.not(await link(), undefined, `${door}: the address stays`)
    await change(subject, `${fresh('new')}@example.test`)
    t.equal(await link(), undefined, `${door}: another address`)
  }
})

t.test('every operation that changes something is compared', async (t) => {
  const text = readFileSync(new URL('../../openapi/admin.json', import.meta.url), 'utf8')
  // `as`: the description that the server generates.
  const { paths } = JSON.parse(text) as {
    paths: Readonly<Record<string, Readonly<Record<string, { operationId: string }>>>>
  }
  const changing = Object.values(paths).flatMap((methods) =>
    Object.entries(methods).flatMap(([method, { operationId }]) => (method === 'get' ? [] : [operationId])),
  )
  const compared = Object.keys(acts).map((name) => name.split(/[ ,]/)[0] ?? '')
  t.strictSame(changing.toSorted(), [...new Set([...compared, ...quiet, ...elsewhere])].toSorted())
})
