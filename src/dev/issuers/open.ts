import type { FastifyInstance } from 'fastify'
import { openStore } from '../../storage/open.ts'
import { type Mounts, settle } from '../mount.ts'
import type { DevDeps } from '../plugin.ts'
import { withUsersOf } from '../same-users.ts'
import type { Conduct } from './conduct.ts'
import type { Profile } from './profile.ts'
import { type Step, stepOf, tokensIn } from './step.ts'

/** A misbehaving issuer at work. */
export interface OpenIssuer {
  readonly app: FastifyInstance
  close(): Promise<void>
}

/**
 * Starts the real server once more, at this issuer, with an empty store in memory, the users and keys of the outer one,
 * and a liar at the door.
 */
export async function openIssuer(
  profile: Profile,
  issuer: string,
  conduct: Conduct,
  { config: outerConfig, store: outerStore, keys, clock, random, buildNested }: DevDeps,
  outer: Mounts['outer'],
): Promise<OpenIssuer> {
  const config = { ...outerConfig, issuer, resources: [] }
  const own = await openStore('sqlite::memory:')
  const store = withUsersOf(outerStore, own)
  const app = await buildNested({ config, store, keys, clock, random })
  const { pathname: prefix } = new URL(issuer)
  settle(app, prefix, outer)
  installFaultHooks(app, profile, conduct, { issuer, prefix, keys, clock })
  await app.ready()
  const close = async () => {
    await app.close()
    await own.close()
  }
  return { app, close }
}

interface Place extends Pick<DevDeps, 'keys' | 'clock'> {
  readonly issuer: string
  readonly prefix: string
}

/** Records requests and alters responses according to the profile. */
function installFaultHooks(app: FastifyInstance, profile: Profile, conduct: Conduct, place: Place): void {
  const { issuer, prefix, keys, clock } = place
  const altered = new WeakSet<object>()
  app.addHook('preValidation', async (request) => {
    if (profile.ask?.(request)) altered.add(request)
  })
  app.addHook('onSend', async (request, reply, payload) => {
    if (request.method === 'OPTIONS') return payload
    const body = typeof payload === 'string' || Buffer.isBuffer(payload) ? payload.toString() : ''
    const isAltered = altered.has(request)
    const step = { ...stepOf(request, reply, body, { prefix, issuer, now: clock() }), isAltered }
    const said = await profile.lie?.({ step, body, reply, issuer, keys, conduct })
    conduct.add(said === undefined ? step : after(step, said), said !== undefined)
    return said ?? payload
  })
}

/** The step as the client knows it. */
function after(step: Step, said: string): Step {
  const { gave, at } = step
  return { ...step, gave: step.place === 'token' ? tokensIn(said, at) : gave }
}
