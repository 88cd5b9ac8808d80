import { byClient } from './by-client.ts'
import type { Answer } from './connection.ts'
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
  readonly userIds: readonly string[]
}

const root = '/api/admin/v1'
const reading = ['admin:users:read', 'admin:clients:read']
/** What the client that administers may do. */
export const adminScope = [...reading, 'admin:clients:write']
const scopes = [adminScope, adminScope, adminScope, adminScope, reading, ['admin:users:write']] as const

/** A request to the admin API, or for a token for it. */
export function administer(world: World, dice: Dice): Draft | undefined {
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
  if (dice.oneIn(2)) return read(world, dice, headers)
  return change(world, dice, headers, tokens.get(access)?.includes('admin:clients:write') ?? false)
}

function read(world: World, dice: Dice, headers: readonly Pair[]): Draft {
  const query = dice.pick<Pair>([
    ['limit', '2'],
    ['limit', '201'],
    ['after', dice.pick(nasty)],
    ['origin', 'registered'],
    ['username', 'bob'],
  ])
  const path = dice.pick([
    '/users',
    '/clients',
    `/users/${segment(dice.draw(world.administrator.userIds), dice)}`,
    `/clients/${segment(dice.draw(world.clients)?.id, dice)}`,
    `/clients/${segment(dice.draw([...world.administrator.added.keys()]), dice)}`,
    '/openapi.json',
  ])
  return { method: 'GET', path: root + path, query: dice.oneIn(3) ? [query] : [], headers }
}

/** Members that only a client that registers itself has. */
const registered = [
  'application_type',
  'response_types',
  'software_id',
  'default_max_age',
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
      json: { ...name, scope: 'admin:users:write', grant_types: ['client_credentials'] },
    },
    { ...conditional, method: 'PATCH', path: one, json },
    { ...conditional, method: 'PATCH', path: one, json: name },
    { ...conditional, method: 'DELETE', path: one },
    { ...post, path: `${one}/secret`, json: { keep_old_seconds: dice.below(3) } },
    { ...post, path: `${one}/${dice.pick(['lock', 'unlock', 'x'])}` },
    { ...post, path: `${root}/users`, json: { username: 'dave', email: 'dave@example.test' } },
    { ...conditional, method: dice.pick(['PATCH', 'DELETE']), path: `${root}/users/${dice.draw(userIds)}` },
  ])
}

function segment(id: string | undefined, dice: Dice): string {
  return encodeURIComponent((dice.oneIn(8) ? dice.pick(nasty) : (id ?? 'none')).toWellFormed())
}

/** Stores a client that was added or changed; a repeated request adds none. */
export function learnAdministration(
  content: Record<string, unknown>,
  { headers, status }: Answer,
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

/** What a success of the admin API does without a right; undefined if nothing. */
export function faultOfAdministration(
  path: string,
  { method, headers, body, bytes }: Sent,
  answer: Answer,
  { administrator }: World,
): string | undefined {
  const [, kind] = /^\/api\/admin\/v1\/+(users|clients)\b/.exec(path) ?? []
  if (kind === undefined || answer.status >= 300 || method === 'OPTIONS' || bytes) return undefined
  const [, authorization = ''] = headers.find(([name]) => name === 'Authorization') ?? []
  const token = /^(?:bearer|dpop) +(\S+) *$/i.exec(authorization)?.[1] ?? ''
  const isRead = method === 'GET' || method === 'HEAD'
  const needed = `admin:${kind}:${isRead ? 'read' : 'write'}`
  if (!administrator.tokens.get(token)?.includes(needed)) return `${method} of ${path} without ${needed}`
  const isShownAgain = isRead || answer.headers['idempotent-replayed'] !== undefined
  if (isShownAgain && answer.body.includes('"client_secret"')) return 'it shows a secret again'
  return body.includes('admin:users:write') && !isRead ? 'a client that may more than its maker' : undefined
}
