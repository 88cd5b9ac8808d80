import type { VerifyToken } from './guard.ts'

export interface IntrospectionOptions {
  /** The authorization server's `introspection_endpoint`. */
  readonly endpoint: string
  /** A resource server's credentials, HTTP Basic: `lychgate client add --resource <uri>`. */
  readonly clientId: string
  readonly clientSecret: string
  /** How long to wait for an answer, in milliseconds. */
  readonly timeoutMilliseconds?: number
}

/**
 * Verifies tokens by asking the authorization server, RFC 7662 §2: opaque and JWT alike, and revoked ones are refused
 * at once.
 * @throws when the authorization server does not answer: then nobody is let in, and nobody is anonymous.
 */
export function introspectedBy(options: IntrospectionOptions): VerifyToken {
  const credentials = [options.clientId, options.clientSecret].map(encodeURIComponent).join(':')
  const headers = {
    authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
    accept: 'application/json',
  }
  return async (token) => {
    const response = await fetch(options.endpoint, {
      method: 'POST',
      headers,
      body: new URLSearchParams({ token }),
      redirect: 'error',
      signal: AbortSignal.timeout(options.timeoutMilliseconds ?? 5000),
    })
    if (!response.ok) throw new Error(`introspection answered ${response.status}`)
    const answer: unknown = await response.json()
    if (!isActive(answer)) return undefined
    return {
      sub: answer.sub,
      clientId: answer.client_id,
      scope: answer.scope?.split(' ') ?? [],
      audience: [answer.aud ?? []].flat(),
    }
  }
}

interface ActiveToken {
  readonly active: true
  readonly token_type: string
  readonly sub: string
  readonly client_id: string
  readonly scope?: string
  readonly aud?: string | readonly string[]
}

/** A refresh token is active too, and has no token_type: it opens nothing. */
function isActive(answer: unknown): answer is ActiveToken {
  if (typeof answer !== 'object' || answer === null) return false
  const { active, token_type: tokenType, sub, client_id: clientId } = answer as Partial<ActiveToken>
  return active === true && tokenType === 'Bearer' && typeof sub === 'string' && typeof clientId === 'string'
}
