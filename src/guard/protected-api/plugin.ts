import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from '@sinclair/typebox'
import type { Needs } from '../../feature/deps.ts'
import { securityFor } from '../../http/openapi.ts'
import { badBody, ErrorResponse } from '../../http/schema.ts'

const AreaResponse = Type.Object(
  {
    area: Type.String(),
    operation: Type.Union([Type.Literal('read'), Type.Literal('write')]),
    caller: Type.Union([Type.Literal('anonymous'), Type.Literal('user'), Type.Literal('client')]),
    sub: Type.Optional(Type.String()),
    client_id: Type.Optional(Type.String()),
    scope: Type.Optional(Type.String()),
  },
  { title: 'Caller', description: 'Who is calling, and with which scope.', additionalProperties: false },
)

const methods = { read: ['GET'], write: ['POST', 'PUT', 'PATCH', 'DELETE'] } as const

/**
 * The API of the service specification, §5: one resource for each area of the scope catalogue. It has no business
 * data; it returns who is calling and with which scope. `builtInApi: off` leaves these paths to nothing.
 */
export const protectedApi: FastifyPluginAsyncTypebox<Needs<'config' | 'guard'>> = async (
  app,
  { config, guard },
) => {
  if (config.builtInApi === 'off') return
  await app.register(guard, { anonymous: 'allow' })
  for (const { name } of config.scopes) {
    const [, area, operation] = /^([a-z0-9_-]+):(read|write)$/.exec(name) ?? []
    if (area === undefined || (operation !== 'read' && operation !== 'write')) continue
    // One route for all writing methods: a start builds every route there is.
    app.route({
      method: [...methods[operation]],
      url: `/api/${area}`,
      schema: {
        tags: ['api'],
        summary: `${operation === 'read' ? 'Read' : 'Change'} ${area}: needs ${name}, or is served as anonymous`,
        security: [{}, ...securityFor(name)],
        response: operation === 'read' ? responses : { ...responses, ...badBody },
      },
      preHandler: app.requireScope(name),
      handler: async ({ access }): Promise<Static<typeof AreaResponse>> => {
        if (access === undefined) return { area, operation, caller: 'anonymous' }
        const { kind, sub, clientId, scope } = access
        return { area, operation, caller: kind, sub, client_id: clientId, scope: scope.join(' ') }
      },
    })
  }
}

const responses = {
  200: AreaResponse,
  400: ErrorResponse,
  401: ErrorResponse,
  403: ErrorResponse,
  503: ErrorResponse,
}
