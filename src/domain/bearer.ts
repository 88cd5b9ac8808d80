import { type ErrorDetail, OAuthError } from './errors.ts'
import type { Scope } from './model.ts'

/** The Authorization header as far as bearer tokens go, RFC 6750 §2.1. */
export type BearerCredentials =
  | { readonly kind: 'absent' }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'token'; readonly token: string }

/** Longest token worth looking at, in characters. */
const longestToken = 8192

/**
 * Reads the Authorization header, RFC 6750 §2.1, whatever the case of the scheme, OAuth 2.1 §5.1.1. Another scheme,
 * or none, is the absence of a bearer token; `Bearer` with anything but one b64token is a malformed one.
 */
export function parseBearer(header: string | undefined): BearerCredentials {
  if (header === undefined || !/^bearer(?:\s|$)/i.test(header)) return { kind: 'absent' }
  return parseBearerField(/^bearer +(\S+) *$/i.exec(header)?.[1] ?? '')
}

/** Reads a token sent as a field of a form, RFC 6750 §2.2: one b64token and nothing around it. */
export function parseBearerField(token: string): BearerCredentials {
  const isToken = token.length <= longestToken && /^[A-Za-z0-9\-._~+/]+=*$/.test(token)
  return isToken ? { kind: 'token', token } : { kind: 'malformed' }
}

/** A challenge of the Bearer scheme, RFC 6750 §3 and RFC 9728 §5.1. */
export interface BearerChallenge {
  readonly resourceMetadata: string
  readonly error?: 'invalid_request' | 'invalid_token' | 'insufficient_scope'
  readonly description?: string
  /** Every scope the operation needs. */
  readonly scope?: Scope
}

/** The value of `WWW-Authenticate`. Members are our own text within the allowed characters: nothing is escaped. */
export function bearerChallenge({ error, description, scope, resourceMetadata }: BearerChallenge): string {
  const members = [
    error && `error="${error}"`,
    description && `error_description="${description}"`,
    scope && scope.length > 0 && `scope="${scope.join(' ')}"`,
    `resource_metadata="${resourceMetadata}"`,
  ]
  return `Bearer ${members.filter(Boolean).join(', ')}`
}

/** The rejection of a bearer token, RFC 6750 §3.1, with its challenge. */
export function bearerError(
  error: 'invalid_request' | 'invalid_token' | 'insufficient_scope',
  description: string,
  resourceMetadata: string,
  detail: {
    readonly rule: string
    /** What the operation needs: told to the client, too. */
    readonly scope?: Scope
  } & Pick<ErrorDetail, 'stored' | 'received'>,
): OAuthError {
  const challenge = bearerChallenge({
    error,
    description,
    resourceMetadata,
    ...(detail.scope && { scope: detail.scope }),
  })
  return new OAuthError(error, description, {
    rule: detail.rule,
    stored: detail.stored,
    received: detail.scope ?? detail.received,
    headers: { 'www-authenticate': challenge },
  })
}
