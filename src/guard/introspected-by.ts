import { confirmationOf } from '../domain/confirmation.ts'
import { authenticationOf, callerKind, cannotVerify, type VerifyToken } from './access.ts'

export interface IntrospectionOptions {
  /** The authorization server's `introspection_endpoint`. */
  readonly endpoint: string
  /** A resource server's credentials, HTTP Basic: `lychgate client add --resource <uri>`. */
  readonly clientId: string
  readonly clientSecret: string
  /** How long to wait for a response, in milliseconds; 5000 by default. */
  readonly timeoutMilliseconds?: number
}

/**
 * Verifies tokens by asking the authorization server at every call, RFC 7662 §2: opaque and JWT alike, and revoked
 * ones are rejected at once.
 * @throws {OAuthError} `temporarily_unavailable` when the authorization server does not respond.
 */
export function introspectedBy(options: IntrospectionOptions): VerifyToken {
  return async (token) => {
    const response = await introspect(token, options).catch((cause: unknown) => {
      throw cannotVerify(cause)
    })
    if (!isAccessToken(response)) return undefined
    const confirmation = confirmationOf(response.cnf)
    // Bound or not, both members have to say so.
    if ((response.token_type.toLowerCase() === 'bearer') !== (confirmation === undefined)) return undefined
    return {
      kind: callerKind(response.sub, response.client_id),
      sub: response.sub,
      clientId: response.client_id,
      scope: response.scope?.split(' ') ?? [],
      audience: [response.aud ?? []].flat(),
      ...authenticationOf(response),
      ...(confirmation && { confirmation }),
    }
  }
}

async function introspect(token: string, options: IntrospectionOptions): Promise<unknown> {
  const credentials = [options.clientId, options.clientSecret].map(encodeURIComponent).join(':')
  const response = await fetch(options.endpoint, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
      accept: 'application/json',
    },
    body: new URLSearchParams({ token }),
    redirect: 'error',
    signal: AbortSignal.timeout(options.timeoutMilliseconds ?? 5000),
  })
  if (!response.ok) throw new Error(`introspection responded with ${response.status}`)
  return response.json()
}

interface ActiveAccessToken {
  readonly active: true
  readonly token_type: string
  readonly sub: string
  readonly client_id: string
  readonly scope?: string
  readonly aud?: string | readonly string[]
  readonly cnf?: unknown
  readonly acr?: unknown
  readonly auth_time?: unknown
}

/** Whether the response is about an access token. A refresh token can be active too, but has no token_type. */
function isAccessToken(response: unknown): response is ActiveAccessToken {
  if (typeof response !== 'object' || response === null) return false
  // `as`: every member that matters is checked below.
  const { active, token_type: type, sub, client_id: clientId } = response as Partial<ActiveAccessToken>
  return (
    active === true && typeof type === 'string' && typeof sub === 'string' && typeof clientId === 'string'
  )
}
