import fp from 'fastify-plugin'
import type { Origins } from '../config/setting.ts'
import { clientExaminer } from '../doctor/clients.ts'
import { examineInside } from '../doctor/inside.ts'
import { signInOf, subjectOf } from '../domain/jwt-access-token.ts'
import type { LiveDefinitions } from '../feature/definitions.ts'
import type { AppDeps, Deps, Development, Needs, OwnGuardOptions } from '../feature/deps.ts'
import { describeService, liveService } from '../feature/service.ts'
import { declared } from '../features.ts'
import { authenticationOf, callerKind } from '../guard/access.ts'
import { type Access, guard, type Rejected } from '../guard/guard.ts'
import { tokenReader } from '../http/token-reader.ts'
import { createGuardedFetch } from '../outbound/guarded-fetch.ts'
import { settingsOf } from '../settings/effective.ts'
import { partOf } from '../system/peers.ts'
import { threadCount } from '../users/password-threads.ts'
import { createPasswordQueue } from '../users/passwords.ts'

/**
 * Computes once what plugins need in addition to the application's options.
 * @throws {Error} for a development server with a production configuration.
 */
export function appDepsOf(
  base: Deps,
  definitions: LiveDefinitions,
  development?: Development,
  origins: Origins = new Map(),
): AppDeps {
  const { config } = base
  if (development !== undefined && config.mode !== 'dev')
    throw new Error('a production server has nothing of a development server')
  const service = liveService(() => describeService(config, declared), definitions.revision)
  const examineLastClients = clientExaminer(base, Object.entries(declared.clientProfiles))
  const { peers } = base
  const checkHash = createPasswordQueue(
    partOf(config.passwordQueue, peers),
    Math.max(1, Math.floor(threadCount / (peers?.count ?? 1))),
  )
  const { perOriginPerMinute, perNetworkPerMinute, ...limits } = config.fetch
  return {
    ...base,
    service,
    definitions,
    declared,
    fetchUrl: createGuardedFetch({
      limits: {
        ...limits,
        perOriginPerMinute: partOf(perOriginPerMinute, peers),
        perNetworkPerMinute: partOf(perNetworkPerMinute, peers),
      },
      isDevelopment: development !== undefined,
      clock: base.clock,
    }),
    checkPassword: development?.withKnownPasswords(checkHash) ?? checkHash,
    examine: (ring, now) => {
      const clients = examineLastClients()
      const findings = [...examineInside(config, ring, now), ...(clients?.findings ?? [])]
      return { findings, ...(clients && { clientsAt: clients.at }) }
    },
    guard: ownGuard({ ...base, service }),
    settings: () => settingsOf(definitions.fileConfig, origins),
  }
}

/** The guard of this server's own API: it reads tokens from the store instead of introspecting over HTTP. */
function ownGuard(deps: Needs<'keys' | 'store' | 'service' | 'clock'>): AppDeps['guard'] {
  const { resources, resourceMetadataUrl: resourceMetadata } = deps.service
  const readToken = tokenReader(deps)
  const { store } = deps
  const verifyToken = async (text: string, withOwners: boolean): Promise<Access | Rejected> => {
    let owners: Access['owners']
    const readOwners = (grantId: string) => {
      owners = Promise.all([store.find('userOfGrant', grantId), store.find('clientOfGrant', grantId)])
      // Who awaits it gets the error. For a rejected token none does.
      owners.catch(() => undefined)
    }
    const finding = withOwners ? readToken.find(text, readOwners) : undefined
    const facts = await readToken(text, deps.clock(), finding)
    if (facts.kind === 'dead') return { rejected: facts.why }
    if (facts.kind === 'refresh') return { rejected: 'it is a refresh token' }
    const { grant, scope, resource: audience, confirmation } = facts
    const sub = subjectOf(grant)
    return {
      kind: callerKind(sub, grant.clientId),
      sub,
      clientId: grant.clientId,
      scope,
      audience,
      ...authenticationOf(signInOf(grant)),
      requestedClaims: grant.claims,
      ...(confirmation && { confirmation }),
      ...(owners && { owners }),
    }
  }
  const resource = resources.own.identifier
  return fp<OwnGuardOptions>(async (app, { readsOwners = false, verifyPersonalToken, ...options }) => {
    // A store in this process reads them as quickly when they are needed.
    const withOwners = readsOwners && store.isFar
    await app.register(guard, {
      ...options,
      verifyToken: async (text) => {
        const personal = await verifyPersonalToken?.(text)
        if (personal === undefined) return verifyToken(text, withOwners)
        return 'rejected' in personal
          ? personal
          : { ...personal, kind: 'user', clientId: '', audience: [resource] }
      },
      resource,
      clock: deps.clock,
      schemes: app.tokenSchemes(),
      resourceMetadata,
    })
  })
}
