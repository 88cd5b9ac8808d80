import type { Operation } from '../admin/operations/operation.ts'
import type { Config } from '../config/schema.ts'
import type { Store } from '../storage/store.ts'
import { systemClock, systemRandom } from '../system/system.ts'
import { CommandFailed } from './failure.ts'
import type { AdminApi } from './files/admin-api.ts'
import { connect, type ServerFlags } from './files/open-target.ts'
import { findGroup, findUser, isGroupId, isSub } from './find.ts'
import { withStore } from './open.ts'
import { administratorsIn, operatorContext } from './operator.ts'
import { visible } from './print.ts'

type Json = Readonly<Record<string, unknown>>
type Params = Readonly<Record<string, string>>

/** The user that a command names. */
export interface NamedUser {
  readonly sub: string
  readonly username: string
}

/** A group that a command names. */
export interface NamedGroup {
  readonly group_id: string
  readonly name: string
}

/** What a command works on: the store of this configuration, or a running server. */
export interface Operator {
  /** @throws {CommandFailed} if no user has this user name, email address or sub. */
  findUser(text: string): Promise<NamedUser>
  /** @throws {CommandFailed} if no group has this name or id. */
  findGroup(text: string): Promise<NamedGroup>
  /** The store, if it is one. */
  readonly store?: Store
  /** Performs an operation on what the parts of its path name, and returns the body of its response. */
  perform(operation: Operation, params: Params, body?: object): Promise<Json>
  /** Reads a whole list. */
  list(operation: Operation, params: Params): Promise<readonly Json[]>
}

/**
 * Runs a command where its flags say. The same operations are performed in both places.
 * @param scopes Of the admin API, for a server.
 */
export async function withOperator(
  flags: ServerFlags,
  scopes: readonly string[],
  action: (operator: Operator) => Promise<void>,
): Promise<void> {
  const api = await connect(flags, scopes)
  if (api !== undefined) return action(remote(api))
  await withStore(flags, (store, config) => action(local(store, config, administratorsIn(config, flags))))
}

function local(store: Store, config: Config, administrators: string | undefined): Operator {
  return operator(
    async (operation, params, { body, query = {} }) => {
      const outcome = await operation.perform(
        {
          deps: { config, store, random: systemRandom, clock: systemClock },
          caller: undefined,
          context: operatorContext(),
          body,
          isDelegate: false,
          administrators,
          store,
          param: (name) => params[name] ?? '',
          query: (name) => query[name],
          address: '',
          // It is changed as it is at this moment.
          assertSeen: () => undefined,
          reach: async () => undefined,
          requireMay: () => [],
          log: { error: (line) => void process.stderr.write(`lychgate: ${visible(line)}\n`) },
        },
        () => [],
      )
      return (outcome?.body ?? {}) as Json // what a response has
    },
    {
      store,
      findUser: async (text) => {
        const { id: sub, username } = await findUser(store, text)
        return { sub, username }
      },
      findGroup: async (text) => {
        const { id: group_id, name } = await findGroup(store, text)
        return { group_id, name }
      },
    },
  )
}

function remote(api: AdminApi): Operator {
  const find = async (
    list: string,
    text: string,
    isId: boolean,
    filter: string,
  ): Promise<Json | undefined> => {
    if (isId) return api.find(`/${list}/${text}`, text)
    const { body } = await api.send('GET', `/${list}?limit=2&${filter}=${encodeURIComponent(text)}`, text)
    const [found] = body['items'] as readonly Json[] // as the API describes it
    return found
  }
  return operator(
    async (operation, params, { body, query }) => {
      const { methodOf } = await import('../admin/operations/operation.ts')
      const { kind, url } = operation
      const path = url.replaceAll(/:(\w+)/g, (_, name) => encodeURIComponent(params[name] ?? ''))
      // What is deleted or changed has to be seen, and a change in between is a reason to look again.
      const isConditional = kind === 'delete' || kind === 'change'
      const ifMatch = isConditional ? (await api.send('GET', path, '')).etag : undefined
      const address = query === undefined ? path : `${path}?${new URLSearchParams(query)}`
      const sent = { ...(body && { body }), ...(ifMatch && { ifMatch }) }
      return (await api.send(methodOf(operation), address, '', sent)).body
    },
    {
      findUser: async (text) => {
        const found = await find('users', text, isSub(text), 'login')
        if (found === undefined) throw new CommandFailed('no user has this user name, email address or sub')
        return { sub: String(found['sub']), username: String(found['username']) }
      },
      findGroup: async (text) => {
        const found = await find('groups', text, isGroupId(text), 'name')
        if (found === undefined) throw new CommandFailed('no group has this name or id')
        return { group_id: String(found['group_id']), name: String(found['name']) }
      },
    },
  )
}

type Send = (
  operation: Operation,
  params: Params,
  sent: { readonly body?: object | undefined; readonly query?: Readonly<Record<string, string>> },
) => Promise<Json>

function operator(send: Send, sources: Pick<Operator, 'findUser' | 'findGroup' | 'store'>): Operator {
  return {
    ...sources,
    perform: (operation, params, body) => send(operation, params, { body }),
    async list(operation, params) {
      const items: Json[] = []
      for (let next: unknown; ; ) {
        const query = { limit: '200', ...(typeof next === 'string' && { after: next }) }
        const page = await send(operation, params, { query })
        items.push(...(page['items'] as readonly Json[])) // what a list has
        next = page['next']
        if (next === undefined) return items
      }
    },
  }
}
