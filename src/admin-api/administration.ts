import type { FastifyRequest, preHandlerAsyncHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import type { AppDeps } from '../deps.ts'
import type { AuditContext } from '../domain/audit.ts'
import { multiFactor } from '../domain/authentication-context.ts'
import { single } from '../domain/parameters.ts'
import { addressPrefix } from '../http/address-prefix.ts'
import { cursorOf, readCursor } from '../http/cursor.ts'
import { parametersOf } from '../http/parameters.ts'
import type { Numbered, RowPage } from '../storage/store.ts'
import { isAdministrator, needsSecondFactor } from '../users/administrators.ts'
import { groupsOf } from '../users/groups.ts'
import { assertAdministrator, assertClientMay, assertMayChange, type Caller } from './rules.ts'
import type { AdminScope } from './scopes.ts'

declare module 'fastify' {
  interface FastifyInstance {
    readonly administration: Administration
  }
}

/** What every resource of the admin API needs. */
export interface Administration {
  /** Hooks: the access token has the scope, and its client and its user may use it now. */
  allow(scope: AdminScope): { readonly onRequest: preHandlerAsyncHookHandler[]; readonly config: object }
  /** The caller of a request that these hooks let through. */
  callerOf(request: FastifyRequest): Caller
  /** The actor, for the audit log. */
  contextOf(request: FastifyRequest): AuditContext
  /** Checks that the caller may change this user. @throws {OAuthError} `access_denied` */
  assertMayChange(request: FastifyRequest, userId: string): Promise<void>
  /** The page that the query of a request asks for, with a row more: it says whether there is another page. */
  pageOf(request: FastifyRequest): RowPage & { readonly size: number }
}

/** Decorates `app.administration`. */
export const administration = fp<AppDeps>(
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
      return access
    }

    // At every request, and not only when the token is issued: what made it possible may have ended.
    const assertAllowed =
      (scope: AdminScope): preHandlerAsyncHookHandler =>
      async (request) => {
        const caller = callerOf(request)
        const client = await store.find('client', request.access?.clientId ?? '')
        assertClientMay(client, caller, scope, challengeOf(request))
        if (caller.kind === 'user') assertAdministrator(await groupsOf(store, caller.sub), group)
      }

    const demand = app.requireAuthentication({
      acrValues: [multiFactor],
      maxAgeSeconds: secondFactorSeconds,
    })
    /** A client that acts for itself does not sign in. */
    const assertTwoFactors: preHandlerAsyncHookHandler = async function (request, reply) {
      return callerOf(request).kind === 'user' ? demand.call(this, request, reply) : undefined
    }

    app.decorate('administration', {
      allow: (scope) => ({
        onRequest: [
          app.requireScope(scope),
          assertAllowed(scope),
          ...(scope.endsWith(':write') && isStrict ? [assertTwoFactors] : []),
        ],
        config: { limit: 'token' },
      }),
      callerOf,
      contextOf: (request) => {
        const { kind, sub } = callerOf(request)
        const { clientId = '' } = request.access ?? {}
        const facts = { actor: sub, ...(kind === 'user' && { via: clientId }), request: request.id }
        return { by: 'operator', at: clock(), from: addressPrefix(request.ip), facts }
      },
      assertMayChange: async (request, userId) => {
        assertMayChange(callerOf(request), isAdministrator(await groupsOf(store, userId), group))
      },
      pageOf: ({ query }) => {
        const parameters = parametersOf(query)
        const size = Number(single(parameters, 'limit') ?? 50)
        return { size, limit: size + 1, after: readCursor(single(parameters, 'after')) }
      },
    })
  },
  { name: 'administration', dependencies: ['guard'] },
)

/** Writes a page of a list, with the cursor of the next one. */
export function writePage<T>(rows: readonly Numbered<T>[], size: number, describe: (row: T) => object) {
  const shown = rows.slice(0, size)
  const last = shown.at(-1)
  return {
    items: shown.map(({ row }) => describe(row)),
    ...(rows.length > size && last !== undefined && { next: cursorOf(last.seq) }),
  }
}

/** Returns a key that can be in the store: no identifier has other characters, and a database may reject some. */
export function storedKey(text: string): string {
  return /^[\x21-\x7e]+$/.test(text) ? text : ''
}
