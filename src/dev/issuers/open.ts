import type { FastifyInstance } from 'fastify'
import { insert, remove, removeUser, update, type Write } from '../../domain/decision.ts'
import type { Client, User } from '../../domain/model.ts'
// Brings `app.outgoing`.
import type {} from '../../http/outgoing.ts'
import type { KeyRing } from '../../keys/key-ring.ts'
import { openStore } from '../../storage/open.ts'
import { type FindKind, RecordExists, type Store } from '../../storage/store.ts'
import { type Mounts, type NestedIssuer, openNested } from '../mount.ts'
import type { DevDeps } from '../part.ts'
import type { WatchedProfile } from './profile.ts'
import { givesTokens, stepOf, tokensIn } from './step.ts'

/**
 * Starts the real server once more, with the users and arranged clients of the outer one, and hooks that misbehave
 * according to the profile.
 */
export async function openIssuer(
  { profile, conduct }: WatchedProfile,
  issuer: string,
  deps: DevDeps,
  outer: Mounts['outer'],
): Promise<NestedIssuer> {
  const { keys, clock } = deps
  const store = withContentsOf(deps.store, await openStore('sqlite::memory:'))
  const { pathname: prefix } = new URL(issuer)
  /** Records requests and alters responses. */
  const misbehave = (app: FastifyInstance) => {
    const altered = new WeakSet<object>()
    app.addHook('preValidation', async (request) => {
      if (profile.alterRequest?.(request, conduct)) altered.add(request)
    })
    app.addHook('onSend', async (request, reply, payload) => {
      if (request.method === 'OPTIONS') return payload
      const body = typeof payload === 'string' || Buffer.isBuffer(payload) ? payload.toString() : ''
      const isAltered = altered.has(request)
      const step = { ...stepOf(request, reply, body, { prefix, issuer, now: clock() }), isAltered }
      const changed = await profile.alter?.({ step, body, reply, issuer, keys, conduct })
      // The client knows the tokens and codes of the response that it receives.
      const hasOtherTokens = changed !== undefined && givesTokens(step.place)
      conduct.add(
        hasOtherTokens ? { ...step, gave: tokensIn(changed, step.at) } : step,
        changed !== undefined,
      )
      return changed ?? payload
    })
    app.outgoing?.add(({ at, url: path, status }) => {
      // Without a response nothing is known about the client.
      if (profile.alterLogout === undefined || status === undefined) return
      const gave = { codes: [] }
      const sent = { at, endpoint: undefined, method: 'POST', path, status, isAltered: true, sent: {}, gave }
      conduct.add({ ...sent, place: 'logout' }, true)
      conduct.add({ ...sent, place: 'logout-response' }, false)
    })
  }
  return openNested({ ...deps, keys: withLogout(profile, keys) }, outer, {
    config: { ...deps.config, issuer, resources: [] },
    store,
    prepare: misbehave,
  })
}

/** The same keys, which sign other claims into logout tokens. */
function withLogout({ alterLogout }: WatchedProfile['profile'], keys: KeyRing): KeyRing {
  if (alterLogout === undefined) return keys
  const sign: KeyRing['sign'] = (algorithm, type, claims) =>
    keys.sign(algorithm, type, type === 'logout+jwt' ? alterLogout(claims) : claims)
  return Object.create(keys, { sign: { value: sign } })
}

/**
 * A store that copies each user, and each client that an operator arranged, from the outer store before it looks it up.
 * Everything else is its own: clients that register themselves, grants, sessions.
 */
function withContentsOf(outer: Pick<Store, 'find' | 'list'>, own: Store): Store {
  const copyUser = async (user: User) => {
    const known = await own.find('user', user.id)
    if (JSON.stringify(known) === JSON.stringify(user)) return
    await write(known === undefined ? insert('user', user) : update('user', user))
  }
  /** As they were copied: the use of a client is recorded here, too. */
  const copied = new Map<string, string>()
  const copyClient = async (client: Client) => {
    const existing = await own.find('client', client.id)
    const text = JSON.stringify(client)
    if (existing !== undefined && copied.get(client.id) === text) return
    copied.set(client.id, text)
    await write(existing === undefined ? insert('client', client) : update('client', client))
  }
  const write = async (one: Write) => {
    await own.write(one).catch((error: unknown) => {
      // Another request has copied it in the meantime.
      if (!(error instanceof RecordExists)) throw error
    })
  }
  const refreshUser = async (kind: 'user' | 'userByLogin', key: string) => {
    const there = await outer.find(kind, key)
    if (there !== undefined) return copyUser(there)
    const here = await own.find(kind, key)
    if (here !== undefined) await own.write(removeUser(here.id, here.updatedAt))
  }
  const refreshClient = async (key: string) => {
    const there = await outer.find('client', key)
    if (there !== undefined && there.origin !== 'registered') return copyClient(there)
    const here = await own.find('client', key)
    if (here !== undefined && here.origin !== 'registered') await own.write(remove('client', here.id))
  }
  const refresh = async (kind: FindKind, key: string) => {
    if (kind === 'user' || kind === 'userByLogin') await refreshUser(kind, key)
    if (kind === 'client') await refreshClient(key)
  }
  return {
    ...own,
    find: async (kind, key) => {
      await refresh(kind, key)
      return own.find(kind, key)
    },
    list: async (kind) => {
      if (kind === 'user') for (const user of await outer.list('user')) await copyUser(user)
      return own.list(kind)
    },
    transact: async (kind, key, decide) => {
      await refresh(kind, key)
      return own.transact(kind, key, decide)
    },
  }
}
