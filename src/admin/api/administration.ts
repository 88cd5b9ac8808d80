import type { FastifyRequest, preHandlerAsyncHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import type { AuditContext } from '../../domain/audit.ts'
import { multiFactor } from '../../domain/authentication-context.ts'
import { check } from '../../domain/check.ts'
import type { Write } from '../../domain/decision.ts'
import type { OAuthError } from '../../domain/errors.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import type { Needs } from '../../feature/deps.ts'
import { addressPrefix } from '../../http/address-prefix.ts'
import type { Store } from '../../storage/store.ts'
import { isAdministrator, needsSecondFactor, storeRequiring } from '../../users/administrators.ts'
import { administersAny, type OwnGroups, type Reach, reachOf, readGroupsOf } from '../../users/delegation.ts'
import { listGroups } from '../../users/groups.ts'
import { readOutside } from '../../users/reading.ts'
import { idOfPersonalToken } from '../../users/rules/personal-token.ts'
import type { AdminScope } from '../operations/api-scopes.ts'
import { authorityFault, type Subject } from '../operations/authority.ts'
import type { Operation } from '../operations/operation.ts'
import { assertAdministrator, assertClientMay, assertWithToken, type Caller } from '../operations/rules.ts'

declare module 'fastify' {
  interface FastifyInstance {
    readonly administration: Administration
  }
  interface FastifyRequest {
    /** The groups of a caller who administers the members of some groups only. */
    delegatedBy: OwnGroups | undefined
  }
}

/** What every resource of the admin API needs. */
export interface Administration {
  /**
   * Hooks: the access token has the scope, and its client and its user may use it now.
   */
  allow(
    scope: AdminScope,
    operation: Pick<Operation, 'delegates' | 'personalTokens' | 'needsRecentSignIn'>,
  ): { readonly onRequest: preHandlerAsyncHookHandler[]; readonly config: object }
  /** The caller of a request that these hooks let through. */
  callerOf(request: FastifyRequest): Caller
  /** The actor, for the audit log. */
  contextOf(request: FastifyRequest): AuditContext
  /** Checks that the caller may call an operation about this. @throws {OAuthError} `access_denied`, `not_found` */
  assertMay(request: FastifyRequest, subject: Subject): Promise<void>
  /** The same in the transaction of a change: what it was based on may have ended in the meantime. */
  requireMay(request: FastifyRequest, subject?: Subject): Write
  /** A store that makes each change only if the caller may make it at that time. */
  storeFor(request: FastifyRequest, subject?: Subject): Pick<Store, 'transact' | 'write'>
  /** What the caller can see; undefined: everything. */
  reachFor(request: FastifyRequest): Promise<Reach | undefined>
}

/** Decorates `app.administration`. */
export const administration = fp<Needs<'config' | 'store' | 'clock' | 'service'>>(
  async (app, { config, store, clock, service }) => {
    const { group, secondFactorSeconds } = config.admin
    const isStrict = needsSecondFactor(config)
    const { resourceMetadataUrl: resourceMetadata } = service

    /** A token that is bound to a key is challenged by its scheme. */
    const challengeOf = ({ access }: FastifyRequest) => {
      const { confirmation = {} } = access ?? {}
      const scheme = app.tokenSchemes().find(({ member }) => Object.hasOwn(confirmation, member))
      return { scheme: scheme?.name ?? 'Bearer', resourceMetadata }
    }

    const callerOf = ({ access }: FastifyRequest): Caller => {
      if (access === undefined) throw new Error('the guard lets nothing through without an access token')
      return access.personalTokenId === undefined ? access : { ...access, kind: 'personal token' }
    }

    app.decorateRequest('delegatedBy', undefined)

    // At every request, and not only when the token is issued: what made it possible may have ended.
    const assertAllowed = (
      scope: AdminScope,
      { delegates, personalTokens }: Pick<Operation, 'delegates' | 'personalTokens'>,
    ): preHandlerAsyncHookHandler =>
      async function assertAllowed(request) {
        const caller = callerOf(request)
        if (caller.kind === 'personal token') assertWithToken(personalTokens)
        else {
          const client = await store.find('client', request.access?.clientId ?? '')
          assertClientMay(client, caller, scope, challengeOf(request))
        }
        if (caller.kind === 'client') return
        const groups = await readOutside(store, (read) => readGroupsOf(read, caller.sub))
        const own = new Set(groups.map(({ id }) => id))
        const isUser = caller.kind === 'user'
        if (isUser && delegates && !isAdministrator(groups, group) && (await administersSome(own)))
          request.delegatedBy = own
        else assertAdministrator(groups, group)
      }
    const administersSome = (own: OwnGroups) => readOutside(store, (read) => administersAny(read, own))

    const requireMay = (request: FastifyRequest, subject: Subject = {}): Write => {
      const caller = { ...callerOf(request), isDelegate: request.delegatedBy !== undefined }
      let fault: OAuthError | undefined
      return {
        op: 'require',
        condition: {
          rule: 'lychgate-admin-authority',
          why: 'the caller may no longer do this',
          *holds(read) {
            fault = yield* authorityFault(read, caller, subject, group)
            return fault === undefined
          },
          error: () => fault as OAuthError, // it did not hold
        },
      }
    }

    const twoFactors = app.requireAuthentication({
      acrValues: [multiFactor],
      maxAgeSeconds: secondFactorSeconds,
    })
    const recentSignIn = app.requireAuthentication({ maxAgeSeconds: secondFactorSeconds })
    /** A client that acts for itself does not sign in, and the owner of a personal token did so when it was made. */
    const ofUsers = (demand: preHandlerAsyncHookHandler): preHandlerAsyncHookHandler =>
      async function assertSignIn(request, reply) {
        return callerOf(request).kind === 'user' ? demand.call(this, request, reply) : undefined
      }
    /** What a change asks of the sign-in. */
    const demandOf = (scope: AdminScope, isRecent = false) => {
      if (scope.endsWith(':write') && isStrict) return [ofUsers(twoFactors)]
      return isRecent ? [ofUsers(recentSignIn)] : []
    }

    app.decorate('administration', {
      allow: (scope, operation) => ({
        onRequest: [
          app.requireScope(scope),
          assertAllowed(scope, operation),
          ...demandOf(scope, operation.needsRecentSignIn),
        ],
        config: { limit: 'token' },
      }),
      callerOf,
      contextOf: (request) => {
        const { kind, sub } = callerOf(request)
        const { clientId = '', personalTokenId } = request.access ?? {}
        const file = fileOf(request)
        const via = kind === 'user' ? clientId : undefined
        const personal = personalTokenId && idOfPersonalToken({ id: personalTokenId })
        const facts = { actor: sub, ...omitUndefined({ via, personal, file }), request: request.id }
        return { by: 'operator', at: clock(), from: addressPrefix(request.ip), facts }
      },
      assertMay: async (request, subject) => {
        const caller = { ...callerOf(request), isDelegate: request.delegatedBy !== undefined }
        const fault = await readOutside(store, (read) => authorityFault(read, caller, subject, group))
        if (fault !== undefined) throw fault
      },
      requireMay,
      storeFor: (request, subject) => storeRequiring(store, () => requireMay(request, subject)),
      reachFor: async ({ delegatedBy }) =>
        delegatedBy === undefined ? undefined : reachOf(await listGroups(store), delegatedBy, group),
    })
  },
  { name: 'administration', dependencies: ['guard'] },
)

/** Returns the file that a change comes from, as its sender says, for the audit log. */
function fileOf({ method, headers }: FastifyRequest): string | undefined {
  const sent = headers['audit-file']
  if (sent === undefined || method === 'GET' || method === 'HEAD') return undefined
  const file = typeof sent === 'string' && /^[\x21-\x7e]{1,1800}$/.test(sent) ? decoded(sent) : undefined
  check(
    file !== undefined && /^[^\p{C}\p{Zl}\p{Zp}]{1,200}$/u.test(file),
    'lychgate-admin-audit-file',
    'invalid_request',
    'Audit-File must be a percent-encoded text of 1 to 200 visible characters',
  )
  return file
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
