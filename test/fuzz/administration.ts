import { byClient } from './by-client.ts'
import type { HttpResponse } from './connection.ts'
import type { Dice } from './dice.ts'
import { metadata } from './metadata.ts'
import { bearer, type Draft, type Pair, type Sent } from './request.ts'
import { liveValue, nasty } from './values.ts'
import type { World } from './world.ts'

/** The client that uses the admin API, and what it has made. */
export interface Administrator {
  readonly id: string
  /** The scope of each of its tokens. */
  readonly tokens: Map<string, readonly string[]>
  /** The clients that it added, with their last ETag; it changes no others. */
  readonly added: Map<string, string>
  /** The same of users. */
  readonly addedUsers: Map<string, string>
  readonly userIds: readonly string[]
}

const root = '/api/admin/v1'
const reading = ['admin:users:read', 'admin:clients:read', 'admin:audit:read']
/** What the client that administers may do. */
export const adminScope = [...reading, 'admin:clients:write', 'admin:users:write']
/** What it sets for the users that it added. No response has it. */
export const givenPassword = 'given by the administrator'
const scopes = [adminScope, adminScope, adminScope, adminScope, reading, ['admin:users:write']] as const

/** A request to the admin API, or for a token for it. */
export function administer(world: World, dice: Dice): Draft | undefined {
  if (dice.oneIn(3)) return readAsDelegate(world, dice)
  const { id, tokens } = world.administrator
  const access = dice.draw([...tokens.keys()].slice(-6))
  if (access === undefined || dice.oneIn(8)) {
    const client = world.clients.find((each) => each.id === id)
    const fields: Pair[] = [
      ['grant_type', 'client_credentials'],
      ['scope', dice.pick(scopes).join(' ')],
    ]
    return client && byClient(client, '/api/oauth/token', fields)
  }
  const headers = [bearer(dice.oneIn(12) ? liveValue(world, dice) : access)]
  if (dice.oneIn(3)) return read(world, dice, headers)
  const scope = tokens.get(access) ?? []
  if (dice.oneIn(5)) return explain(world, dice, headers)
  if (dice.oneIn(2)) return changeUser(world, dice, headers, scope.includes('admin:users:write'))
  return change(world, dice, headers, scope.includes('admin:clients:write'))
}

function explain(world: World, dice: Dice, headers: readonly Pair[]): Draft {
  const token = dice.oneIn(3) ? dice.pick<unknown>([1, '', ...nasty]) : liveValue(world, dice)
  return { method: 'POST', path: `${root}/explain`, query: [], headers, json: { token } }
}

function read(world: World, dice: Dice, headers: readonly Pair[]): Draft {
  const query = dice.pick<Pair>([
    ['limit', '2'],
    ['limit', '201'],
    ['after', dice.pick(nasty)],
    ['origin', 'registered'],
    ['username', 'bob'],
    ...filters(dice),
  ])
  const path = dice.pick([
    '/users',
    '/clients',
    `/users/${segment(dice.draw(world.administrator.userIds), dice)}`,
    `/clients/${segment(dice.draw(world.clients)?.id, dice)}`,
    `/clients/${segment(dice.draw([...world.administrator.added.keys()]), dice)}`,
    '/openapi.json',
    '/settings',
    '/audit',
    '/groups',
    '/keys',
    '/grants',
    '/sessions',
  ])
  return { method: 'GET', path: root + path, query: dice.oneIn(3) ? [query] : [], headers }
}

/** Filters of lists: what users and events are looked for by. */
function filters(dice: Dice): readonly [Pair, ...Pair[]] {
  return [
    ['search', dice.pick(['a', 'BO', 'carol@', 'c', ...nasty])],
    ['state', dice.pick(['locked', 'unlocked', 'x'])],
    ['login', dice.pick(['alice', 'carol', ...nasty])],
    ['event', dice.pick(['sign-in', 'x'])],
    ['since', dice.pick(['0', '99999999999', ...nasty])],
    ['client_id', dice.pick(nasty)],
    ['sub', dice.pick(nasty)],
    ['state', dice.pick(['active', 'revoked'])],
  ]
}

/** A request of a user who administers one group: about users and groups, most of which they cannot see. */
function readAsDelegate({ delegate, administrator }: World, dice: Dice): Draft {
  const { token, groupId, hidden } = delegate
  const user = segment(dice.draw([...administrator.userIds, ...hidden]), dice)
  const group = segment(dice.pick([groupId, ...hidden]), dice)
  const place = `after ${dice.pick([...hidden, 'alice', 'car'])}${dice.pick(['', `/${dice.pick(hidden)}`, '!'])}`
  const query: Pair[] = [
    ['limit', dice.pick(['1', '2', '200'])],
    ...(dice.oneIn(2) ? [dice.pick(filters(dice))] : []),
    ...(dice.oneIn(4) ? [['after', Buffer.from(place).toString('base64url')] as const] : []),
  ]
  const path = dice.draw([
    ...[
      '/users',
      '/users',
      '/grants',
      '/sessions',
      '/groups',
      '/audit',
      '/settings',
      '/clients',
      '/keys',
      '/resources',
    ],
    ...['', '/sessions', '/grants', '/groups', '/links'].map((part) => `/users/${user}${part}`),
    ...['', '/members'].map((part) => `/groups/${group}${part}`),
  ])
  return {
    method: 'GET',
    path: root + (path ?? ''),
    query: dice.oneIn(2) ? query : [],
    headers: [bearer(token)],
  }
}

/** Members that only a client that registers itself has. */
const registered = [
  'application_type',
  'response_types',
  'software_id',
  'default_max_age',
  'default_acr_values',
  'require_auth_time',
]

/** A change; only clients that it added are changed if the token has the scope for it. */
function change(
  { administrator, clients }: World,
  dice: Dice,
  headers: readonly Pair[],
  mayWrite: boolean,
): Draft {
  const { added, userIds } = administrator
  const id = (mayWrite ? dice.draw([...added.keys()]) : dice.draw(clients)?.id) ?? 'client_none'
  const key: Pair[] = dice.oneIn(2) ? [['Idempotency-Key', `key-${dice.below(20)}`]] : []
  const match: Pair[] = dice.oneIn(8) ? [] : [['If-Match', dice.oneIn(4) ? '"x"' : (added.get(id) ?? '*')]]
  const json = Object.fromEntries(
    Object.entries(metadata(dice)).filter(([name]) => !registered.includes(name)),
  )
  const one = `${root}/clients/${id}`
  const post = { method: 'POST', query: [], headers: [...headers, ...key] }
  const conditional = { query: [], headers: [...headers, ...match] }
  const name = { client_name: 'Added' }
  return dice.pick<Draft>([
    { ...post, path: `${root}/clients`, json: { ...name, ...json } },
    { ...post, path: `${root}/clients`, json: { ...name, ...json } },
    {
      ...post,
      path: `${root}/clients`,
      json: { ...name, scope: 'admin:keys:write', grant_types: ['client_credentials'] },
    },
    { ...conditional, method: 'PATCH', path: one, json },
    { ...conditional, method: 'PATCH', path: one, json: name },
    { ...conditional, method: 'DELETE', path: one },
    { ...post, path: `${one}/secret`, json: { keep_old_seconds: dice.below(3) } },
    { ...post, path: `${one}/${dice.pick(['lock', 'unlock', 'revoke', 'x'])}` },
    { ...post, path: `${root}/groups`, json: { name: 'mine', administrators_id: dice.draw(userIds) ?? 'x' } },
  ])
}

const acts = ['lock', 'unlock', 'revoke', 'sign-out', 'remove-codes', 'remove-passkeys', 'x'] as const

/** A change of users; only those that it added are changed if the token has the scope for it. */
function changeUser(
  { administrator }: World,
  dice: Dice,
  headers: readonly Pair[],
  mayWrite: boolean,
): Draft {
  const { addedUsers, userIds } = administrator
  const id = dice.draw(mayWrite ? [...addedUsers.keys()] : userIds) ?? 'user_none'
  const match: Pair[] = dice.oneIn(8)
    ? []
    : [['If-Match', dice.oneIn(4) ? '"x"' : (addedUsers.get(id) ?? '*')]]
  const one = `${root}/users/${id}`
  const post = { method: 'POST', query: [], headers }
  const conditional = { query: [], headers: [...headers, ...match] }
  const username = `added-${dice.below(1000)}`
  const password = dice.oneIn(3) ? dice.pick<unknown>([1, '', ...nasty]) : givenPassword
  return dice.pick<Draft>([
    { ...post, path: `${root}/users`, json: { username, email: `${username}@example.test`, send: false } },
    { ...post, path: `${root}/users`, json: { username, password, ...attributes(dice) } },
    { ...post, path: `${one}/password`, json: { password, disconnect: dice.oneIn(2) } },
    { ...post, path: `${one}/${dice.pick(acts)}` },
    { ...conditional, method: 'PATCH', path: one, json: attributes(dice) },
    { ...conditional, method: 'PATCH', path: one, json: attributes(dice) },
    { ...conditional, method: 'DELETE', path: one },
  ])
}

function attributes(dice: Dice): Record<string, unknown> {
  const isRight = !dice.oneIn(3)
  const name = isRight ? 'badge' : dice.pick(['badge', ...nasty])
  const value = isRight ? dice.pick(['gold', 'silver', '']) : dice.pick<unknown>([1, true, '', ...nasty])
  return { attributes: { [name]: value } }
}

function segment(id: string | undefined, dice: Dice): string {
  return encodeURIComponent((dice.oneIn(8) ? dice.pick(nasty) : (id ?? 'none')).toWellFormed())
}

/** Stores a client that was added or changed; a repeated request adds none. */
export function learnAdministration(
  content: Record<string, unknown>,
  { headers, status }: HttpResponse,
  world: World,
): void {
  const { added } = world.administrator
  const id = String(content['client_id'])
  if (status === 201 && headers['idempotent-replayed'] === undefined) {
    world.clientCount += 1
    added.set(id, '')
  }
  if (added.has(id) && headers['etag'] !== undefined) added.set(id, headers['etag'])
}

/** Stores a user that was added or changed. */
export function learnUser(
  content: Record<string, unknown>,
  { headers, status }: HttpResponse,
  world: World,
): void {
  const { addedUsers } = world.administrator
  const id = String(content['sub'])
  if (status === 201 && headers['idempotent-replayed'] === undefined) addedUsers.set(id, '')
  if (addedUsers.has(id) && headers['etag'] !== undefined) addedUsers.set(id, headers['etag'])
}

/** The scopes of the parts of the API. */
const areas: Readonly<Record<string, string>> = {
  users: 'users',
  groups: 'users',
  grants: 'users',
  sessions: 'users',
  clients: 'clients',
  resources: 'clients',
  audit: 'audit',
  explain: 'audit',
  settings: 'audit',
  keys: 'keys',
}

/** What a success of the admin API does without a right; undefined if nothing. */
export function faultOfAdministration(
  path: string,
  { method, headers, body, bytes }: Sent,
  response: HttpResponse,
  { administrator, delegate, secrets }: World,
): string | undefined {
  const [, part = ''] =
    /^\/api\/admin\/v1\/+(users|groups|grants|sessions|clients|audit|explain|settings|keys|resources)\b/.exec(
      path,
    ) ?? []
  const kind = areas[part]
  if (kind === undefined || response.status >= 300 || method === 'OPTIONS' || bytes) return undefined
  const [, authorization = ''] = headers.find(([name]) => name === 'Authorization') ?? []
  const token = /^(?:bearer|dpop) +(\S+) *$/i.exec(authorization)?.[1] ?? ''
  const isRead = method === 'GET' || method === 'HEAD' || part === 'explain'
  if (secrets.some((secret) => response.body.includes(secret))) return 'it shows a secret'
  if (token === delegate.token) {
    if (!isRead || kind !== 'users' || path.endsWith('/links'))
      return `${method} of ${path} by an administrator of a group`
    return delegate.hidden.some((id) => response.body.includes(id)) ? 'it shows what is hidden' : undefined
  }
  const needed = `admin:${kind}:${isRead ? 'read' : 'write'}`
  if (!administrator.tokens.get(token)?.includes(needed)) return `${method} of ${path} without ${needed}`
  const isShownAgain = isRead || response.headers['idempotent-replayed'] !== undefined
  if (isShownAgain && response.body.includes('"client_secret"')) return 'it shows a secret again'
  return body.includes('admin:keys:write') && !isRead ? 'a client that may more than its maker' : undefined
}
