import { type AuditContext, auditEvent } from './audit.ts'
import { check } from './check.ts'
import { accept, type Decision, put, type Write } from './decision.ts'
import type { AuditEventName, Seconds } from './model.ts'
import { recordKind } from './record.ts'
import { isResourceIdentifier, withoutEmptyPath } from './resource.ts'
import type { CatalogueScope } from './scope-catalogue.ts'

/*
 * Scopes and resources that operators store, in addition to those of the configuration. All of them are one record, so
 * that a decision sees what depends on what. A second, small one has its revision: a server reads that to learn of changes.
 */

/** A stored scope; it may have its words in other languages, such as `description#de`. */
export interface StoredScope extends Omit<CatalogueScope, 'operatorOnly' | 'claims'> {
  readonly access: 'read' | 'write'
}

/** A stored resource, RFC 8707 §2. */
export interface StoredResource {
  readonly identifier: string
  readonly name: string
  readonly scopes: readonly string[]
  readonly tokenFormat: 'opaque' | 'jwt'
  readonly accessTokenSeconds?: Seconds
}

/** What is stored. */
export interface ApiDefinitions {
  /** Each change raises it; 0: nothing was ever stored. */
  readonly revision: number
  readonly scopes: readonly StoredScope[]
  readonly resources: readonly StoredResource[]
}

/** What the configuration and the features of the server define, which the store cannot change. */
export interface ConfiguredApis {
  readonly issuer: string
  readonly scopes: readonly Pick<CatalogueScope, 'name'>[]
  readonly resources: readonly Pick<StoredResource, 'identifier'>[]
  /** Names of scopes that the server gives a meaning. */
  readonly reserved: ReadonlySet<string>
}

export const noDefinitions: ApiDefinitions = { revision: 0, scopes: [], resources: [] }

/** The key of both records. */
export const definitionsKey = 'all'
export const definitionsKind = recordKind<ApiDefinitions>('apiDefinitions', { id: () => definitionsKey })
export const definitionsRevisionKind = recordKind<Pick<ApiDefinitions, 'revision'>>('apiRevision', {
  id: () => definitionsKey,
})

/** How many there may be: the pages and the consent page show all of them. */
const [mostScopes, mostResources] = [200, 100]

const rule = 'lychgate-api-definitions'

/** Whether a text is the name of a scope, RFC 6749 §3.3. */
export function isScopeName(text: string): boolean {
  return /^[\x21\x23-\x5b\x5d-\x7e]{1,100}$/.test(text)
}

/** Returns what is in force: what is configured wins over what is stored under the same name. */
export function definitionsInForce<S extends Pick<CatalogueScope, 'name'>, R extends StoredResource>(
  configured: Pick<ConfiguredApis, 'issuer' | 'reserved'> & {
    readonly scopes: readonly S[]
    readonly resources: readonly R[]
  },
  stored: ApiDefinitions,
): { readonly scopes: (S | StoredScope)[]; readonly resources: (R | StoredResource)[] } {
  const added = stored.scopes.filter(({ name }) => !isConfiguredScope(name, configured))
  const scopes = [...configured.scopes, ...added]
  const names = new Set(scopes.map(({ name }) => name))
  const resources = stored.resources
    .filter(({ identifier }) => !isConfiguredResource(identifier, configured))
    .map((one) => ({ ...one, scopes: one.scopes.filter((name) => names.has(name)) }))
  return { scopes, resources: [...configured.resources, ...resources] }
}

/** Whether a scope is not for operators to store: the configuration has it, or the server gives it a meaning. */
export function isConfiguredScope(
  name: string,
  { scopes, reserved }: Pick<ConfiguredApis, 'scopes' | 'reserved'>,
): boolean {
  return reserved.has(name) || scopes.some((one) => one.name === name)
}

/** Whether the configuration has a resource, or it is the issuer. */
export function isConfiguredResource(
  identifier: string,
  { issuer, resources }: Pick<ConfiguredApis, 'issuer' | 'resources'>,
): boolean {
  const same = withoutEmptyPath(identifier)
  return same === issuer || resources.some((one) => withoutEmptyPath(one.identifier) === same)
}

/**
 * Adds a scope, or replaces the one with its name.
 * @throws {OAuthError} `invalid_scope`, `conflict`
 */
export function storeScope(
  stored: ApiDefinitions,
  scope: StoredScope,
  mode: 'add' | 'change',
  configured: ConfiguredApis,
  context: AuditContext,
): Decision<StoredScope> {
  const { name } = scope
  check(
    isScopeName(name),
    'rfc6749-3.3-scope-syntax',
    'invalid_scope',
    'name must have up to 100 of the characters that a scope may have, without spaces',
  )
  check(!configured.reserved.has(name), rule, 'conflict', 'the server gives this scope its meaning', {
    status: 409,
  })
  check(
    !isConfiguredScope(name, configured),
    rule,
    'conflict',
    'the scope is set in the configuration file, which wins',
    { status: 409 },
  )
  const others = stored.scopes.filter((one) => one.name !== name)
  assertRoom(others.length < mostScopes, 'scopes', mostScopes)
  assertAbsent(mode === 'change' || others.length === stored.scopes.length, 'scope')
  const scopes = inOrder([...others, scope], (one) => one.name)
  const event = mode === 'add' ? 'scope-added' : 'scope-changed'
  return accept(scope, ...changed({ ...stored, scopes }, event, { scope: name }, context))
}

/**
 * Deletes a scope. Clients keep it in their lists, and grants lose it at their next use, as one that is taken out of the
 * configuration.
 * @throws {OAuthError} `conflict` while a stored resource has it.
 */
export function deleteScope(
  stored: ApiDefinitions,
  name: string,
  context: AuditContext,
): Decision<undefined> {
  const user = stored.resources.find((one) => one.scopes.includes(name))
  check(user === undefined, rule, 'conflict', 'a resource has this scope; remove it there first', {
    status: 409,
    stored: user?.identifier,
  })
  const scopes = stored.scopes.filter((one) => one.name !== name)
  return accept(undefined, ...changed({ ...stored, scopes }, 'scope-deleted', { scope: name }, context))
}

/**
 * Adds a resource, or replaces the one with its identifier.
 * @throws {OAuthError} `invalid_target`, `invalid_scope`, `conflict`
 */
export function storeResource(
  stored: ApiDefinitions,
  resource: StoredResource,
  mode: 'add' | 'change',
  configured: ConfiguredApis,
  context: AuditContext,
): Decision<StoredResource> {
  const { identifier } = resource
  check(
    identifier.length <= 500 && isResourceIdentifier(identifier),
    'rfc8707-2-absolute-no-fragment',
    'invalid_target',
    'identifier must be an absolute URI without a fragment, of up to 500 characters',
  )
  check(
    !isConfiguredResource(identifier, configured),
    rule,
    'conflict',
    'the resource is the issuer, or set in the configuration file, which wins',
    { status: 409 },
  )
  const { scopes } = definitionsInForce({ ...configured, resources: [] }, stored)
  const names = new Set(scopes.map(({ name }) => name))
  const unknown = resource.scopes.filter((name) => !names.has(name))
  check(
    resource.scopes.length > 0 && unknown.length === 0,
    rule,
    'invalid_scope',
    'scopes must name at least one scope, and only scopes of this server',
    { received: unknown },
  )
  const same = withoutEmptyPath(identifier)
  const others = stored.resources.filter((one) => withoutEmptyPath(one.identifier) !== same)
  assertRoom(others.length < mostResources, 'resources', mostResources)
  assertAbsent(mode === 'change' || others.length === stored.resources.length, 'resource')
  const resources = inOrder([...others, resource], (one) => one.identifier)
  const event = mode === 'add' ? 'resource-added' : 'resource-changed'
  return accept(resource, ...changed({ ...stored, resources }, event, { resource: identifier }, context))
}

/** Deletes a resource: what was granted for it alone is invalid at its next use. */
export function deleteResource(
  stored: ApiDefinitions,
  identifier: string,
  context: AuditContext,
): Decision<undefined> {
  const resources = stored.resources.filter((one) => one.identifier !== identifier)
  const facts = { resource: identifier }
  return accept(undefined, ...changed({ ...stored, resources }, 'resource-deleted', facts, context))
}

function assertRoom(hasRoom: boolean, what: string, most: number): void {
  check(hasRoom, rule, 'conflict', `there are ${most} ${what} already`, { status: 409 })
}

function assertAbsent(isAbsent: boolean, what: string): void {
  check(isAbsent, rule, 'conflict', `there is such a ${what} already`, { status: 409 })
}

function changed(
  after: ApiDefinitions,
  event: AuditEventName,
  facts: Readonly<Record<string, string>>,
  context: AuditContext,
): readonly Write[] {
  const revision = after.revision + 1
  return [
    put(definitionsKind, { ...after, revision }),
    put(definitionsRevisionKind, { revision }),
    auditEvent(event, context, facts),
  ]
}

function inOrder<T>(all: readonly T[], keyOf: (one: T) => string): readonly T[] {
  return all.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1))
}
