import type { FastifyInstance } from 'fastify'
import { insert, removeUser, update } from '../../domain/decision.ts'
import type { User } from '../../domain/model.ts'
import { openStore } from '../../storage/open.ts'
import { type FindKind, RecordExists, type Store } from '../../storage/store.ts'
import { type Mounts, type NestedIssuer, openNested } from '../mount.ts'
import type { DevDeps } from '../part.ts'
import type { WatchedProfile } from './profile.ts'
import { stepOf, tokensIn } from './step.ts'

/** Starts the real server once more, with the users of the outer one and hooks that misbehave according to the profile. */
export async function openIssuer(
  { profile, conduct }: WatchedProfile,
  issuer: string,
  deps: DevDeps,
  outer: Mounts['outer'],
): Promise<NestedIssuer> {
  const { keys, clock } = deps
  const store = withUsersOf(deps.store, await openStore('sqlite::memory:'))
  const { pathname: prefix } = new URL(issuer)
  /** Records requests and alters responses. */
  const misbehave = (app: FastifyInstance) => {
    const altered = new WeakSet<object>()
    app.addHook('preValidation', async (request) => {
      if (profile.alterRequest?.(request)) altered.add(request)
    })
    app.addHook('onSend', async (request, reply, payload) => {
      if (request.method === 'OPTIONS') return payload
      const body = typeof payload === 'string' || Buffer.isBuffer(payload) ? payload.toString() : ''
      const isAltered = altered.has(request)
      const step = { ...stepOf(request, reply, body, { prefix, issuer, now: clock() }), isAltered }
      const changed = await profile.alter?.({ step, body, reply, issuer, keys, conduct })
      // The client knows the tokens of the response that it receives.
      const hasOtherTokens = changed !== undefined && step.place === 'token'
      conduct.add(
        hasOtherTokens ? { ...step, gave: tokensIn(changed, step.at) } : step,
        changed !== undefined,
      )
      return changed ?? payload
    })
  }
  return openNested(deps, outer, {
    config: { ...deps.config, issuer, resources: [] },
    store,
    prepare: misbehave,
  })
}

/** A store that copies each user from the outer store before it looks the user up. Everything else is its own. */
function withUsersOf(outer: Pick<Store, 'find' | 'list'>, own: Store): Store {
  const copy = async (user: User) => {
    const known = await own.find('user', user.id)
    if (JSON.stringify(known) === JSON.stringify(user)) return
    const write = known === undefined ? insert('user', user) : update('user', user)
    await own.write(write).catch((error: unknown) => {
      // Another request has copied the user in the meantime.
      if (!(error instanceof RecordExists)) throw error
    })
  }
  const refresh = async (kind: FindKind, key: string) => {
    if (kind !== 'user' && kind !== 'userByLogin') return
    const there = await outer.find(kind, key)
    if (there !== undefined) return copy(there)
    const here = await own.find(kind, key)
    if (here !== undefined) await own.write(removeUser(here.id, here.updatedAt))
  }
  return {
    ...own,
    find: async (kind, key) => {
      await refresh(kind, key)
      return own.find(kind, key)
    },
    list: async (kind) => {
      if (kind === 'user') for (const user of await outer.list('user')) await copy(user)
      return own.list(kind)
    },
    transact: async (kind, key, decide) => {
      await refresh(kind, key)
      return own.transact(kind, key, decide)
    },
  }
}
