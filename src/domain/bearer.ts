import type { Confirmation } from './confirmation.ts'
import { type ErrorDetail, OAuthError, type OAuthErrorCode } from './errors.ts'
import type { Scope } from './model.ts'

/** The bearer token of an Authorization header (RFC 6750 §2.1), if any. */
export type BearerCredentials =
  | { readonly kind: 'absent' }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'token'; readonly token: string }

/** Longest accepted token, in characters. */
const longestToken = 8192

/**
 * Reads the Authorization header (RFC 6750 §2.1). The scheme is case-insensitive (OAuth 2.1 §5.1.1). Another scheme, or
 * none, means no bearer token; the scheme with anything but one b64token is malformed.
 */
export function parseBearer(header: string | undefined, scheme = 'Bearer'): BearerCredentials {
  if (header === undefined) return { kind: 'absent' }
  const [name, rest] = [header.slice(0, scheme.length), header.slice(scheme.length)]
  if (name.toLowerCase() !== scheme.toLowerCase() || /^\S/.test(rest)) return { kind: 'absent' }
  return parseBearerField(/^ +(\S+) *$/.exec(rest)?.[1] ?? '')
}

/** Reads a token sent as a field of a form, RFC 6750 §2.2: one b64token and nothing around it. */
export function parseBearerField(token: string): BearerCredentials {
  const isToken = token.length <= longestToken && /^[A-Za-z0-9\-._~+/]+=*$/.test(token)
  return isToken ? { kind: 'token', token } : { kind: 'malformed' }
}

/** A scheme for tokens that are bound to a key of their client (RFC 7800 §3). */
export interface NamedScheme {
  /** Its name in the Authorization header. */
  readonly name: string
  /** The member of `cnf` whose tokens it opens; no other token is accepted under it. */
  readonly member: string
  /** Further members of its challenges, such as `algs`. */
  readonly challenge: Readonly<Record<string, string>>
}

/** A token as it was sent: under one of the schemes, or as a bearer token. */
export interface SentToken<Scheme> {
  readonly scheme: Scheme | undefined
  readonly credentials: BearerCredentials
}

/** Reads the Authorization header. */
export function readToken<Scheme extends NamedScheme>(
  authorization: string | undefined,
  schemes: readonly Scheme[],
): SentToken<Scheme> {
  for (const scheme of schemes) {
    const credentials = parseBearer(authorization, scheme.name)
    if (credentials.kind !== 'absent') return { scheme, credentials }
  }
  return { scheme: undefined, credentials: parseBearer(authorization) }
}

/** Whether a token is sent under the scheme that it was issued for, RFC 9449 §7.2. */
export function isUnderItsScheme(
  scheme: NamedScheme | undefined,
  confirmation: Confirmation | undefined,
): boolean {
  if (scheme === undefined || confirmation === undefined) return scheme === confirmation
  return Object.hasOwn(confirmation, scheme.member)
}

/** A challenge of the Bearer scheme or one like it, RFC 6750 §3 and RFC 9728 §5.1. */
export interface BearerChallenge {
  /** A scheme other than Bearer, with the further members of its challenges. */
  readonly scheme?: Pick<NamedScheme, 'name' | 'challenge'> | undefined
  readonly resourceMetadata?: string | undefined
  readonly error?: OAuthErrorCode
  readonly description?: string
  /** Every scope the operation needs. */
  readonly scope?: Scope
}

/** The value of `WWW-Authenticate`. Its members contain allowed characters only, so nothing is escaped. */
export function bearerChallenge({
  scheme,
  error,
  description,
  scope,
  resourceMetadata,
}: BearerChallenge): string {
  const members = [
    error && `error="${error}"`,
    description && `error_description="${description}"`,
    scope && scope.length > 0 && `scope="${scope.join(' ')}"`,
    resourceMetadata && `resource_metadata="${resourceMetadata}"`,
    ...Object.entries(scheme?.challenge ?? {}).map(([name, value]) => `${name}="${value}"`),
  ]
  return `${scheme?.name ?? 'Bearer'} ${members.filter(Boolean).join(', ')}`
}

/** Returns the error of a bearer token with its challenge (RFC 6750 §3.1). */
export function bearerError(
  error: 'invalid_request' | 'invalid_token' | 'insufficient_scope',
  description: string,
  resourceMetadata: string,
  detail: {
    readonly rule: string
    /** The scope that the operation needs; it is also sent to the client. */
    readonly scope?: Scope
    readonly scheme?: BearerChallenge['scheme']
  } & Pick<ErrorDetail, 'stored' | 'received'>,
): OAuthError {
  const challenge = bearerChallenge({
    error,
    description,
    resourceMetadata,
    scheme: detail.scheme,
    ...(detail.scope && { scope: detail.scope }),
  })
  return new OAuthError(error, description, {
    rule: detail.rule,
    stored: detail.stored,
    received: detail.scope ?? detail.received,
    headers: { 'www-authenticate': challenge },
  })
}

/** How a guarded scope of routes takes calls without a token in the Authorization header. */
export interface GuardedScope {
  /** Serves a call without a token as anonymous, or rejects it: 401 with a bare challenge, RFC 6750 §3.1. */
  readonly anonymous: 'allow' | 'challenge'
  /** Also accept `access_token` as a field of a form body, RFC 6750 §2.2. Default: false. */
  readonly formToken?: boolean
}
