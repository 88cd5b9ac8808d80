import { type Static, Type } from '@sinclair/typebox'
import {
  deleteResource,
  isConfiguredResource,
  type StoredResource,
  storeResource,
} from '../../domain/api-definitions.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import type { Resource } from '../../domain/resource.ts'
import { assertWords, changeDefinitions, readDefinitions, requireStored } from './definitions.ts'
import { type Call, listed, type Operation, pageOfAll } from './operation.ts'
import { tagOfRecord } from './rules.ts'
import { listQuery, nothing, pageOf, ResourceResource } from './schema.ts'

const members = {
  name: Type.String({ description: 'Its name on the consent page.' }),
  scopes: Type.Array(Type.String(), { description: 'The scopes that it understands.', maxItems: 200 }),
  token_format: Type.Optional(
    Type.Union([Type.Literal('opaque'), Type.Literal('jwt')], {
      description: 'opaque, the default, or jwt: RFC 9068.',
    }),
  ),
  access_token_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 86_400,
      description: 'How long its access tokens are valid; absent: as those of the server.',
    }),
  ),
}
const NewResource = Type.Object(
  {
    identifier: Type.String({ description: 'What clients send as `resource`, RFC 8707 §2.' }),
    ...members,
  },
  { title: 'NewResource', additionalProperties: false },
)
const ChangedResource = Type.Object(
  {
    ...members,
    name: Type.Optional(members.name),
    scopes: Type.Optional(members.scopes),
  },
  { title: 'ChangedResource', additionalProperties: false, minProperties: 1 },
)

const common = { area: 'clients', delegates: false, response: ResourceResource } as const
const url = '/resources/:resource'

export const listResources: Operation = {
  ...common,
  operationId: 'listResources',
  kind: 'list',
  url: '/resources',
  summary: 'List the protected resources in the order of their identifiers, and where each is set',
  response: pageOf(ResourceResource, 'Resources'),
  querystring: listQuery({}),
  perform: (call) => {
    const keyOf = ({ identifier }: Resource) => identifier
    return listed(
      call,
      async (page) => pageOfAll(call.server.service().allResources, keyOf, page),
      keyOf,
      ({ scopes, ...resource }) => describe(call, { ...resource, scopes: [...scopes] }),
    )
  },
}

export const readResource: Operation = {
  ...common,
  operationId: 'readResource',
  kind: 'read',
  url,
  summary: 'Read a protected resource that is stored',
  async perform(call) {
    const { resources } = await readDefinitions(call.deps.store)
    const found = resources.find(({ identifier }) => identifier === call.param('resource'))
    return shown(call, requireStored(found, 'resource'))
  },
}

export const addResource: Operation<Static<typeof NewResource>> = {
  ...common,
  operationId: 'addResource',
  kind: 'create',
  url: '/resources',
  summary: 'Add a protected resource; every node and worker has it at its next request',
  body: NewResource,
  taken: 'another change came first; try again',
  async perform(call, keep) {
    const { identifier, ...others } = call.body
    const resource = readResourceOf(identifier, others)
    const location = `${call.address}/${encodeURIComponent(identifier)}`
    const headers = { location, etag: tagOfRecord(resource) }
    const result = { status: 201, body: describe(call, resource), headers }
    const { configured } = call.server.definitions()
    await changeDefinitions(call, keep(result), (stored) =>
      storeResource(stored, resource, 'add', configured, call.context),
    )
    return result
  },
}

export const changeResource: Operation<Static<typeof ChangedResource>> = {
  ...common,
  operationId: 'changeResource',
  kind: 'change',
  url,
  summary: 'Change a protected resource that is stored; what is not named stays',
  body: ChangedResource,
  async perform(call) {
    const { configured } = call.server.definitions()
    const resource = await changeDefinitions(call, [], (stored) => {
      const current = seen(call, stored.resources)
      const { identifier, name, scopes, tokenFormat: token_format, accessTokenSeconds } = current
      const before = {
        name,
        scopes,
        token_format,
        ...omitUndefined({ access_token_seconds: accessTokenSeconds }),
      }
      const after = readResourceOf(identifier, { ...before, ...call.body })
      return storeResource(stored, after, 'change', configured, call.context)
    })
    return shown(call, resource)
  },
}

export const removeResource: Operation = {
  ...common,
  operationId: 'deleteResource',
  kind: 'delete',
  url,
  summary: 'Delete a protected resource that is stored; grants for it alone are invalid at their next use',
  response: nothing,
  async perform(call) {
    await changeDefinitions(call, [], (stored) =>
      deleteResource(stored, seen(call, stored.resources).identifier, call.context),
    )
    return undefined
  },
}

/** Returns the resource that the path names, if it is as the caller saw it. */
function seen({ param, assertSeen }: Call, resources: readonly StoredResource[]): StoredResource {
  const found = requireStored(
    resources.find(({ identifier }) => identifier === param('resource')),
    'resource',
  )
  assertSeen(tagOfRecord(found), found)
  return found
}

function readResourceOf(
  identifier: string,
  members: Omit<Static<typeof NewResource>, 'identifier' | 'scopes'> & { readonly scopes: readonly string[] },
): StoredResource {
  const { token_format: tokenFormat = 'opaque', access_token_seconds: accessTokenSeconds } = members
  const name = members.name.trim()
  assertWords({ name })
  const scopes = [...new Set(members.scopes)].toSorted()
  return { identifier, name, scopes, tokenFormat, ...omitUndefined({ accessTokenSeconds }) }
}

function describe({ server, deps }: Pick<Call, 'server' | 'deps'>, resource: StoredResource) {
  const { identifier, name, scopes, tokenFormat } = resource
  const { configured } = server.definitions()
  const { accessTokenSeconds = deps.config.lifetimes.accessTokenSeconds } = resource
  const set = identifier === configured.issuer ? 'server' : 'configuration'
  return {
    identifier,
    name,
    scopes: [...scopes],
    token_format: tokenFormat,
    access_token_seconds: accessTokenSeconds,
    origin: isConfiguredResource(identifier, configured) ? set : 'stored',
  }
}

function shown(call: Pick<Call, 'server' | 'deps'>, resource: StoredResource) {
  return { body: describe(call, resource), tag: tagOfRecord(resource) }
}
