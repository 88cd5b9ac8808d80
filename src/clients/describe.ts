import { isDeepStrictEqual } from 'node:util'
import type { Client, Scope } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import {
  coreMembers,
  type DeclaredClientMember,
  type OperatorClientMembers,
  type ShownScopes,
} from './core-members.ts'
import type { ClientDeclarations, ClientVocabulary, JsonObject } from './members.ts'

const core: readonly (readonly [string, DeclaredClientMember])[] = Object.entries(coreMembers)

/**
 * The wire form of everything that is registered about a client, RFC 7591 §3.2.1; absent members stay absent.
 * @param open The scopes that a client may have without an operator: the effective scope of one without a ceiling.
 * @param catalogue Names of the scope catalogue.
 */
export function clientMetadata(client: Client, open: Scope, catalogue: Scope = open) {
  return metadataOf(client, { open, catalogue }, ({ operatorOnly }) => !operatorOnly)
}

function metadataOf(
  client: Client,
  scopes: ShownScopes,
  isShown: (member: DeclaredClientMember) => boolean,
): { readonly client_id: string; readonly client_id_issued_at: number } & JsonObject {
  const shown = core.filter(([, member]) => isShown(member)).map(([name, member]) => [name, shownOf(member)])
  function shownOf({ show, property }: DeclaredClientMember): unknown {
    return show === undefined ? property && client[property] : show(client, scopes)
  }
  return {
    client_id: client.id,
    client_id_issued_at: client.issuedAt,
    ...(client.secretHash !== undefined && { client_secret_expires_at: 0 }),
    ...omitUndefined(Object.fromEntries(shown)),
    ...client.localized,
    ...client.extra,
  }
}

/**
 * Describes a client to an operator with RFC 7591 §3.2.1 members and the members that only an operator sets; never its
 * secret.
 */
export function describeClient(client: Client, { scopes, openScopes, declared }: ClientVocabulary) {
  return {
    ...metadataOf(client, { open: openScopes ?? scopes, catalogue: scopes }, () => true),
    origin: client.origin,
    ...(client.usedAt > client.issuedAt && { last_used_at: client.usedAt }),
    ...(client.anySecretMethod && { token_endpoint_auth_methods_accepted: secretMethods(declared) }),
    ...(client.introspects.length > 0 && { introspects: client.introspects }),
    ...omitUndefined({ locked_at: client.lockedAt, pkce_learned_at: client.pkceLearnedAt }),
    ...(client.previousSecret !== undefined && {
      ...omitUndefined({ secret_used_at: client.secretUsedAt }),
      previous_secret_expires_at: client.previousSecret.expiresAt,
      ...omitUndefined({ previous_secret_used_at: client.previousSecret.usedAt }),
    }),
  }
}

/** Returns what an operator would say to get this client; without members that have their default. */
export function configuredOf(client: Client): OperatorClientMembers {
  const configured = core.flatMap(([name, { isDerived, configured, show, property, ...member }]) => {
    const shown = show ?? ((one: Client) => property && one[property])
    // Where scopes decide what is shown, the declaration says what is configured.
    const value = (configured ?? shown)(client, { open: [], catalogue: [] })
    return isDerived || value === undefined || isDeepStrictEqual(value, member.default) ? [] : [[name, value]]
  })
  return { ...Object.fromEntries(configured), ...client.localized, ...client.extra }
}

/** Names the members that an operator would say otherwise. */
export function changedMembers(before: Client, after: Client): readonly string[] {
  const [old, now] = [configuredOf(before), configuredOf(after)]
  return Object.keys({ ...old, ...now }).filter((name) => !isDeepStrictEqual(old[name], now[name]))
}

/** Names how a client authenticates at the token endpoint, RFC 7591 §2. */
export function authenticationOf(
  { anySecretMethod, authenticationMethod }: Client,
  declared: ClientDeclarations,
): string {
  return anySecretMethod ? secretMethods(declared).join(' or ') : authenticationMethod
}

function secretMethods({ clientAuthentication }: ClientDeclarations): readonly string[] {
  return Object.entries(clientAuthentication)
    .flatMap(([name, { usesSecret }]) => (usesSecret ? [name] : []))
    .reverse()
}
