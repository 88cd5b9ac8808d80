import {
  type AuthenticationMethod,
  noAuthentication,
  parseClientCredentials,
} from '../../src/domain/client-authentication.ts'
import type { Parameters } from '../../src/domain/parameters.ts'
import { secretMethods } from '../../src/specs/rfc6749-authorization/client-secret.ts'

export const methodNames = ['none', 'client_secret_post', 'client_secret_basic'] as const

const { post, basic } = secretMethods({
  store: { transact: () => Promise.reject(new Error('no client here has two secrets')) },
  clock: () => 0,
})

/** The client authentication methods of RFC 6749, as the application registers them. */
export const clientMethods: Readonly<Record<(typeof methodNames)[number], AuthenticationMethod>> = {
  none: noAuthentication,
  client_secret_post: { ...post, name: 'client_secret_post', usesSecret: true },
  client_secret_basic: { ...basic, name: 'client_secret_basic', usesSecret: true },
}

/** Parses the credentials of a request as the application does, with the method by its name. */
export function readCredentials(
  authorization: string | undefined,
  parameters: Parameters,
  alwaysUnauthorized = false,
) {
  const methods = Object.values(clientMethods)
  const { method, clientId, proof } = parseClientCredentials(methods, authorization, parameters, {
    alwaysUnauthorized,
  })
  return { method: method.name, clientId, ...(proof !== undefined && { clientSecret: proof }) }
}
