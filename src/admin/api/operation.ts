import type { TSchema } from '@sinclair/typebox'
import type { FastifyInstance, FastifyRequest, HTTPMethods } from 'fastify'
import type { AuditContext } from '../../domain/audit.ts'
import { accept, type Decision, type Write } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { single } from '../../domain/parameters.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { cursorOf, readKeyCursor } from '../../http/cursor.ts'
import { parametersOf } from '../../http/parameters.ts'
import { RecordExists, type Store } from '../../storage/store.ts'
import { storedKey } from './administration.ts'
import type { Subject } from './authority.ts'
import { type KeptResponse, once } from './idempotency.ts'
import { assertMatches, type Caller, conflict } from './rules.ts'
import { type Operation, operationSchema } from './schema.ts'

/** A call of an operation that the caller may use. */
export interface Call<Body = unknown> {
  readonly request: FastifyRequest
  readonly caller: Caller
  /** The actor, for the audit log. */
  readonly context: AuditContext
  readonly body: Body
  /** Whether the caller administers the members of some groups only. */
  readonly isDelegate: boolean
  /** Writes only what the caller may still write. Every change of an operation goes through it. */
  readonly store: Pick<Store, 'transact' | 'write'>
  /** Checks what the body names, as the path was checked; `Call.requireMay` does in the transaction. */
  assertMay(subject: Subject): Promise<void>
  requireMay(subject: Subject): Write
  /** A part of the path; empty if no key can be that. */
  param(name: string): string
  query(name: string): string | undefined
  /** @throws {OAuthError} unless `If-Match` names this entity tag. */
  assertMatches(tag: string): void
}

/** Which rows a list returns. */
export interface Page {
  readonly size: number
  /** The key after which the page begins. */
  readonly after: string | undefined
}

/** What is found, with its entity tag if it can be changed. */
interface Shown {
  readonly body: object
  readonly tag?: string
}

type Described = Pick<
  Operation,
  'operationId' | 'summary' | 'response' | 'querystring' | 'body' | 'delegates'
> & {
  /** Which limit its body has; absent: the one of all bodies. */
  readonly bodyLimit?: 'registrationBodyBytes'
  /** What is wrong if a change meets another record that has the same. */
  readonly taken?: string
}
/** A schema of such values. Inferred from `static` alone: the whole schema is too deep for the compiler. */
interface Typed<Value> extends TSchema {
  static: Value
}
type Keep = (response: KeptResponse) => readonly Write[]

/** The same decision, with the response to what it comes to. */
export function responding<T>(
  decision: Decision<T>,
  respond: (result: T) => KeptResponse,
  keep: Keep,
): Decision<KeptResponse> {
  if ('rejection' in decision) return decision
  const response = respond(decision.result)
  return accept(response, ...decision.writes, ...keep(response))
}

/** Adds the operations of a resource. Their statuses, headers and checks follow from the kind of each. */
export function operationsOf(
  app: FastifyInstance,
  deps: AppDeps,
  area: 'users' | 'clients' | 'keys' | 'audit',
) {
  const admin = app.administration

  function add<Body>(
    kind: Operation['kind'],
    method: HTTPMethods,
    url: string,
    described: Described,
    respond: (call: Call<Body>) => Promise<Shown | undefined> | undefined,
    perform?: (call: Call<Body>, keep: Keep) => Promise<KeptResponse>,
  ): void {
    const { taken = 'there is another one like it', bodyLimit } = described
    const isRead = kind === 'list' || kind === 'read'
    const scope = isRead ? (`admin:${area}:read` as const) : writeScopeOf(area)
    const ids = [...url.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
    const { onRequest, config } = admin.allow(scope, described.delegates)
    app.route({
      method,
      url,
      onRequest,
      config: { ...config, ...(bodyLimit && { bodyLimitSetting: `limits.${bodyLimit}` as const }) },
      ...(bodyLimit && { bodyLimit: deps.config.limits[bodyLimit] }),
      schema: operationSchema({ ...described, kind, scope, ids }),
      handler: async (request, reply) => {
        const call = callOf(request) as Call<Body> // as the schema says
        if (!isRead || call.isDelegate) await call.assertMay(subjectOf(call))
        if (perform !== undefined) return once(request, reply, deps, taken, (keep) => perform(call, keep))
        const shown = await orConflict(respond(call), taken)
        if (shown === undefined) return reply.code(204).send()
        if (shown.tag !== undefined) reply.header('etag', shown.tag)
        return shown.body
      },
    })
  }

  const callOf = (request: FastifyRequest): Call => {
    const param = (name: string) =>
      storedKey((request.params as Readonly<Record<string, string>>)[name] ?? '') // as the path says
    return {
      request,
      caller: admin.callerOf(request),
      context: admin.contextOf(request),
      body: request.body,
      isDelegate: request.delegatedBy !== undefined,
      store: admin.storeFor(request, subjectOf({ request, param })),
      assertMay: (subject) => admin.assertMay(request, subject),
      requireMay: (subject) => admin.requireMay(request, subject),
      param,
      query: (name) => single(parametersOf(request.query), name),
      assertMatches: (tag) => assertMatches(request.headers['if-match'], tag),
    }
  }
  const none = () => undefined

  return {
    /** `find` returns a row more than the page has: it says whether there is another page. */
    list<T>(
      url: string,
      described: Described,
      find: (page: Page, call: Call) => Promise<readonly T[]>,
      keyOf: (row: T) => string | number,
      describe: (row: T) => object | Promise<object>,
    ): void {
      add('list', 'GET', url, described, async (call) => {
        const size = Number(call.query('limit') ?? 50)
        const rows = await find({ size: size + 1, after: readKeyCursor(call.query('after')) }, call)
        const shown = rows.slice(0, size)
        const last = shown.at(-1)
        const items = await Promise.all(shown.map(describe))
        return {
          body: { items, ...(rows.length > size && last !== undefined && { next: cursorOf(keyOf(last)) }) },
        }
      })
    },
    /** A list that finds its own next page. */
    page: (url: string, described: Described, respond: (call: Call) => Promise<Shown>) =>
      add('list', 'GET', url, described, respond),
    read: (url: string, described: Described, respond: (call: Call) => Promise<Shown>) =>
      add('read', 'GET', url, described, respond),
    /** Reads what the body names: it must not be in a URL. */
    ask: <Body>(
      url: string,
      described: Described & { readonly body: Typed<Body> },
      respond: (call: Call<Body>) => Promise<Shown>,
    ) => add('read', 'POST', url, described, respond),
    change: <Body>(
      url: string,
      described: Described & { readonly body: Typed<Body> },
      respond: (call: Call<Body>) => Promise<Shown>,
    ) => add('change', 'PATCH', url, described, respond),
    /** A change that gives what the body does not name its default. */
    replace: <Body>(
      url: string,
      described: Described & { readonly body: Typed<Body> },
      respond: (call: Call<Body>) => Promise<Shown>,
    ) => add('change', 'PUT', url, described, respond),
    /** Deletes what is changed with an entity tag. */
    delete: (url: string, described: Omit<Described, 'response'>, end: (call: Call) => Promise<unknown>) =>
      add('delete', 'DELETE', url, { ...described, response: nothing }, async (call) => {
        await end(call)
        return undefined
      }),
    /** Deletes what cannot be changed. */
    end: (url: string, described: Omit<Described, 'response'>, end: (call: Call) => Promise<unknown>) =>
      add('end', 'DELETE', url, { ...described, response: nothing }, async (call) => {
        await end(call)
        return undefined
      }),
    create: <Body>(
      url: string,
      described: Described & { readonly body: Typed<Body> },
      perform: (call: Call<Body>, keep: Keep) => Promise<KeptResponse>,
    ) => add('create', 'POST', url, described, none, perform),
    act: <Body>(
      url: string,
      described: Described & { readonly body?: Typed<Body> },
      perform: (call: Call<Body>, keep: Keep) => Promise<KeptResponse>,
    ) => add('act', 'POST', url, described, none, perform),
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

/** Whether the caller can see a user that the path does not name. */
export async function isSeen({ isDelegate, assertMay }: Call, userId: string): Promise<boolean> {
  if (!isDelegate) return true
  try {
    await assertMay({ userId })
    return true
  } catch (error) {
    if (error instanceof OAuthError) return false
    throw error
  }
}

/** What a path is about. */
function subjectOf({ request, param }: Pick<Call, 'request' | 'param'>): Subject {
  const names = Object.keys(request.params as object)
  const idOf = (name: string) => (names.includes(name) ? param(name) : undefined)
  return { userId: idOf('sub'), groupId: idOf('group_id') }
}

async function orConflict<T>(result: Promise<T> | undefined, taken: string): Promise<T | undefined> {
  try {
    return await result
  } catch (error) {
    throw error instanceof RecordExists ? conflict(taken) : error
  }
}

const nothing: TSchema = { type: 'null' } as unknown as TSchema // the schema of the status says so

/** The audit log is only read. */
function writeScopeOf(area: 'users' | 'clients' | 'keys' | 'audit') {
  if (area === 'audit') throw new Error('the audit log is not changed')
  return `admin:${area}:write` as const
}
