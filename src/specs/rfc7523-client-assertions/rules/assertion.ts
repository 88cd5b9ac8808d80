import {
  type AuthenticationRealm,
  type ClientCredentials,
  clientRejected,
  type FailedProof,
} from '../../../domain/client-authentication.ts'
import { OAuthError } from '../../../domain/errors.ts'
import { type Jws, parseJws } from '../../../domain/jws.ts'
import { type Parameters, single } from '../../../domain/parameters.ts'

/** The only `client_assertion_type`, RFC 7523 §2.2. */
export const assertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** Returns whether another issuer made it: `iss` is a URL, and not the client itself, RFC 7521 §3. */
export function isForeign({ claims: { iss, sub } }: Jws): boolean {
  return typeof iss === 'string' && iss !== sub && /^https?:\/\//.test(iss)
}

/**
 * Reads the assertion of a request, RFC 7523 §2.2; its `sub` names the client, unless another issuer made it.
 * @throws {OAuthError} `invalid_client`
 */
export function readAssertion(
  parameters: Parameters,
  realm: AuthenticationRealm,
): ClientCredentials | undefined {
  const type = single(parameters, 'client_assertion_type')
  const text = single(parameters, 'client_assertion')
  if (type === undefined && text === undefined) return undefined
  const reject = (rule: string, received: string, stored?: string) =>
    clientRejected(realm.alwaysUnauthorized, { rule, received, stored })
  if (type !== assertionType)
    throw reject('rfc7523-2.2-parameters', `client_assertion_type: ${type ?? 'absent'}`, assertionType)
  const assertion = text === undefined ? undefined : parseJws(text)
  if (text === undefined || assertion === undefined)
    throw reject('rfc7523-2.2-parameters', 'client_assertion is not one signed JWT without repeated members')
  if (isForeign(assertion)) return { proof: text }
  const { sub } = assertion.claims
  if (typeof sub !== 'string' || !/^[\x21-\x7e]{1,200}$/.test(sub))
    throw reject('rfc7523-3-iss-sub', 'sub is not a client_id')
  const clientId = single(parameters, 'client_id') ?? sub
  if (clientId !== sub) throw reject('rfc7523-3-client-id-agrees', `client_id: ${clientId}`, `sub: ${sub}`)
  return { clientId: sub, proof: text }
}

/** Returns why an assertion is not accepted; any other error is thrown on. */
export function failureOf(error: unknown): FailedProof {
  if (!(error instanceof OAuthError)) throw error
  const { rule, stored, received } = error.detail
  return { rule, why: error.message, stored, received }
}
