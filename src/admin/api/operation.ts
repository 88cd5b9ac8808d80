import type { TSchema } from '@sinclair/typebox'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { single } from '../../domain/parameters.ts'
import type { PageDeps, PublishedClients } from '../../feature/deps.ts'
import { parametersOf } from '../../http/parameters.ts'
import { RecordExists } from '../../storage/store.ts'
import type { Subject } from '../operations/authority.ts'
import {
  type Area,
  type Call,
  definitionsBy,
  type Keep,
  type KeptResponse,
  methodOf,
  type Operation,
  previewBy,
} from '../operations/operation.ts'
import { assertMatches, conflict, storedKey } from '../operations/rules.ts'
import { once } from './idempotency.ts'
import { operationSchema } from './operation-schema.ts'

/** Adds the route of an operation. Its status, headers and checks follow from its kind. */
export function addOperation<Body>(app: FastifyInstance, deps: PageDeps, operation: Operation<Body>): void {
  const { area, kind, url, bodyLimit, taken = 'there is another one like it' } = operation
  const admin = app.administration
  const isRead = kind === 'list' || kind === 'read'
  const scope = isRead ? (`admin:${area}:read` as const) : writeScopeOf(area)
  const ids = [...url.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
  const { onRequest, config } = admin.allow(scope, operation)

  const callOf = (request: FastifyRequest): Call<Body> => {
    const param = (name: string) =>
      storedKey((request.params as Readonly<Record<string, string>>)[name] ?? '') // as the path says
    return {
      deps,
      server: {
        openKeys: async () => deps.keys,
        openDocuments: async () => app.publishedClients as PublishedClients, // its routes need them
        service: () => deps.service,
        definitions: () => definitionsBy(deps),
        preview: previewBy(app),
        settings: deps.settings,
      },
      administrators: deps.config.admin.group,
      caller: admin.callerOf(request),
      context: admin.contextOf(request),
      body: request.body as Body, // as the schema says
      isDelegate: request.delegatedBy !== undefined,
      store: admin.storeFor(request, subjectOf(ids, param)),
      requireMay: (subject) => [admin.requireMay(request, subject)],
      log: request.log,
      param,
      query: (name) => single(parametersOf(request.query), name),
      address: request.url,
      assertSeen: (tag) => assertMatches(request.headers['if-match'], tag),
      reach: () => admin.reachFor(request),
    }
  }

  app.route({
    method: methodOf(operation),
    url,
    onRequest,
    config: { ...config, ...(bodyLimit && { bodyLimitSetting: `limits.${bodyLimit}` as const }) },
    ...(bodyLimit && { bodyLimit: deps.config.limits[bodyLimit] }),
    ...(isOpen(operation.response) && { serializerCompiler: () => JSON.stringify }),
    schema: operationSchema({ ...operation, scope, ids }),
    handler: async (request, reply) => {
      const call = callOf(request)
      if (!isRead || call.isDelegate) await admin.assertMay(request, subjectOf(ids, call.param))
      // `as`: an operation that changes by POST returns this type.
      if (kind === 'create' || kind === 'act')
        return once(
          request,
          reply,
          deps,
          taken,
          (keep) => operation.perform(call, keep) as Promise<KeptResponse>,
        )
      const shown = await orConflict(operation.perform(call, nothingKept), taken)
      if (shown === undefined || kind === 'delete' || kind === 'end') return reply.code(204).send()
      if ('tag' in shown && shown.tag !== undefined) reply.header('etag', shown.tag)
      return shown.body
    },
  })
}

/** Whether a response has members that its schema does not name: it keeps their order, as a command prints them. */
function isOpen({ additionalProperties, properties }: TSchema): boolean {
  const { items } = (properties?.['items'] ?? {}) as { readonly items?: TSchema } // of a list
  return additionalProperties === true || (items !== undefined && isOpen(items))
}

const nothingKept: Keep = () => []

/** What a path is about. */
function subjectOf(names: readonly string[], param: Call['param']): Subject {
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
