import { hash } from 'node:crypto'
import { type Static, Type } from '@sinclair/typebox'
import type { OperatorClientMembers } from '../clients/core-members.ts'
import { type JsonObject, recordWrites } from '../clients/members.ts'
import { addOperatorClient } from '../clients/operator-client.ts'
import { localizableOf } from '../clients/read-members.ts'
import { ConfigError } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import { insert } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import { isObject } from '../domain/is-object.ts'
import type { Client } from '../domain/model.ts'
import { hashSecret } from '../domain/secret.ts'
import { catalogueOf } from '../feature/service.ts'
import { declared } from '../features.ts'
import type { Store } from '../storage/store.ts'
import type { Clock, RandomSource } from '../system/system.ts'
import { faultsOf } from './json-body.ts'

const choice = (names: readonly string[]) => Type.Union(names.map((name) => Type.Literal(name)))

/**
 * A client that a development server adds at start, RFC 7591 §2. As for `lychgate client add`, one with `resources` and
 * without redirect URIs is a resource server, unless a grant type without a user is among its `grant_types`.
 */
const DevelopmentClient = Type.Object(
  {
    ...Object.fromEntries(
      Object.entries(declared.clientMetadata)
        .filter(([, { isDerived }]) => !isDerived)
        .map(([name, { schema, choices }]) => {
          const names = choices === 'clientAuthentication' ? Object.keys(declared[choices]) : schema['enum']
          return [name, Type.Optional(names === undefined ? schema : choice(names))]
        }),
    ),
    client_id: Type.Optional(Type.String({ pattern: '^[\\x21-\\x7e]{1,64}$' })),
    client_secret: Type.Optional(Type.String({ minLength: 1 })),
    client_name: Type.String({ minLength: 1 }),
  },
  { additionalProperties: false },
)
type DevelopmentClient = Pick<Static<typeof DevelopmentClient>, 'client_id' | 'client_secret'> &
  OperatorClientMembers

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
  const vocabulary = {
    scopes: catalogueOf(config, declared.scopes).map(({ name }) => name),
    resources: [config.issuer, ...config.resources.map(({ identifier }) => identifier)],
    declared,
  }
  const added = clients.map((said, index) => {
    const where = `clients.${index}`
    const [fault] = faultsOf(DevelopmentClient, isObject(said) ? withoutTags(said) : said)
    if (fault !== undefined)
      throw new ConfigError(`${[where, fault.where].filter(Boolean).join('.')} ${fault.why}`)
    try {
      // `as`: faultsOf has compared it with the schema.
      return clientOf(said as DevelopmentClient, vocabulary, random(32), clock())
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

/** Leaves out members with a language tag (RFC 7591 §2.2), which the schema cannot name. */
function withoutTags(said: JsonObject): JsonObject {
  const localizable = localizableOf(declared.clientMetadata)
  const isTagged = (name: string) => name.includes('#') && localizable.includes(name.replace(/#.*/s, ''))
  return Object.fromEntries(Object.entries(said).filter(([name]) => !isTagged(name)))
}

function clientOf(
  { client_id: ownId, client_secret: chosen, ...said }: DevelopmentClient,
  vocabulary: Parameters<typeof addOperatorClient>[1],
  fresh: Buffer,
  now: number,
): { readonly client: Client; readonly secret: string | undefined } {
  const id = hash('sha256', `lychgate dev ${said.client_name}`, 'buffer').subarray(0, 16)
  // Without redirect URIs it is a machine or a resource server, and has a secret.
  const method = said.redirect_uris && 'none'
  const request = { token_endpoint_auth_method: method, ...said }
  const { client, secret } = addOperatorClient(
    request,
    vocabulary,
    { id, secret: fresh },
    { by: 'operator', at: now },
  )
  const ownSecret = secret === undefined ? undefined : (chosen ?? secret)
  return {
    client: {
      ...client,
      ...(ownId !== undefined && { id: ownId }),
      ...(ownSecret !== undefined && { secretHash: hashSecret(ownSecret) }),
    },
    secret: ownSecret,
  }
}
