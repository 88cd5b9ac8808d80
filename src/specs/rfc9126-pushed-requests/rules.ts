import { check } from '../../domain/check.ts'
import { insert, remove, type Write } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { AuthorizationRequest, Client, Hash, Seconds } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import { recordKind } from '../../domain/record.ts'
import { hashSecret } from '../../domain/secret.ts'

/** A pushed authorization request. `id` is the hash of its reference. */
export interface PushedRequest {
  readonly id: Hash
  readonly clientId: string
  /** As the client sent them, without its credentials. */
  readonly parameters: Parameters
  /** What other features store with the request. */
  readonly extra?: NonNullable<AuthorizationRequest['extra']>
  readonly expiresAt: Seconds
}

export const pushedRequestKind = recordKind<PushedRequest>('pushed-request', {
  id: ({ id }) => id,
  clientId: ({ clientId }) => clientId,
  expiresAt: ({ expiresAt }) => expiresAt,
})

/** Marks a pushed request as ended, for as long as one of its pages may be open. */
type EndedRequest = Pick<PushedRequest, 'id' | 'expiresAt'>

export const endedRequestKind = recordKind<EndedRequest>('ended-pushed-request', {
  id: ({ id }) => id,
  expiresAt: ({ expiresAt }) => expiresAt,
})

/** The name under which an authorization request stores the pushed request that it came from. */
const extraName = 'pushedRequest'
const referencePrefix = 'urn:ietf:params:oauth:request_uri:'
const credentials = ['client_secret', 'client_assertion', 'client_assertion_type']

/**
 * Rejects a push that is itself a reference, RFC 9126 §2.1.
 * @throws {OAuthError} `invalid_request`
 */
export function assertNoReference(parameters: Parameters): void {
  check(
    parameters['request_uri'] === undefined,
    'rfc9126-2.1-reject-request-uri',
    'invalid_request',
    'request_uri must not be pushed; push the parameters themselves',
    { passed: 'the push has no request_uri' },
  )
}

/**
 * Returns the record of a pushed request and the reference to it, RFC 9126 §2.2.
 * @param secret 32 random bytes, which make the reference unguessable (RFC 9126 §7.1).
 */
export function pushRequest(
  parameters: Parameters,
  client: Client,
  secret: Buffer,
  seconds: Seconds,
  now: Seconds,
): { readonly pushed: PushedRequest; readonly requestUri: string } {
  const requestUri = referencePrefix + secret.toString('base64url')
  const sent = Object.entries(parameters).filter(([name]) => !credentials.includes(name))
  const pushed = {
    id: hashSecret(requestUri),
    clientId: client.id,
    parameters: { ...Object.fromEntries(sent), client_id: client.id },
    expiresAt: now + seconds,
  }
  return { pushed, requestUri }
}

/**
 * Returns a pushed request with what was loaded from what the client sent: the content of a request object, RFC 9126
 * §3.
 */
export function withLoaded(
  pushed: PushedRequest,
  { parameters, extra }: Pick<PushedRequest, 'parameters' | 'extra'>,
): PushedRequest {
  return { ...pushed, parameters, ...(extra !== undefined && { extra }) }
}

/** Returns the key of the pushed request that an authorization request refers to; undefined if it refers to none. */
export function referredId(parameters: Parameters): Hash | undefined {
  const requestUri = single(parameters, 'request_uri')
  return requestUri?.startsWith(referencePrefix) ? hashSecret(requestUri) : undefined
}

/**
 * Checks that a reference may be used: by the client that pushed the request (RFC 9126 §2.2), and in time (RFC 9126
 * §4). Nothing is proven before, so its error is a page.
 * @throws {OAuthError} `invalid_request_uri`
 */
export function assertUsable(
  pushed: PushedRequest | undefined,
  parameters: Parameters,
  now: Seconds,
): asserts pushed is PushedRequest {
  check(
    pushed !== undefined && now < pushed.expiresAt,
    'rfc9126-4-one-time',
    'invalid_request_uri',
    'request_uri is unknown, has expired or was used; push the request again',
    { stored: pushed?.expiresAt, received: now, passed: 'request_uri is known and has not expired' },
  )
  const clientId = single(parameters, 'client_id')
  check(
    clientId === pushed.clientId,
    'rfc9126-2.2-unguessable-and-bound',
    'invalid_request_uri',
    'request_uri was pushed by another client, or client_id is missing',
    { stored: pushed.clientId, received: clientId, passed: 'request_uri was pushed by this client' },
  )
}

/** Returns what an authorization request stores about the pushed request that it came from. */
export function extraOf({ id, expiresAt }: PushedRequest): NonNullable<AuthorizationRequest['extra']> {
  return { [extraName]: { id, expiresAt } satisfies EndedRequest }
}

/**
 * Checks that a client which must push its requests does (RFC 9126 §5, RFC 9126 §6).
 * @throws {OAuthError} `invalid_request`
 */
export function assertPushed(
  client: Client,
  extra: NonNullable<AuthorizationRequest['extra']>,
  isRequired: boolean,
): void {
  const mustPush = isRequired || client.extra?.['require_pushed_authorization_requests'] === true
  check(
    !mustPush || extraName in extra,
    'rfc9126-5-require-par',
    'invalid_request',
    isRequired
      ? 'this server accepts pushed authorization requests only (pushedRequests.required)'
      : 'this client registered to push its authorization requests (require_pushed_authorization_requests)',
    { passed: mustPush ? 'the request was pushed' : 'the request need not be pushed' },
  )
}

/**
 * Returns what ends a pushed request together with the authorization (RFC 9126 §4): of several pages opened from one
 * reference, such as after a reload, only one succeeds.
 * @param interactionSeconds How long a page stays open that was opened in the last second of the reference.
 */
export function endOf(
  request: AuthorizationRequest,
  interactionSeconds: Seconds,
): readonly Write[] | undefined {
  // `as`: extraOf alone writes this name.
  const pushed = request.extra?.[extraName] as EndedRequest | undefined
  if (pushed === undefined) return undefined
  const { id, expiresAt } = pushed
  return [
    remove(pushedRequestKind, id),
    insert(endedRequestKind, { id, expiresAt: expiresAt + interactionSeconds }),
  ]
}

/**
 * Returns the error of a push as the token endpoint would send it: no user is present, so codes about users become
 * `invalid_request` (RFC 9126 §2.3).
 */
export function asPushError(error: unknown): unknown {
  if (!(error instanceof OAuthError) || error.code !== 'login_required') return error
  return new OAuthError('invalid_request', error.message, error.detail)
}
