import type { Client, Scope, SigningAlgorithm } from '../domain/model.ts'
import type { JsonObject } from './members.ts'

/** What an operator asks for: a client with any https callback, or a resource server. */
export interface IntegrationRequest {
  readonly name: string
  readonly redirectUris: readonly string[]
  readonly postLogoutRedirectUris: readonly string[]
  /** Absent: it has a secret, and may send it by `client_secret_basic` or `client_secret_post`. */
  readonly authenticationMethod?: string | undefined
  /** Absent: `defaultGrantTypes`. A resource server has none but those by tokens that it received. */
  readonly grantTypes?: readonly string[] | undefined
  readonly pkce: 'required' | 'optional'
  /** Absent: remembered, but always asked of a client anybody on the computer can pose as. */
  readonly consent?: Client['consent'] | undefined
  readonly scope?: Scope | undefined
  readonly idTokenSignedResponseAlg: SigningAlgorithm
  /**
   * With a grant type without a user: the resources it may get tokens for. Otherwise makes a resource server, which may
   * introspect the tokens for these resources.
   */
  readonly resources?: readonly string[] | undefined
  /** What it tells users about itself, and the members of features, under the names of RFC 7591 §2. */
  readonly description?: JsonObject
}

/** What an operator changes about a client; an absent member stays as it is. */
export type IntegrationChange = {
  readonly [K in keyof IntegrationRequest]?: IntegrationRequest[K] | undefined
} & {
  /** Members that get the default of a new client back. */
  readonly removed?: readonly (keyof IntegrationRequest)[]
}

/** The request that a client would have come from. */
export function requestOf(client: Client): IntegrationRequest {
  const { clientUri, logoUri, policyUri, tosUri, contacts, localized, pkceOptional } = client
  return {
    name: client.name ?? client.id,
    redirectUris: client.redirectUris,
    postLogoutRedirectUris: client.postLogoutRedirectUris,
    authenticationMethod: client.anySecretMethod ? undefined : client.authenticationMethod,
    pkce: pkceOptional ? 'optional' : 'required',
    consent: client.consent,
    grantTypes: client.grantTypes,
    scope: client.scope,
    idTokenSignedResponseAlg: client.idTokenSignedResponseAlg,
    resources: client.resources ?? client.introspects,
    description: {
      ...localized,
      contacts,
      client_uri: clientUri,
      logo_uri: logoUri,
      policy_uri: policyUri,
      tos_uri: tosUri,
      ...client.extra,
    },
  }
}
