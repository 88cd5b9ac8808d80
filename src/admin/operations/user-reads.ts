import type { Session } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { describeSignIn } from '../../users/factors.ts'
import { everyConnection } from '../../users/rules/access.ts'
import { isSessionLive } from '../../users/rules/session.ts'
import { type Call, listed, type Operation, pageOfAll } from './operation.ts'
import { requireFound } from './rules.ts'
import { ConnectionResource, listQuery, pageOf, SessionResource, SignIn } from './schema.ts'

/** @throws {OAuthError} `not_found` */
async function userIdOf({ deps, param }: Call): Promise<string> {
  return requireFound(await deps.store.find('user', param('sub')), 'user').id
}

export const readSignIn: Operation = {
  operationId: 'readSignIn',
  area: 'users',
  kind: 'read',
  url: '/users/:sub/sign-in',
  delegates: false,
  summary: 'Read what signs a user in besides a password, and how often that failed lately',
  response: SignIn,
  perform: async (call) => ({ body: await describeSignIn(call.deps.store, await userIdOf(call)) }),
}

export const listSessions: Operation = {
  operationId: 'listSessions',
  area: 'users',
  kind: 'list',
  url: '/users/:sub/sessions',
  delegates: true,
  summary:
    'List the browsers in which a user is signed in, in the order of their ids; networks, not addresses',
  response: pageOf(SessionResource, 'Sessions'),
  querystring: listQuery({}),
  perform: async (call) => {
    const { store, clock } = call.deps
    const all = await store.listOf('session', await userIdOf(call))
    const live = all.filter((one) => isSessionLive(one, clock()))
    const find = async (page: Parameters<typeof pageOfAll>[2]) => pageOfAll(live, ({ id }) => id, page)
    return listed(call, find, ({ id }) => id, describeSession)
  },
}

export const listGrants: Operation = {
  operationId: 'listGrants',
  area: 'users',
  kind: 'list',
  url: '/users/:sub/grants',
  delegates: true,
  summary: 'List the clients that have valid grants of a user, or a remembered consent',
  response: pageOf(ConnectionResource, 'Grants'),
  querystring: listQuery({}),
  perform: async (call) => {
    const { store, clock } = call.deps
    const userId = await userIdOf(call)
    const { page: all } = await store.connections(userId, { now: clock(), limit: everyConnection, offset: 0 })
    const keyOf = ({ clientId }: { readonly clientId: string }) => clientId
    return listed(
      call,
      async (page) => pageOfAll(all, keyOf, page),
      keyOf,
      ({ clientId, grants, remembered }) => ({ client_id: clientId, grants, remembered }),
    )
  },
}

/** Describes a session. Its id is the hash of the cookie, and no credential. */
export function describeSession({
  id,
  userId,
  browser,
  from,
  methods,
  authenticatedAt,
  createdAt,
  ...ends
}: Session) {
  return {
    session_id: id,
    sub: userId,
    ...omitUndefined({ browser, from }),
    authenticated_at: authenticatedAt,
    amr: methods,
    created_at: createdAt,
    ends_at: Math.min(ends.idleExpiresAt, ends.expiresAt),
  }
}
