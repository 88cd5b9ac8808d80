import type { TSchema } from '@sinclair/typebox'
import type { FastifyInstance, HTTPMethods } from 'fastify'
import type { ConfiguredApis } from '../../domain/api-definitions.ts'
import type { AuditContext } from '../../domain/audit.ts'
import { methodsOf } from '../../domain/authentication-context.ts'
import { accept, andThen, type Decision, type Write } from '../../domain/decision.ts'
import { type Group, groupKind } from '../../domain/group.ts'
import { isBinding } from '../../domain/interaction.ts'
import type { User } from '../../domain/model.ts'
import type { Members, PreviewOf } from '../../feature/contributions.ts'
import type { AppDeps, Deps, Needs, PublishedClients } from '../../feature/deps.ts'
import { cursorOf, readCursor, readKeyCursor } from '../../http/cursor.ts'
import type { KeyRing } from '../../keys/key-ring.ts'
import type { DoneWord as WordAfter } from '../../pages/kit.ts'
import type { Numbered, RowPage, Store } from '../../storage/store.ts'
import type { Reach } from '../../users/delegation.ts'
import type { Subject } from './authority.ts'
import { type Caller, requireFound } from './rules.ts'

/** What an operation is about. Its scope in the admin API has this name: `admin:users:read`, `admin:users:write`. */
export type Area = 'users' | 'clients' | 'upstreams' | 'keys' | 'audit'

/** What a page can report as just done: a word in its address, because a redirect led there. */
export type DoneWord = WordAfter<'admin.done'>

/** `change` and `delete` need the entity tag of what they change; `end` is for what cannot be changed. */
export type Kind = 'list' | 'read' | 'create' | 'change' | 'delete' | 'end' | 'act'

/** What some operations need of a server; a command opens it for them. */
export interface Server {
  openKeys(): Promise<KeyRing>
  openDocuments(): Promise<PublishedClients>
  service(): AppDeps['service']
  definitions(): Definitions
  /** What a client would get by a grant, as the features of a running server say; a command cannot compute it. */
  preview(granted: Parameters<PreviewOf>[0]): Promise<Preview>
  /** Empty for a command: `lychgate config print` reads those of its host. */
  settings: AppDeps['settings']
}

/** What operators cannot store, and what a server does after a change of what they can. */
export interface Definitions {
  readonly configured: ConfiguredApis
  changed(): Promise<void>
}

/** Returns `definitions` of a running server. A change reaches its other workers, too. */
export function definitionsBy({
  definitions,
  peers,
}: Needs<'definitions'> & Partial<Needs<'peers'>>): Definitions {
  return {
    configured: definitions.configured,
    changed: async () => {
      await definitions.refresh()
      peers?.tell('definitions')
    },
  }
}

/** Whether the user of a grant may use its client, and what each token and response would contain. */
export interface Preview {
  readonly isAllowed: boolean
  readonly contents: Readonly<Record<string, Members>>
}

/** What a required kind of sign-in cannot reject: the preview is about the user, and not about how they sign in. */
const strongest = methodsOf({ password: true, codes: true, passkey: true }, true)

/** Returns `preview` of a running server. */
export function previewBy({ seams }: Pick<FastifyInstance, 'seams'>): Server['preview'] {
  return async (granted) => {
    const { client, grant } = granted
    const signIn = { userId: grant.userId ?? '', methods: strongest }
    const denial = await seams.userChecks.collect(client, signIn)
    return { isAllowed: !isBinding(denial), contents: (await seams.previews.collect(granted)) ?? {} }
  }
}

/** What a door (the admin API, an admin page, a command) gives to an operation. */
export interface Call<Body = unknown> {
  /** The store is for reading: what changes goes through `store` of the call. */
  readonly deps: Pick<Deps, 'config' | 'random' | 'clock'> & { readonly store: Store }
  readonly server: Server
  /** The user or client who calls; undefined: an operator at the machine, who is none of them. */
  readonly caller: (Pick<Caller, 'kind' | 'sub'> & Partial<Caller>) | undefined
  /** The actor, for the audit log, and the time of the call. */
  readonly context: AuditContext
  readonly body: Body
  /** Whether the caller administers the members of some groups only. */
  readonly isDelegate: boolean
  /** The group of administrators, which keeps one; undefined: an operator insists. */
  readonly administrators: string | undefined
  /** Writes only what the caller may still write. Every change of an operation goes through it. */
  readonly store: Pick<Store, 'transact' | 'write'>
  /** A part of the path; empty if no key can be that. */
  param(name: string): string
  query(name: string): string | undefined
  /** The address of the call, below which it creates something; empty where nothing has one. */
  readonly address: string
  /** @throws {OAuthError} unless the caller has seen the record, which has this entity tag. */
  assertSeen(tag: string, record: object): void
  /** What the caller can see; undefined: everything. */
  reach(): Promise<Reach | undefined>
  /** Requires in a transaction that the caller may change what the path does not name, or what `store` does not write. */
  requireMay(subject: Subject): readonly Write[]
  /** Where it is said that an email could not be sent. */
  readonly log: { error(line: string): void }
}

/** A response that a repeated request gets again. It has no secret: those are shown once. */
export interface KeptResponse {
  readonly status: number
  readonly body: object
  readonly headers: Readonly<Record<string, string>>
  /** Deleting the user or the client that it is about deletes it. */
  readonly userId?: string | undefined
  readonly clientId?: string | undefined
}

/** Returns what to write together with a change, so that a repeated request gets the same response. */
export type Keep = (response: KeptResponse) => readonly Write[]

/** What an operator can do, defined once. Its route, its command and its page call it. */
export interface Operation<Body = unknown> {
  readonly operationId: string
  readonly summary: string
  readonly area: Area
  readonly kind: Kind
  /** Absent: that of its kind. */
  readonly method?: HTTPMethods
  readonly url: string
  /** Whether administrators of a group may call it for its members. */
  readonly delegates: boolean
  readonly response: TSchema
  readonly querystring?: TSchema
  readonly body?: Typed<Body>
  /** It makes tokens or changes factors: a personal token must not call it, so that it ends with its owner. */
  readonly personalTokens?: 'rejected'
  /** Whether its user must have signed in a moment ago, also where no second factor is required. */
  readonly needsRecentSignIn?: true
  /** What is wrong if it meets another record that has the same; absent: that there is one. */
  readonly taken?: string
  /** Which limit its body has; absent: the one of all bodies. */
  readonly bodyLimit?: 'registrationBodyBytes'
  perform(call: Call<Body>, keep: Keep): Promise<Outcome>
}

/** The result of an operation: nothing for a deletion, or what a repeated request gets again. */
export type Outcome = KeptResponse | Shown | undefined

/** What is found, with its entity tag if it can be changed. */
export interface Shown {
  readonly body: object
  readonly tag?: string
}

/** A schema of such values. Inferred from `static` alone: the whole schema is too deep for the compiler. */
export interface Typed<Value> extends TSchema {
  static: Value
}

/** Returns the method of the route of an operation. */
export function methodOf({ kind, method }: Pick<Operation, 'kind' | 'method'>): HTTPMethods {
  return method ?? methods[kind]
}

const methods = {
  list: 'GET',
  read: 'GET',
  create: 'POST',
  change: 'PATCH',
  delete: 'DELETE',
  end: 'DELETE',
  act: 'POST',
} as const satisfies Record<Kind, HTTPMethods>

/** What an operation is called, who may call it, and what goes in and out. */
export type Described<Body = unknown> = Pick<
  Operation<Body>,
  'operationId' | 'summary' | 'delegates' | 'personalTokens' | 'response' | 'querystring' | 'body'
>

/** Which rows a list returns. */
export interface Page {
  readonly size: number
  /** The key after which the page begins. */
  readonly after: string | undefined
}

/** Replaces the result of a decision by its HTTP response. */
export function responding<T>(
  decision: Decision<T>,
  respond: (result: T) => KeptResponse,
  keep: Keep,
): Decision<KeptResponse> {
  return andThen(decision, (result) => {
    const response = respond(result)
    return accept(response, ...keep(response))
  })
}

/** Changes the stored record. If another change came first, it is made again from the new one. */
export async function retried<T>(change: () => Promise<T>): Promise<T> {
  for (let left = 4; ; left -= 1)
    try {
      return await change()
    } catch (error) {
      const isOutdated = error instanceof Error && 'code' in error && error.code === 'precondition_failed'
      if (!isOutdated || left === 0) throw error
    }
}

/**
 * Returns a page of rows that are read all at once, because there are never many, in the order of their keys: the next page
 * is right even if the row before it was deleted.
 */
export function pageOfAll<T>(
  rows: readonly T[],
  keyOf: (row: T) => string,
  { size, after }: Page,
): readonly T[] {
  const left = after === undefined ? rows : rows.filter((row) => keyOf(row) > after)
  return left.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1)).slice(0, size)
}

/** Returns a page of a list whose rows are numbered. */
export async function listedRows<T>(
  { query }: Pick<Call, 'query'>,
  find: (page: RowPage) => Promise<readonly Numbered<T>[]>,
  describe: (row: T) => object,
): Promise<Shown> {
  const size = Number(query('limit') ?? 50)
  const rows = await find({ limit: size + 1, after: readCursor(query('after')) })
  const shown = rows.slice(0, size)
  const last = shown.at(-1)
  const next = rows.length > size && last !== undefined && { next: cursorOf(last.seq) }
  return { body: { items: shown.map(({ row }) => describe(row)), ...next } }
}

/** Returns a page of a list. `find` returns a row more than the page has: it says whether there is another page. */
export async function listed<T>(
  { query }: Pick<Call, 'query'>,
  find: (page: Page) => Promise<readonly T[]>,
  keyOf: (row: T) => string | number,
  describe: (row: T) => object | Promise<object>,
): Promise<Shown> {
  const size = Number(query('limit') ?? 50)
  const rows = await find({ size: size + 1, after: readKeyCursor(query('after')) })
  const shown = rows.slice(0, size)
  const last = shown.at(-1)
  const items = await Promise.all(shown.map(describe))
  const next = rows.length > size && last !== undefined && { next: cursorOf(keyOf(last)) }
  return { body: { items, ...next } }
}

/** @throws {OAuthError} `not_found` unless there is the user that the path names. */
export async function findUser({ deps, param }: Pick<Call, 'deps' | 'param'>): Promise<User> {
  return requireFound(await deps.store.find('user', param('sub')), 'user')
}

/** @throws {OAuthError} `not_found` unless there is the group that the path names. */
export async function findGroup({ deps, param }: Pick<Call, 'deps' | 'param'>): Promise<Group> {
  return requireFound(await deps.store.find(groupKind, param('group_id')), 'group')
}
