import { type Static, Type } from '@sinclair/typebox'
import { deleteScope, isConfiguredScope, type StoredScope, storeScope } from '../../domain/api-definitions.ts'
import { localizedMembers } from '../../domain/localized.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import type { CatalogueScope } from '../../domain/scope-catalogue.ts'
import { assertWords, changeDefinitions, readDefinitions, requireStored } from './definitions.ts'
import { type Call, listed, type Operation, pageOfAll } from './operation.ts'
import { tagOfRecord } from './rules.ts'
import { listQuery, nothing, pageOf, ScopeResource, scopeWords } from './schema.ts'

const words = {
  group: Type.Optional(Type.String({ description: 'The area of the scope, one row of the consent page.' })),
  access: Type.Optional(
    Type.Union([Type.Literal('read'), Type.Literal('write')], {
      description: 'The column of the consent page.',
    }),
  ),
  description: Type.Optional(Type.String({ description: 'The sentence of the consent page.' })),
  sensitive: Type.Optional(Type.Boolean({ description: 'Whether the consent page marks it.' })),
}
const ChangedScope = Type.Object(words, { title: 'ChangedScope', minProperties: 1, ...scopeWords })
const NewScope = Type.Object(
  {
    name: Type.String({ description: 'The scope value, RFC 6749 §3.3.' }),
    ...words,
    group: Type.String({ description: 'The area of the scope, one row of the consent page.' }),
    access: Type.Union([Type.Literal('read'), Type.Literal('write')], {
      description: 'The column of the consent page.',
    }),
    description: Type.String({ description: 'The sentence of the consent page.' }),
  },
  { title: 'NewScope', ...scopeWords },
)

const common = { area: 'clients', delegates: false, response: ScopeResource } as const
const taken = 'another change came first; try again'

export const listScopes: Operation = {
  ...common,
  operationId: 'listScopes',
  kind: 'list',
  url: '/scopes',
  summary: 'List the scopes in force, in the order of their names, and where each is set',
  response: pageOf(ScopeResource, 'Scopes'),
  querystring: listQuery({}),
  perform: (call) => {
    const keyOf = ({ name }: CatalogueScope) => name
    const { catalogue } = call.server.service()
    return listed(
      call,
      async (page) => pageOfAll(catalogue, keyOf, page),
      keyOf,
      (scope) => describe(call, scope),
    )
  },
}

export const readScope: Operation = {
  ...common,
  operationId: 'readScope',
  kind: 'read',
  url: '/scopes/:scope',
  summary: 'Read a scope that is stored',
  perform: async (call) => shown(call, requireStored(await find(call), 'scope')),
}

export const addScope: Operation<Static<typeof NewScope>> = {
  ...common,
  operationId: 'addScope',
  kind: 'create',
  url: '/scopes',
  summary: 'Add a scope; every node and worker has it at its next request',
  body: NewScope,
  taken,
  async perform(call, keep) {
    const scope = readScopeOf(call.body)
    const headers = {
      location: `${call.address}/${encodeURIComponent(scope.name)}`,
      etag: tagOfRecord(scope),
    }
    const result = { status: 201, body: describe(call, scope), headers }
    const { configured } = call.server.definitions()
    await changeDefinitions(call, keep(result), (stored) =>
      storeScope(stored, scope, 'add', configured, call.context),
    )
    return result
  },
}

export const changeScope: Operation<Static<typeof ChangedScope>> = {
  ...common,
  operationId: 'changeScope',
  kind: 'change',
  url: '/scopes/:scope',
  summary: 'Change a scope that is stored; what is not named stays',
  body: ChangedScope,
  async perform(call) {
    const { configured } = call.server.definitions()
    const scope = await changeDefinitions(call, [], (stored) => {
      const current = requireStored(
        stored.scopes.find(({ name }) => name === call.param('scope')),
        'scope',
      )
      call.assertSeen(tagOfRecord(current), current)
      const after = readScopeOf({ ...current, ...call.body })
      return storeScope(stored, after, 'change', configured, call.context)
    })
    return shown(call, scope)
  },
}

export const removeScope: Operation = {
  ...common,
  operationId: 'deleteScope',
  kind: 'delete',
  url: '/scopes/:scope',
  summary: 'Delete a scope that is stored; grants lose it at their next use',
  response: nothing,
  async perform(call) {
    await changeDefinitions(call, [], (stored) => {
      const current = requireStored(
        stored.scopes.find(({ name }) => name === call.param('scope')),
        'scope',
      )
      call.assertSeen(tagOfRecord(current), current)
      return deleteScope(stored, current.name, call.context)
    })
    return undefined
  },
}

async function find({ deps, param }: Call): Promise<StoredScope | undefined> {
  const { scopes } = await readDefinitions(deps.store)
  return scopes.find(({ name }) => name === param('scope'))
}

/** Reads the members of a scope, and checks its words: the consent page shows them. */
function readScopeOf(members: Static<typeof NewScope>): StoredScope {
  const { name, access, sensitive } = members
  const tagged = localizedMembers(members, ['group', 'description'])
  const said = { group: members.group.trim(), description: members.description.trim(), ...tagged }
  assertWords(said)
  return { name, access, ...said, ...(sensitive === true && { sensitive }) }
}

function describe({ server }: Pick<Call, 'server'>, scope: CatalogueScope) {
  const { name, group, access, description, sensitive = false } = scope
  const { configured } = server.definitions()
  const set = configured.scopes.some((one) => one.name === name) ? 'configuration' : 'server'
  const origin = isConfiguredScope(name, configured) ? set : 'stored'
  const tagged = localizedMembers(scope, ['group', 'description'])
  return { name, group, access, description, sensitive, origin, ...omitUndefined(tagged) }
}

function shown(call: Pick<Call, 'server'>, scope: StoredScope) {
  return { body: describe(call, scope), tag: tagOfRecord(scope) }
}
