/** Administrators of groups at the admin API: they see and change the members of their groups, and nothing else. */
import t from 'tap'
import { accept, insert, put, update } from '../../src/domain/decision.ts'
import {
  changeGroup,
  createGroup,
  deleteGroup,
  type Group,
  type GroupChange,
  membershipKind,
} from '../../src/domain/group.ts'
import type { OneTimeLink, User } from '../../src/domain/model.ts'
import { systemRandom } from '../../src/system/system.ts'
import { addToGroup, changeGroups, removeFromGroup } from '../../src/users/groups.ts'
import { linkKinds } from '../../src/users/rules/one-time-link.ts'
import { createUser } from '../../src/users/rules/user.ts'
import { ask, integrate, sentAway, signedIn } from '../helpers/authorization.ts'
import { exchange, type Tokens } from '../helpers/flow.ts'
import { inBetween } from '../helpers/in-between.ts'
import { startMailbox } from '../helpers/mailbox.ts'
import { createDatabase } from '../helpers/nodes.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { json } from '../helpers/wire.ts'
import * as sample from '../storage/samples.ts'

const mailbox = await startMailbox(t)
const postgres = process.env['TEST_POSTGRES']
const server = await startServer(t, {
  ...(postgres !== undefined && { store: await createDatabase(postgres) }),
  admin: { api: 'on', secondFactor: 'off' },
  accounts: {
    attributes: [
      { name: 'badge', type: 'string', values: [], visible: 'administrator', editable: 'administrator' },
    ],
  },
  mail: { url: mailbox.url, from: 'accounts@example.org', notices: 'off' },
})
const { store, clock } = server.deps
const root = `${server.issuer}/api/admin/v1`
const operator = () => ({ by: 'operator', at: clock() }) as const
const scopes = [
  'admin:users:read',
  'admin:users:write',
  'admin:clients:read',
  'admin:clients:write',
  'admin:upstreams:read',
  'admin:upstreams:write',
  'admin:keys:read',
  'admin:keys:write',
  'admin:audit:read',
]
const console = await integrate(server, { consent: 'skip', scope: ['openid', ...scopes] })

async function makeGroup(name: string, change: GroupChange = {}): Promise<Group> {
  return changeGroups(store, (all) => createGroup(all, { ...change, name }, systemRandom(16), operator()))
}
const setGroup = (id: string, change: GroupChange) =>
  changeGroups(store, (all) =>
    changeGroup(all, all.find((one) => one.id === id) as Group, change, operator()),
  )

let count = 0
/** Adds a user to groups. */
async function makeUser(...groups: readonly Group[]): Promise<User> {
  count += 1
  const name = `u${count}`
  const described = { username: name, email: `${name}@example.test`, passwordHash: 'none', claims: { name } }
  const user = createUser(described, systemRandom(16), clock())
  await store.write(insert('user', user))
  for (const group of groups) await addToGroup(store, group, user.id, operator())
  return user
}

async function tokenOf(user: typeof alice): Promise<string> {
  const scope = `openid ${scopes.join(' ')}`
  const { code = '' } = sentAway(await ask(server, console, { scope }, await signedIn(server, console, user)))
  return ((await (await exchange(server, console, code)).json()) as Tokens).access_token
}

interface Sent {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
}

async function call(token: string, method: string, path: string, { headers, body }: Sent = {}) {
  const response = await fetch(path.startsWith('http') ? path : root + path, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    etag: response.headers.get('etag') ?? '',
    text,
    body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> & {
      items?: Record<string, unknown>[]
      next?: string
    },
  }
}

/** Everything of a response but what differs in each. */
function seen({ status, text, headers }: Awaited<ReturnType<typeof call>>) {
  const varying = /^(date|ratelimit|x-ratelimit|request-id|x-request-id|server-timing|traceparent|keep-alive)/
  return { status, text, headers: [...headers].filter(([name]) => !varying.test(name)) }
}
const errorOf = ({ status, body }: Awaited<ReturnType<typeof call>>) => [status, body['error']]

// bob administers `school` and what is below it. alice administers the server.
const admins = await makeGroup('admins')
const leads = await makeGroup('leads')
const rivals = await makeGroup('rivals')
const school = await makeGroup('school', { administratorsId: leads.id })
const course = await makeGroup('course', { parentId: school.id, description: 'Below' })
const outside = await makeGroup('outside', { administratorsId: rivals.id })
const subOf = async (username: string) => (await store.find('userByLogin', username))?.id ?? ''
const ids = { alice: await subOf('alice'), bob: await subOf('bob') }
await addToGroup(store, admins, ids.alice, operator())
await addToGroup(store, leads, ids.bob, operator())
const full = await tokenOf(alice)
const delegate = await tokenOf(bob)

const member = await makeUser(school)
const below = await makeUser(course, outside)
const stranger = await makeUser(outside)
const alone = await makeUser()
const chief = await makeUser(course, admins)
const rival = await makeUser(school, rivals)
const unknown = { id: `user_${'x'.repeat(22)}` }
/** Users that the delegate cannot see, each for another reason. */
const hidden = { stranger, alone, chief, rival, 'a full administrator': { id: ids.alice } }

/** Begins a session of a user, and returns its id. */
async function beginSession(userId: string): Promise<string> {
  const session = {
    id: systemRandom(32).toString('base64url'),
    userId,
    authenticatedAt: clock(),
    methods: ['pwd'],
    createdAt: clock(),
    idleExpiresAt: clock() + 10_000,
    expiresAt: clock() + 10_000,
  }
  await store.write(insert('session', session))
  return session.id
}

interface Operation {
  readonly operationId: string
  readonly method: string
  readonly path: string
  readonly isDelegated: boolean
  readonly responses: Readonly<Record<string, unknown>>
}

async function describedOperations(): Promise<readonly Operation[]> {
  const { paths } = (await json(await fetch(`${root}/openapi.json`))) as unknown as {
    paths: Record<
      string,
      Record<string, Operation & { readonly description?: string; readonly security: object[] }>
    >
  }
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { operationId, description, security, responses }]) =>
      security.length === 0
        ? []
        : [
            {
              operationId,
              method: method.toUpperCase(),
              path: path.replace('/api/admin/v1', ''),
              isDelegated: description?.includes('Administrators of a group') ?? false,
              responses,
            },
          ],
    ),
  )
}

/** What a delegate may call. Every other operation is for administrators of the server alone. */
const delegated = [
  'addMember',
  'changeUser',
  'createLink',
  'endSession',
  'inviteUser',
  'listAllGrants',
  'listAllSessions',
  'listGrants',
  'listGroups',
  'listGroupsOfUser',
  'listMembers',
  'listSessions',
  'listUsers',
  'lockUser',
  'readGroup',
  'readUser',
  'removeMember',
  'revokeGrants',
  'revokeUser',
  'signOutUser',
  'unlockUser',
]

/** What a call needs in addition to its path. */
async function sampleOf(operationId: string, userId: string): Promise<Sent & { readonly session?: string }> {
  const headers = { 'if-match': '*' }
  switch (operationId) {
    case 'changeUser':
      return { headers, body: { claims: { nickname: 'N' } } }
    case 'createLink':
      return { body: { purpose: 'password-reset' } }
    case 'endSession':
      return { session: await beginSession(userId) }
    case 'addMember':
      return { body: { sub: userId } }
    case 'inviteUser':
      return { body: { email: 'x@example.test' } }
    default:
      return { headers, body: {} }
  }
}

const operations = await describedOperations()

/** The same call for another user or group. */
async function tryAt(operation: Operation, userId: string, groupId: string, token = delegate) {
  const { session = 'none', ...sent } = await sampleOf(operation.operationId, userId)
  const path = operation.path
    .replace('{sub}', userId)
    .replace('{group_id}', groupId)
    .replace('{session_id}', session)
    .replace('{client_id}', console.id)
    .replaceAll(/\{\w+\}/g, 'none')
  const hasBody = operation.method === 'POST' || operation.method === 'PATCH'
  return call(token, operation.method, path, {
    ...(sent.headers && { headers: sent.headers }),
    ...(hasBody && { body: sent.body ?? {} }),
  })
}

t.test('the description says which operations administrators of groups may call', (t) => {
  const found = operations.filter(({ isDelegated }) => isDelegated).map(({ operationId }) => operationId)
  t.strictSame(found.toSorted(), delegated)
  t.end()
})

t.test('every other operation is rejected, whatever it is about', async (t) => {
  for (const operation of operations.filter(({ isDelegated }) => !isDelegated)) {
    const subjects = [member.id, stranger.id, ids.alice, unknown.id]
    const responses = await Promise.all(subjects.map((id) => tryAt(operation, id, school.id)))
    // A body that its schema rejects is rejected after the caller is.
    for (const response of responses) {
      t.strictSame(errorOf(response), [403, 'access_denied'], operation.operationId)
      t.strictSame(seen(response), seen(responses[0] as (typeof responses)[0]))
    }
  }
})

t.test('every operation about a user is for members, and others do not exist', async (t) => {
  const about = operations.filter(({ isDelegated, path }) => isDelegated && path.includes('{sub}'))
  t.ok(about.length > 10)
  for (const operation of about) {
    await t.test(operation.operationId, async (t) => {
      const groupOf = { [member.id]: school, [below.id]: course }
      for (const { id } of [member, below]) {
        const group = groupOf[id] ?? school
        const allowed = await tryAt(operation, id, group.id)
        t.ok(allowed.status < 300, `${allowed.status} ${allowed.text}`)
        t.ok(allowed.status in operation.responses)
        await addToGroup(store, group, id, operator())
        await store.transact('user', id, (user) => accept(undefined, update('user', unlocked(user as User))))
      }
      const missing = await tryAt(operation, unknown.id, school.id)
      t.strictSame(errorOf(missing), [404, 'not_found'])
      t.ok('404' in operation.responses)
      for (const [name, { id }] of Object.entries(hidden)) {
        const before = await stateOf(id)
        t.strictSame(seen(await tryAt(operation, id, school.id)), seen(missing), name)
        t.strictSame(await stateOf(id), before, `${name} is not changed`)
      }
    })
  }
})

function unlocked({ lockedAt: _, ...user }: User): User {
  return user
}

/** What an operation could change about a user. */
async function stateOf(id: string) {
  const events = await store.audit({ since: 0, userId: id, limit: 1000 })
  return { user: await store.find('user', id), events: events.length }
}

t.test('every operation about a group is for groups in reach, and others do not exist', async (t) => {
  const chiefs = await makeGroup('chiefs below', { parentId: school.id })
  await setGroup(outside.id, { administratorsId: chiefs.id })
  t.teardown(() => setGroup(outside.id, { administratorsId: rivals.id }))
  const about = operations.filter(({ isDelegated, path }) => isDelegated && path.includes('{group_id}'))
  t.strictSame(about.length, 4)
  const nowhere = `group_${'x'.repeat(22)}`
  for (const operation of about) {
    for (const group of [school, course]) {
      await addToGroup(store, group, member.id, operator())
      const allowed = await tryAt(operation, member.id, group.id)
      t.ok(allowed.status < 300, `${operation.operationId} ${allowed.text}`)
    }
    await addToGroup(store, school, member.id, operator())
    const missing = await tryAt(operation, member.id, nowhere)
    t.strictSame(errorOf(missing), [404, 'not_found'])
    // One that is below, but whose members administer what the delegate does not, gives more than the delegate has.
    for (const { id } of [admins, leads, rivals, outside, chiefs])
      t.strictSame(seen(await tryAt(operation, member.id, id)), seen(missing), operation.operationId)
  }
})

/** Follows the pages of a list. */
async function everyPage(path: string, token = delegate): Promise<Record<string, unknown>[]> {
  const items: Record<string, unknown>[] = []
  let next: string | undefined
  do {
    const { body, status } = await call(
      token,
      'GET',
      `${path}${path.includes('?') ? '&' : '?'}limit=2${next ? `&after=${next}` : ''}`,
    )
    if (status !== 200) throw new Error(`${path}: ${status}`)
    items.push(...(body.items ?? []))
    next = body.next
  } while (next !== undefined)
  return items
}

t.test('lists, filters and cursors show the members and nothing of others', async (t) => {
  const more = await Promise.all(Array.from({ length: 5 }, () => makeUser(school, course)))
  const visible = [member, below, ...more].map(({ id }) => id).toSorted()
  const listed = await everyPage('/users')
  t.strictSame(listed.map(({ sub }) => sub).toSorted(), visible, 'each once')
  t.strictSame((await everyPage('/users?state=locked')).length, 0)
  t.strictSame((await everyPage('/users?state=unlocked')).map(({ sub }) => sub).toSorted(), visible)
  const find = async (login: string) => seen(await call(delegate, 'GET', `/users?login=${login}`))
  const missing = await find('no-such-user')
  for (const [name, { id }] of Object.entries(hidden)) {
    const { username = '', email = '' } = (await store.find('user', id)) ?? {}
    t.strictSame(await find(username), missing, name)
    t.strictSame(await find(email), missing, name)
  }
  t.match((await find(member.username)).text, member.id)
  // Their names begin with u, and so do their addresses.
  t.strictSame((await everyPage('/users?search=U')).map(({ sub }) => sub).toSorted(), visible)
  t.strictSame(
    (await everyPage(`/users?search=${member.email?.slice(0, -3)}`)).map(({ sub }) => sub),
    [member.id],
  )
  const search = async (text: string) => seen(await call(delegate, 'GET', `/users?search=${text}`))
  const none = await search('no-such-user')
  for (const [name, { id }] of Object.entries(hidden)) {
    const { username = '', email = '' } = (await store.find('user', id)) ?? {}
    // `u1` is the beginning of `u10`.
    t.notMatch((await search(username)).text, id, name)
    t.strictSame(await search(email), none, name)
  }
  const membersOf = async (id: string) => (await everyPage(`/groups/${id}/members`)).map(({ sub }) => sub)
  t.strictSame((await membersOf(school.id)).toSorted(), [member, ...more].map(({ id }) => id).toSorted())
  t.strictSame((await membersOf(course.id)).toSorted(), [below, ...more].map(({ id }) => id).toSorted())
  const groups = await everyPage('/groups')
  const names = groups.map(({ name }) => name)
  t.ok(names.includes('school') && names.includes('course'))
  for (const name of ['admins', 'leads', 'rivals', 'outside']) {
    t.notOk(names.includes(name), name)
    const named = await call(delegate, 'GET', `/groups?name=${name}`)
    t.strictSame(named.body, { items: [] })
  }
  t.strictSame((await call(delegate, 'GET', '/groups?name=SCHOOL')).body.items?.length, 1)
  const own = await call(delegate, 'GET', `/users/${below.id}/groups`)
  t.strictSame(own.body.items?.map(({ name }) => name).toSorted(), ['course', 'school'], 'not outside')
  const text = JSON.stringify([listed, groups, own.body])
  for (const { id } of [admins, leads, rivals, outside, ...Object.values(hidden)])
    t.notMatch(text, id, 'no id of what is hidden')
  // A cursor is a place, and no way to what is hidden behind it.
  for (const { id } of Object.values(hidden))
    for (const place of [`${outside.id}/${id}`, `${school.id}/${id}`, id]) {
      const after = Buffer.from(`after ${place}`).toString('base64url')
      const { text } = await call(delegate, 'GET', `/users?after=${after}`)
      for (const other of Object.values(hidden)) t.notMatch(text, other.id)
    }
})

t.test('grants and sessions of members are listed, and none of others', async (t) => {
  const [clientId, time] = [console.id, clock()]
  const own: { readonly userId: string; readonly session: string; readonly grant: string }[] = []
  for (const [index, { id: userId }] of [member, below, ...Object.values(hidden)].entries())
    for (let each = 0; each < 3; each += 1) {
      const grant = { ...sample.grant, id: sample.grantId(time + 10 * index + each), expiresAt: time + 99 }
      await store.write({ op: 'insertGrant', grant: { ...grant, clientId, userId } })
      const session = await beginSession(userId)
      if (userId === member.id || userId === below.id) own.push({ userId, session, grant: grant.id })
    }
  const machine = { ...sample.grant, id: sample.grantId(time + 999), clientId, expiresAt: time + 99 }
  const { userId: _, ...ofClient } = machine
  await store.write({ op: 'insertGrant', grant: ofClient })
  const idsOf = async (path: string, name: string) =>
    (await everyPage(path)).map((item) => String(item[name])).toSorted()
  const expected = (name: 'grant' | 'session', userId?: string) =>
    own
      .filter((one) => userId === undefined || one.userId === userId)
      .map((one) => one[name])
      .toSorted()
  const sessions = await idsOf('/sessions', 'session_id')
  t.strictSame(
    expected('session').filter((id) => !sessions.includes(id)),
    [],
  )
  for (const { sub } of await everyPage('/sessions')) t.ok([member.id, below.id].includes(String(sub)))
  const filter = `client_id=${clientId}&state=active`
  t.strictSame(await idsOf('/grants', 'grant'), expected('grant'), 'each once')
  t.strictSame(await idsOf(`/grants?client_id=none`, 'grant'), [])
  t.strictSame(await idsOf(`/grants?client_id=${clientId}`, 'grant'), expected('grant'))
  t.strictSame(await idsOf(`/grants?sub=${member.id}`, 'grant'), expected('grant', member.id))
  const missing = seen(await call(delegate, 'GET', `/grants?sub=${unknown.id}&limit=1`))
  for (const [name, { id }] of Object.entries(hidden))
    for (const query of ['', `&${filter}`])
      t.strictSame(seen(await call(delegate, 'GET', `/grants?sub=${id}&limit=1${query}`)), missing, name)
  // A cursor is a place, and no way to what is hidden behind it, nor does it name that.
  for (const path of ['/grants', '/sessions']) {
    for (const { id } of Object.values(hidden))
      for (const place of [`${school.id}/${id}/A`, `${outside.id}/${id}/A`, `${course.id}/${id}`, id]) {
        const after = Buffer.from(`after ${place}`).toString('base64url')
        const { text, body } = await call(delegate, 'GET', `${path}?limit=2&after=${after}`)
        const shown = text + Buffer.from(body.next ?? '', 'base64url')
        for (const user of Object.values(hidden)) t.notMatch(shown.replace(place, ''), user.id)
      }
  }
})

t.test('an entity tag tells nothing about users that the delegate cannot see', async (t) => {
  const read = await call(full, 'GET', `/users/${stranger.id}`)
  t.match(read.etag, /^"/)
  const body = { claims: { nickname: 'N' } }
  const missing = await call(delegate, 'PATCH', `/users/${unknown.id}`, {
    headers: { 'if-match': '"x"' },
    body,
  })
  for (const tag of [read.etag, '"x"', '*']) {
    const response = await call(delegate, 'PATCH', `/users/${stranger.id}`, {
      headers: { 'if-match': tag },
      body,
    })
    t.strictSame(seen(response), seen(missing), tag)
  }
  t.strictSame(seen(await call(delegate, 'PATCH', `/users/${stranger.id}`, { body })), seen(missing), 'none')
  t.equal(
    (await call(delegate, 'GET', `/groups/${school.id}`)).etag,
    '',
    'it would tell of changes of what is hidden',
  )
})

t.test('a delegate invites users into a group, and adds none of others by their sub', async (t) => {
  const email = 'invited@example.test'
  const invite = (body: object) => call(delegate, 'POST', '/users', { body: { email, ...body } })
  t.strictSame(errorOf(await invite({})), [403, 'access_denied'], 'into no group')
  const known = await invite({ group_id: school.id, password: 'known to the delegate' })
  t.strictSame(errorOf(known), [403, 'access_denied'], 'a password would let them sign in as that user')
  for (const { id } of [admins, leads, rivals, outside, { id: 'none' }])
    t.strictSame(errorOf(await invite({ group_id: id })), [404, 'not_found'])
  t.strictSame(errorOf(await invite({ group_id: school.id, claims: { website: 'https://x.example' } })), [
    403,
    'access_denied',
  ])
  for (const more of [{ sub: `user_${'A'.repeat(22)}` }, { email_verified: true }])
    t.strictSame(errorOf(await invite({ group_id: school.id, ...more })), [403, 'access_denied'])
  t.equal(await store.find('userByLogin', email), undefined)
  const before = mailbox.emails.length
  const made = await invite({ group_id: course.id, claims: { name: 'I' } })
  t.equal(made.status, 201)
  const invitation = made.body['invitation'] as object // of the schema of the response
  t.strictSame(Object.keys(invitation).toSorted(), ['expires_at', 'sent_to'], 'the link is not shown')
  const sent = await mailbox.arrived(before + 1)
  t.strictSame(sent.to, [email])
  t.match(sent.url, /\/link\?code=/)
  const sub = String(made.body['sub'])
  t.equal((await call(delegate, 'GET', `/users/${sub}`)).status, 200)
  const events = await store.audit({ since: 0, userId: sub, limit: 10 })
  t.strictSame(
    events.map(({ name, facts }) => [name, facts['actor']]),
    ['user-invited', 'link-made', 'group-member-added'].map((name) => [name, ids.bob]),
  )
  const add = (group: Group, id: string) =>
    call(delegate, 'POST', `/groups/${group.id}/members`, { body: { sub: id } })
  t.equal((await add(school, sub)).status, 200, 'one who is seen may join another group in reach')
  const missing = seen(await add(school, unknown.id))
  for (const [name, { id }] of Object.entries(hidden)) {
    t.strictSame(seen(await add(school, id)), missing, name)
  }
  const stays = await store.listOf(membershipKind, stranger.id)
  t.strictSame(
    stays.map(({ groupId }) => groupId),
    [outside.id],
  )
  t.equal((await call(delegate, 'DELETE', `/groups/${school.id}/members/${sub}`)).status, 204)
  t.equal((await call(delegate, 'DELETE', `/groups/${course.id}/members/${sub}`)).status, 204)
  t.strictSame(errorOf(await call(delegate, 'GET', `/users/${sub}`)), [404, 'not_found'])
  t.strictSame(errorOf(await add(course, sub)), [404, 'not_found'], 'nor back')
})

t.test('a delegate changes names, and no claim that gives or proves something', async (t) => {
  const headers = { 'if-match': '*' }
  const change = (body: object) => call(delegate, 'PATCH', `/users/${member.id}`, { headers, body })
  t.equal((await change({ claims: { name: 'New', given_name: 'N' } })).status, 200)
  for (const body of [
    { username: 'mine' },
    { email: 'mine@example.test' },
    { email_verified: true },
    { claims: { website: 'https://evil.example' } },
    { claims: { name: 'N', locale: 'de' } },
    { attributes: { badge: 'B8' } },
    { claims: { name: 'N' }, locked: true },
  ])
    t.strictSame(errorOf(await change(body)), [403, 'access_denied'], JSON.stringify(body))
  t.match(await store.find('user', member.id), { email: member.email, claims: { name: 'New' } })
})

t.test('a delegate sees no attributes, and invites without any', async (t) => {
  const headers = { 'if-match': '*' }
  const path = `/users/${member.id}`
  const set = { headers, body: { attributes: { badge: 'badge 7 of B' } } }
  t.match(await call(full, 'PATCH', path, set), {
    status: 200,
    body: { attributes: { badge: 'badge 7 of B' } },
  })
  t.strictSame((await call(delegate, 'GET', path)).body['attributes'], {})
  const lists = await Promise.all(
    ['/users', `/users?login=${member.username}`].map((list) => call(delegate, 'GET', list)),
  )
  for (const { body } of lists) t.notMatch(JSON.stringify(body), 'badge 7 of B')
  const renamed = await call(delegate, 'PATCH', path, { headers, body: { claims: { name: 'New' } } })
  t.strictSame([renamed.status, renamed.body['attributes']], [200, {}])
  t.match((await call(full, 'GET', path)).body, { attributes: { badge: 'badge 7 of B' } }, 'they stay')
  const invited = { email: 'badge@example.test', group_id: course.id, attributes: { badge: 'B9' } }
  t.strictSame(errorOf(await call(delegate, 'POST', '/users', { body: invited })), [403, 'access_denied'])
})

t.test('a link for a password goes to the member, and not to the delegate', async (t) => {
  const create = (body: object = {}, id = member.id) =>
    call(delegate, 'POST', `/users/${id}/links`, { body: { purpose: 'password-reset', ...body } })
  const before = mailbox.emails.length
  const sent = await create()
  t.equal(sent.status, 201)
  t.match(sent.body, { sent_to: member.email })
  t.notOk('link' in sent.body)
  t.match((await mailbox.arrived(before + 1)).to, [member.email])
  t.strictSame(errorOf(await create({ send: false })), [409, 'conflict'])
  const { email: _, ...without } = member
  await store.transact('user', member.id, () => accept(undefined, update('user', without)))
  t.strictSame(errorOf(await create()), [409, 'conflict'], 'without an address')
  await store.transact('user', member.id, () => accept(undefined, update('user', member)))
  const made = await store.listOf(linkKinds['password-reset'], member.id)
  t.ok(made.every(({ email }: OneTimeLink) => email === member.email))
})

t.test('an invitation that cannot be sent is rejected, and adds no user', async (t) => {
  const email = 'unsent@example.test'
  const invite = (body: object, token = delegate) =>
    call(token, 'POST', '/users', { body: { username: 'unsent', group_id: school.id, ...body } })
  const { mail } = server.deps.config
  const before = { ...mail }
  t.teardown(() => Object.assign(mail, before))
  const assertUnsent = async (body: object, why: string) => {
    const rejected = await invite(body)
    t.strictSame(
      [rejected.status, rejected.body],
      [
        409,
        {
          error: 'conflict',
          error_description:
            'for an administrator of a group a link is only sent: this needs a mail server, and an address of the user',
        },
      ],
      why,
    )
    t.equal(await store.find('userByLogin', 'unsent'), undefined, why)
  }
  await assertUnsent({ email, send: false }, 'the delegate wants the link')
  await assertUnsent({}, 'there is no address')
  Object.assign(mail, { url: undefined })
  await assertUnsent({ email }, 'there is no mail server')
  const whole = await invite({ email: 'whole@example.test', username: 'whole' }, full)
  t.match(whole.body, { invitation: { link: /\/link\?code=/ } }, 'an administrator of the server sees it')
  const locked = await invite({ email, locked: true })
  t.equal(locked.status, 201, 'one who is locked has no link')
  t.notOk('invitation' in locked.body)
})

t.test('a rejected email does not show the link either', async (t) => {
  const rejecting = await startMailbox(t, { reject: true })
  const { mail } = server.deps.config
  const before = { ...mail }
  Object.assign(mail, { url: rejecting.url })
  t.teardown(() => Object.assign(mail, before))
  const sent = await call(delegate, 'POST', `/users/${member.id}/links`, {
    body: { purpose: 'password-reset' },
  })
  t.equal(sent.status, 201)
  t.strictSame(Object.keys(sent.body), ['expires_at'])
  const body = { email: 'rejected@example.test', group_id: school.id }
  const invited = await call(delegate, 'POST', '/users', { body })
  t.equal(invited.status, 201)
  const invitation = invited.body['invitation'] as object // of the schema of the response
  t.strictSame(Object.keys(invitation), ['expires_at'])
})

t.test('what makes a delegate is read at every request', async (t) => {
  const read = async () => (await call(delegate, 'GET', `/users/${member.id}`)).status
  t.equal(await read(), 200)
  await removeFromGroup(store, leads, ids.bob, operator())
  t.equal(await read(), 403)
  const night = await makeGroup('night', { parentId: leads.id })
  await addToGroup(store, night, ids.bob, operator())
  t.equal(await read(), 200, 'by a group below')
  await setGroup(school.id, { administratorsId: '' })
  t.equal(await read(), 403, 'administers nothing')
  await setGroup(course.id, { administratorsId: leads.id })
  t.equal(await read(), 404, 'administers another group')
  await setGroup(course.id, { administratorsId: '' })
  await setGroup(school.id, { administratorsId: leads.id })
  await removeFromGroup(store, night, ids.bob, operator())
  await addToGroup(store, leads, ids.bob, operator())
  await addToGroup(store, admins, member.id, operator())
  t.equal(await read(), 404, 'the member administers the server')
  await removeFromGroup(store, admins, member.id, operator())
  t.equal(await read(), 200)
})

t.test('without its group of administrators a group has none', async (t) => {
  const keepers = await makeGroup('keepers')
  const kept = await makeGroup('kept', { administratorsId: keepers.id })
  const one = await makeUser(kept)
  await addToGroup(store, keepers, ids.bob, operator())
  t.equal((await call(delegate, 'GET', `/users/${one.id}`)).status, 200)
  await changeGroups(store, (all) => deleteGroup(all, keepers, operator()))
  t.equal((await call(delegate, 'GET', `/users/${one.id}`)).status, 404)
  const { body } = await call(full, 'GET', `/groups/${kept.id}`)
  t.notOk('administrators_id' in body)
})

t.test('white-box: what ends in the middle of a call is noticed in its transaction', async (t) => {
  const lock = (token: string, id: string) => call(token, 'POST', `/users/${id}/lock`)
  const direct = { ...store }
  const leave = (group: Group, id: string) => removeFromGroup(direct, group, id, operator())
  const join = (group: Group, id: string) => addToGroup(direct, group, id, operator())
  const cases: readonly (readonly [
    string,
    () => Promise<unknown>,
    () => Promise<unknown>,
    string,
    number,
  ])[] = [
    ['the delegate leaves', () => leave(leads, ids.bob), () => join(leads, ids.bob), delegate, 404],
    ['the member leaves', () => leave(school, member.id), () => join(school, member.id), delegate, 404],
    ['the member administers', () => join(admins, member.id), () => leave(admins, member.id), delegate, 404],
    ['the administrator leaves', () => leave(admins, ids.alice), () => join(admins, ids.alice), full, 403],
  ]
  for (const [name, change, undo, token, status] of cases) {
    const response = await inBetween(t, store, change, () => lock(token, member.id))
    t.equal(response.status, status, name)
    t.equal((await store.find('user', member.id))?.lockedAt, undefined, name)
    await undo()
  }
  t.equal((await lock(delegate, member.id)).status, 200)
  t.equal((await call(delegate, 'POST', `/users/${member.id}/unlock`)).status, 200)
  const email = 'between@example.test'
  const invite = () => call(delegate, 'POST', '/users', { body: { email, group_id: school.id } })
  const late = await inBetween(t, store, () => leave(leads, ids.bob), invite)
  t.equal(late.status, 404)
  t.equal(await store.find('userByLogin', email), undefined)
  await join(leads, ids.bob)
  const add = () => call(delegate, 'POST', `/groups/${course.id}/members`, { body: { sub: member.id } })
  await leave(course, member.id)
  const added = await inBetween(t, store, () => join(admins, member.id), add)
  t.equal(added.status, 404)
  await leave(admins, member.id)
})

t.test('of a group with many hidden members a page is short, and the next one goes on', async (t) => {
  const crowd = await makeGroup('crowd', { administratorsId: leads.id })
  const last = await makeUser()
  const users = Array.from({ length: 500 }, (_, each) =>
    createUser({ username: `hidden${each}` }, systemRandom(16), clock()),
  )
  const addedAt = clock()
  for (const { id } of users)
    await store.write(
      put(membershipKind, { groupId: crowd.id, userId: id, addedAt }),
      put(membershipKind, { groupId: admins.id, userId: id, addedAt }),
    )
  const shown = { ...last, id: `user_${'~'.repeat(22)}`, username: 'zz', email: 'zz@example.test' }
  await store.write(
    insert('user', shown),
    put(membershipKind, { groupId: crowd.id, userId: shown.id, addedAt }),
  )
  const first = await call(delegate, 'GET', `/groups/${crowd.id}/members?limit=200`)
  t.strictSame(first.body.items, [])
  t.ok(first.body.next, 'not the last page')
  const rest = await call(delegate, 'GET', `/groups/${crowd.id}/members?limit=200&after=${first.body.next}`)
  t.strictSame(
    rest.body.items?.map(({ sub }) => sub),
    [shown.id],
  )
  t.notOk(rest.body.next)
})
