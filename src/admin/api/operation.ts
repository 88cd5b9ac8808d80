import type { TSchema } from '@sinclair/typebox'
import type { FastifyInstance, FastifyRequest, HTTPMethods } from 'fastify'
import { single } from '../../domain/parameters.ts'
import type { PageDeps, PublishedClients } from '../../feature/deps.ts'
import { parametersOf } from '../../http/parameters.ts'
import { RecordExists } from '../../storage/store.ts'
import type { Subject } from '../operations/authority.ts'
import {
  type Area,
  type Call,
  type Keep,
  type KeptResponse,
  type Kind,
  methodOf,
  type Operation,
  type Outcome,
  type Shown,
  type Typed,
} from '../operations/operation.ts'
import { assertMatches, type Caller, conflict, storedKey } from '../operations/rules.ts'
import { nothing } from '../operations/schema.ts'
import { once } from './idempotency.ts'
import { operationSchema } from './operation-schema.ts'

/** A call over HTTP of an operation that the caller may use. */
export interface HttpCall<Body = unknown> extends Call<Body> {
  readonly request: FastifyRequest
  readonly caller: Caller
}

type Described = Pick<
  Operation,
  'operationId' | 'summary' | 'response' | 'querystring' | 'body' | 'taken'
> & {
  readonly delegates?: boolean
  /** Absent: that of its kind. */
  readonly method?: HTTPMethods
  /** Which limit its body has; absent: the one of all bodies. */
  readonly bodyLimit?: 'registrationBodyBytes'
}

/** Adds the route of an operation. Its status, headers and checks follow from its kind. */
export function addOperation<Body>(app: FastifyInstance, deps: PageDeps, operation: Operation<Body>): void {
  const { area, kind, url, perform } = operation
  operationsOf(app, deps, area).add(kind, url, operation, perform)
}

/** Adds the operations of a resource. Their statuses, headers and checks follow from the kind of each. */
export function operationsOf(app: FastifyInstance, deps: PageDeps, area: Area) {
  const admin = app.administration

  function add<Body>(
    kind: Kind,
    url: string,
    described: Described,
    perform: (call: HttpCall<Body>, keep: Keep) => Promise<Outcome>,
  ): void {
    const { taken = 'there is another one like it', bodyLimit, method = methodOf({ kind }) } = described
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
      ...(isOpen(described.response) && { serializerCompiler: () => JSON.stringify }),
      schema: operationSchema({ ...described, kind, scope, ids }),
      handler: async (request, reply) => {
        const call = callOf(request) as HttpCall<Body> // as the schema says
        if (!isRead || call.isDelegate) await admin.assertMay(request, subjectOf(call))
        // `as`: what changes by POST comes to that.
        if (kind === 'create' || kind === 'act')
          return once(request, reply, deps, taken, (keep) => perform(call, keep) as Promise<KeptResponse>)
        const shown = await orConflict(perform(call, nothingKept), taken)
        if (shown === undefined || kind === 'delete' || kind === 'end') return reply.code(204).send()
        if ('tag' in shown && shown.tag !== undefined) reply.header('etag', shown.tag)
        return shown.body
      },
    })
  }

  const callOf = (request: FastifyRequest): HttpCall => {
    const param = (name: string) =>
      storedKey((request.params as Readonly<Record<string, string>>)[name] ?? '') // as the path says
    return {
      deps,
      server: {
        openKeys: async () => deps.keys,
        openDocuments: async () => app.publishedClients as PublishedClients, // its routes need them
        service: () => deps.service,
        settings: deps.settings,
      },
      administrators: deps.config.admin.group,
      request,
      caller: admin.callerOf(request),
      context: admin.contextOf(request),
      body: request.body,
      isDelegate: request.delegatedBy !== undefined,
      store: admin.storeFor(request, subjectOf({ request, param })),
      requireMay: (subject) => [admin.requireMay(request, subject)],
      log: request.log,
      param,
      query: (name) => single(parametersOf(request.query), name),
      address: request.url,
      assertSeen: (tag) => assertMatches(request.headers['if-match'], tag),
      reach: () => admin.reachFor(request),
    }
  }

  return {
    add,
    /** `find` returns a row more than the page has: it says whether there is another page. */
    /** A list that finds its own next page. */
    page: (url: string, described: Described, respond: (call: HttpCall) => Promise<Shown>) =>
      add('list', url, described, respond),
    read: (url: string, described: Described, respond: (call: HttpCall) => Promise<Shown>) =>
      add('read', url, described, respond),
    change: <Body>(
      url: string,
      described: Described & { readonly body: Typed<Body> },
      respond: (call: HttpCall<Body>) => Promise<Shown>,
    ) => add('change', url, described, respond),
    /** A change that gives what the body does not name its default. */
    replace: <Body>(
      url: string,
      described: Described & { readonly body: Typed<Body> },
      respond: (call: HttpCall<Body>) => Promise<Shown>,
    ) => add('change', url, { ...described, method: 'PUT' }, respond),
    /** Deletes what is changed with an entity tag. */
    delete: (
      url: string,
      described: Omit<Described, 'response'>,
      end: (call: HttpCall) => Promise<unknown>,
    ) =>
      add('delete', url, { ...described, response: nothing }, async (call) => {
        await end(call)
        return undefined
      }),
    create: <Body>(
      url: string,
      described: Described & { readonly body: Typed<Body> },
      perform: (call: HttpCall<Body>, keep: Keep) => Promise<KeptResponse>,
    ) => add('create', url, described, perform),
    act: <Body>(
      url: string,
      described: Described & { readonly body?: Typed<Body> },
      perform: (call: HttpCall<Body>, keep: Keep) => Promise<KeptResponse>,
    ) => add('act', url, described, perform),
  }
}

/** Whether a response has members that its schema does not name: it keeps their order, as a command prints them. */
function isOpen({ additionalProperties, properties }: TSchema): boolean {
  const { items } = (properties?.['items'] ?? {}) as { readonly items?: TSchema } // of a list
  return additionalProperties === true || (items !== undefined && isOpen(items))
}

const nothingKept: Keep = () => []

/** What a path is about. */
function subjectOf({ request, param }: Pick<HttpCall, 'request' | 'param'>): Subject {
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

/** The audit log is only read. */
function writeScopeOf(area: Area) {
  if (area === 'audit') throw new Error('the audit log is not changed')
  return `admin:${area}:write` as const
}
