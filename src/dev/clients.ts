import { hash } from 'node:crypto'
import { type Static, Type } from '@sinclair/typebox'
import { addIntegration } from '../clients/integration.ts'
import { recordWrites } from '../clients/members.ts'
import { ConfigError } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import { insert } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import { signingAlgorithms } from '../domain/key-term.ts'
import type { Client } from '../domain/model.ts'
import { parseScope } from '../domain/scope.ts'
import { hashSecret } from '../domain/secret.ts'
import { catalogueOf } from '../feature/service.ts'
import { declared } from '../features.ts'
import type { Store } from '../storage/store.ts'
import type { Clock, RandomSource } from '../system/system.ts'
import { faultsOf } from './json-body.ts'

const choice = <T extends string>(...names: readonly T[]) =>
  Type.Optional(Type.Union(names.map((name) => Type.Literal(name))))

/**
 * A client that a development server adds at start, RFC 7591 §2. As for `lychgate client add`, one with `resources` and
 * without redirect URIs is a resource server, unless a grant type without a user is among its `grant_types`.
 */
export const DevelopmentClient = Type.Object(
  {
    client_id: Type.Optional(Type.String({ pattern: '^[\\x21-\\x7e]{1,64}$' })),
    client_secret: Type.Optional(Type.String({ minLength: 1 })),
    client_name: Type.String({ minLength: 1 }),
    redirect_uris: Type.Optional(Type.Array(Type.String())),
    grant_types: Type.Optional(Type.Array(Type.String())),
    resources: Type.Optional(Type.Array(Type.String())),
    post_logout_redirect_uris: Type.Optional(Type.Array(Type.String())),
    token_endpoint_auth_method: choice(...Object.keys(declared.clientAuthentication)),
    scope: Type.Optional(Type.String()),
    id_token_signed_response_alg: choice(...signingAlgorithms),
    consent: choice('always', 'remember', 'skip'),
    ...Object.fromEntries(
      Object.entries(declared.clientMetadata).map(([name, { schema }]) => [name, Type.Optional(schema)]),
    ),
  },
  { additionalProperties: false },
)
export type DevelopmentClient = Static<typeof DevelopmentClient>

/** The credentials of an application. */
export interface ClientCredentials {
  readonly client_id: string
  readonly client_secret?: string
}

/**
 * Adds these clients, as `lychgate client add` does.
 * @throws {ConfigError} for the first fault.
 */
export async function seedClients(
  store: Pick<Store, 'write'>,
  clients: readonly unknown[],
  config: Config,
  { clock, random }: { readonly clock: Clock; readonly random: RandomSource },
): Promise<readonly ClientCredentials[]> {
  const known = {
    scopes: catalogueOf(config, declared.scopes).map(({ name }) => name),
    resources: [config.issuer, ...config.resources.map(({ identifier }) => identifier)],
    declared,
  }
  const added = clients.map((said, index) => {
    const where = `clients.${index}`
    const [fault] = faultsOf(DevelopmentClient, said)
    if (fault !== undefined)
      throw new ConfigError(`${[where, fault.where].filter(Boolean).join('.')} ${fault.why}`)
    try {
      // `as`: faultsOf has compared it with the schema.
      return clientOf(said as DevelopmentClient, known, random(32), clock())
    } catch (cause) {
      if (!(cause instanceof OAuthError)) throw cause
      throw new ConfigError(`${where}: ${cause.message}`, { cause })
    }
  })
  await store.write(
    ...added.flatMap(({ client }) => [
      insert('client', client),
      ...recordWrites(undefined, client, declared),
    ]),
  )
  return added.map(({ client, secret }) => ({
    client_id: client.id,
    ...(secret !== undefined && { client_secret: secret }),
  }))
}

function clientOf(
  said: DevelopmentClient,
  known: Parameters<typeof addIntegration>[1],
  fresh: Buffer,
  now: number,
): { readonly client: Client; readonly secret: string | undefined } {
  const id = hash('sha256', `lychgate dev ${said.client_name}`, 'buffer').subarray(0, 16)
  const request = {
    name: said.client_name,
    redirectUris: said.redirect_uris ?? [],
    postLogoutRedirectUris: said.post_logout_redirect_uris ?? [],
    // Without redirect URIs it is a machine or a resource server, and has a secret.
    authenticationMethod: said.token_endpoint_auth_method ?? (said.redirect_uris && 'none'),
    grantTypes: said.grant_types,
    resources: said.resources,
    pkce: 'required',
    consent: said.consent,
    scope: said.scope === undefined ? undefined : parseScope(said.scope),
    idTokenSignedResponseAlg: said.id_token_signed_response_alg ?? 'RS256',
    description: Object.fromEntries(Object.entries(said).filter(([name]) => name in declared.clientMetadata)),
  } as const
  const { client, secret } = addIntegration(request, known, { id, secret: fresh }, now)
  const ownSecret = secret === undefined ? undefined : (said.client_secret ?? secret)
  return {
    client: {
      ...client,
      ...(said.client_id !== undefined && { id: said.client_id }),
      ...(ownSecret !== undefined && { secretHash: hashSecret(ownSecret) }),
    },
    secret: ownSecret,
  }
}
