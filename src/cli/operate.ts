import type AjvCompiler from '@fastify/ajv-compiler'
import type { TSchema } from '@sinclair/typebox'
import type { Operation, Server } from '../admin/operations/operation.ts'
import type { Config } from '../config/schema.ts'
import { isLoopbackUri } from '../domain/redirect-uri.ts'
import { type LiveDefinitions, openDefinitions } from '../feature/definitions.ts'
import { describeService } from '../feature/service.ts'
import { declared, features } from '../features.ts'
import { RecordExists, type Store } from '../storage/store.ts'
import { systemClock, systemRandom } from '../system/system.ts'
import { describeGroup } from '../users/groups.ts'
import { describeUser } from '../users/rules/user.ts'
import { findByLogin } from '../users/search.ts'
import { CommandFailed, TryAgain } from './failure.ts'
import type { AdminApi, Use } from './files/admin-api.ts'
import { connect, type ServerFlags } from './files/open-target.ts'
import { findGroup, findUser, isGroupId, isSub, requireGroup, requireUser } from './find.ts'
import { openConfiguredKeys, withStore } from './open.ts'
import { administratorsIn, operatorContext } from './operator.ts'

/** The body of a response. */
export type Json = Readonly<Record<string, unknown>>
type Params = Readonly<Record<string, string>>

/** The user that a command names, as the admin API describes one. */
export interface NamedUser extends Json {
  readonly sub: string
  readonly username: string
}

/** A group that a command names. */
export type NamedGroup = Json & { readonly group_id: string; readonly name: string }

/** The scopes of the admin API for what reads and for what changes users. */
export const [readsUsers, changesUsers] = [
  ['admin:users:read'],
  ['admin:users:read', 'admin:users:write'],
] as const

/** Where a change comes from. */
export interface Origin {
  /** For the audit log. */
  readonly file?: string
  /** What it is about, in front of the messages of a server. */
  readonly what?: string
}

/** What a command works on: the store of this configuration, or a running server. */
export interface Operator {
  /** @throws {CommandFailed} if no user has this user name, email address or sub. */
  findUser(text: string): Promise<NamedUser>
  /** @throws {CommandFailed} if no group has this name or id. */
  findGroup(text: string): Promise<NamedGroup>
  /** Finds the user with this user name or email address. */
  findLogin(text: string): Promise<NamedUser | undefined>
  /** Finds a client by its id; a server requires `admin:clients:read`. */
  findClient(id: string): Promise<Json | undefined>
  /** The store, if it is one. */
  readonly store?: Store
  /** The configuration of the store. */
  readonly config?: Config
  /** The client that a server is called with. */
  readonly callerId?: string | undefined
  /** Why the last email could not be sent, if a store is where that is known. */
  unsent?: string
  /** Returns the same for what a file says. */
  from(origin: Origin): Operator
  /** Changes groups. A store makes all changes in one transaction; a server makes one after the other. */
  together(change: (operator: Operator) => Promise<void>): Promise<void>
  /** Performs an operation on what the parts of its path name, and returns the body of its response. */
  perform(operation: Operation, params: Params, body?: object, query?: Params): Promise<Json>
  /**
   * Changes what an operation reads.
   * @param bodyOf Returns the change, and nothing for what is deleted; it is called again if another change came first.
   */
  edit(
    read: Operation,
    change: Operation,
    params: Params,
    bodyOf: (found: Json) => object | undefined | Promise<object>,
  ): Promise<Json>
  /** Reads a list: all of it, or the first rows. */
  list(
    operation: Operation,
    params: Params,
    filter?: Readonly<Record<string, string>>,
    most?: number,
  ): Promise<readonly Json[]>
}

/**
 * Runs a command where its flags say. The same operations are performed in both places.
 * @param scopes Of the admin API, for a server, or what they follow from.
 */
export async function withOperator<T>(
  flags: ServerFlags,
  scopes: readonly string[] | Use,
  action: (operator: Operator) => Promise<T>,
): Promise<T> {
  const api = await connect(flags, scopes)
  if (api !== undefined) return action(remote(api))
  return withStore(flags, (store, config) =>
    action(operatorOn(store, config, administratorsIn(config, flags))),
  )
}

/** Returns the operations on a store that is open. */
export function operatorOn(
  store: Store,
  config: Config,
  administrators?: string,
  origin: Origin = {},
): Operator {
  const { file } = origin
  const here: Operator = operator(
    async (operation, params, { body, query = {}, tag: seen }) => {
      const { assertMatches } = await import('../admin/operations/rules.ts')
      if (operation.body !== undefined) await assertBody(operation.body, body ?? {})
      const definitions = await openDefinitions(store, config, declared.scopes)
      const outcome = await operation
        .perform(
          {
            deps: { config: definitions.config, store, random: systemRandom, clock: systemClock },
            server: serverOf(store, definitions),
            caller: undefined,
            context: { ...operatorContext(), ...(file !== undefined && { facts: { file } }) },
            body,
            isDelegate: false,
            administrators,
            store,
            param: (name) => params[name] ?? '',
            query: (name) => query[name],
            address: '',
            // Without a tag it is changed as it is at this moment.
            assertSeen: (tag) => {
              if (seen !== undefined) assertMatches(seen, tag)
            },
            reach: async () => undefined,
            requireMay: () => [],
            log: {
              error: (line) => {
                here.unsent = line
              },
            },
          },
          () => [],
        )
        .catch((error: unknown) => {
          if (!(error instanceof RecordExists)) throw error
          throw new CommandFailed(operation.taken ?? 'there is another one like it')
        })
      const tag = outcome !== undefined && 'tag' in outcome ? outcome.tag : undefined
      return { body: (outcome?.body ?? {}) as Json, tag } // what a response has
    },
    {
      store,
      config,
      from: (another) => operatorOn(store, config, administrators, another),
      together: async (change) => {
        const { changeGroupsTogether, Outdated } = await import('../users/groups.ts')
        const { keepAdministrator } = await import('../users/administrators.ts')
        await changeGroupsTogether(
          store,
          (groups) => change(operatorOn({ ...store, ...groups }, config)),
          (decision) => keepAdministrator(decision, administrators, systemClock()),
        ).catch((error: unknown) => {
          throw error instanceof Outdated ? new TryAgain(error.message) : error
        })
      },
      findUser: async (text) => describeUser(await findUser(store, text)),
      findGroup: async (text) => describeGroup(await findGroup(store, text)),
      findLogin: async (text) => {
        const { user } = await findByLogin(store, text)
        return user && describeUser(user)
      },
      findClient: async (id) => {
        const client = await store.find('client', id)
        return client && { client_id: id, client_name: client.name }
      },
    },
  )
  return here
}

type Validate = ReturnType<ReturnType<ReturnType<typeof AjvCompiler>>>
const compiled = new WeakMap<TSchema, Validate>()

/** Checks a body by the schema of its operation, as a server does. @throws {CommandFailed} */
async function assertBody(schema: TSchema, body: object): Promise<void> {
  const { strictSchemas, malformed } = await import('../http/strict-schema.ts')
  const { default: createCompiler } = await import('@fastify/ajv-compiler')
  const compile = () =>
    createCompiler()({}, { customOptions: strictSchemas })({ schema, method: '', url: '' })
  const validate = compiled.get(schema) ?? compile()
  compiled.set(schema, validate)
  // As it would be sent: without members that are undefined.
  if (!validate(JSON.parse(JSON.stringify(body))))
    throw new CommandFailed(malformed(validate.errors ?? [], 'body'))
}

/** What a command opens on a store for the operations that need it. */
function serverOf(store: Store, { config, configured }: LiveDefinitions): Server {
  return {
    openKeys: () => openConfiguredKeys(store, config),
    service: () => describeService(config, declared),
    definitions: () => ({ configured, changed: async () => {} }),
    preview: () => Promise.reject(new CommandFailed('a running server says it')),
    settings: () => [],
    async openDocuments() {
      const load = features.find((feature) => feature.loadPublishedClients)?.loadPublishedClients
      if (load === undefined) throw new CommandFailed('no client is known by a document here')
      const { createGuardedFetch } = await import('../outbound/guarded-fetch.ts')
      const isDevelopment = isLoopbackUri(config.issuer)
      return (await load())({
        config: { ...config, mode: isDevelopment ? 'dev' : 'serve' },
        store,
        clock: systemClock,
        fetchUrl: createGuardedFetch({ limits: config.fetch, isDevelopment, clock: systemClock }),
        declared,
        keys: { algorithms: ['RS256', 'ES256', 'EdDSA'] },
      })
    },
  }
}

// `as` in what follows: as the admin API describes them.
function remote(api: AdminApi, { file, what = '' }: Origin = {}): Operator {
  const findBy = async (list: string, filter: string, text: string): Promise<Json | undefined> => {
    const { body } = await api.send('GET', `/${list}?limit=2&${filter}=${encodeURIComponent(text)}`, text)
    const [found] = body['items'] as readonly Json[]
    return found
  }
  const findLogin = async (text: string) => (await findBy('users', 'login', text)) as NamedUser | undefined
  const there: Operator = operator(
    async (operation, params, { body, query, tag }) => {
      const { methodOf } = await import('../admin/operations/operation.ts')
      const { kind, url } = operation
      const path = url.replaceAll(/:(\w+)/g, (_, name) => encodeURIComponent(params[name] ?? ''))
      // What is deleted or changed has to be seen, and a change in between is a reason to look again.
      const isConditional = kind === 'delete' || kind === 'change'
      const ifMatch = isConditional ? (tag ?? (await api.send('GET', path, what)).etag) : undefined
      const address = query === undefined ? path : `${path}?${new URLSearchParams(query)}`
      const sent = { file, ...(body && { body }), ...(ifMatch && { ifMatch }) }
      const { body: found, etag } = await api.send(methodOf(operation), address, what, sent)
      return { body: found, tag: etag }
    },
    {
      callerId: api.callerId,
      from: (another) => remote(api, another),
      together: (change) => change(there),
      findLogin,
      findUser: async (text) =>
        requireUser(await (isSub(text) ? api.find(`/users/${text}`, text) : findLogin(text))) as NamedUser,
      findGroup: async (text) =>
        requireGroup(
          await (isGroupId(text) ? api.find(`/groups/${text}`, text) : findBy('groups', 'name', text)),
        ) as NamedGroup,
      findClient: (id) => api.find(`/clients/${encodeURIComponent(id)}`, id),
    },
  )
  return there
}

type Send = (
  operation: Operation,
  params: Params,
  sent: {
    readonly body?: object | undefined
    readonly query?: Params | undefined
    /** The entity tag of what is changed; absent: whatever it is. */
    readonly tag?: string | undefined
  },
) => Promise<{ readonly body: Json; readonly tag: string | undefined }>

function operator(send: Send, sources: Omit<Operator, 'perform' | 'list' | 'edit'>): Operator {
  return {
    ...sources,
    perform: async (operation, params, body, query) => (await send(operation, params, { body, query })).body,
    async edit(read, change, params, bodyOf) {
      const { retried } = await import('../admin/operations/operation.ts')
      return retried(async () => {
        const { body: found, tag } = await send(read, params, {})
        return (await send(change, params, { body: await bodyOf(found), tag })).body
      })
    },
    async list(operation, params, filter = {}, most = Number.POSITIVE_INFINITY) {
      const items: Json[] = []
      for (let next: unknown; ; ) {
        const limit = `${Math.min(200, most - items.length)}`
        const query = { ...filter, limit, ...(typeof next === 'string' && { after: next }) }
        const { body: page } = await send(operation, params, { query })
        items.push(...(page['items'] as readonly Json[])) // what a list has
        next = page['next']
        if (next === undefined || items.length >= most) return items
      }
    },
  }
}
