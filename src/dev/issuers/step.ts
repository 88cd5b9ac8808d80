import type { FastifyReply, FastifyRequest } from 'fastify'
import { isObject } from '../../domain/is-object.ts'
import type { Seconds } from '../../domain/model.ts'
import { objectOf } from '../json-body.ts'

/**
 * The name of the endpoint (see http/endpoints.ts) that a request went to, or `metadata`, `resource-metadata`, `api` or
 * `other`; `callback` if the response sends a browser back to the client, RFC 6749 §4.1.2.
 */
export type Place = string

/** One request to a misbehaving issuer and what its response gave. No report shows the secrets in it. */
export interface Step {
  readonly at: Seconds
  readonly place: Place
  /** The name of the endpoint at the path of the request. */
  readonly endpoint: string | undefined
  readonly method: string
  readonly path: string
  readonly status: number
  /** The profile changed the request before the real server saw it. */
  readonly isAltered: boolean
  readonly sent: Sent
  readonly gave: Gave
}

/** What the client presented. */
export interface Sent {
  readonly code?: string
  readonly refreshToken?: string
  readonly accessToken?: string
  readonly grantType?: string
  readonly challengeMethod?: string
  /** Of a client assertion, RFC 7523 §2.2: `alg` of its header. */
  readonly assertionAlgorithm?: string
  /** Its audiences. */
  readonly assertionAudience?: readonly string[]
  /** Of a DPoP proof, RFC 9449 §4.2: its nonce, '' without one. */
  readonly proofNonce?: string
  /** `alg` of the header of the proof. */
  readonly proofAlgorithm?: string
  readonly clientId?: string
  /** Of a pushed request, RFC 9126 §4. */
  readonly requestUri?: string
  /** Of a request object, RFC 9101 §4: `alg` of its header. */
  readonly requestAlgorithm?: string
  /** Of a device that polls, RFC 8628 §3.4. */
  readonly deviceCode?: string
}

/** What the response gave to the client. */
export interface Gave {
  readonly codes: readonly string[]
  readonly accessToken?: string
  readonly refreshToken?: string
  readonly deviceCode?: string
  /** Of the access token or the device code. */
  readonly expiresAt?: Seconds
}

/** Describes a request and its response; `body` is that of the real server. */
export function stepOf(
  request: FastifyRequest,
  reply: FastifyReply,
  body: string,
  { prefix, issuer, now }: { readonly prefix: string; readonly issuer: string; readonly now: Seconds },
): Omit<Step, 'isAltered'> {
  const [path = ''] = request.url.split('?', 1)
  const callback = callbackOf(reply, body, issuer)
  const endpoint = request.server.endpointAt(path)
  const place = callback === undefined ? placeOf(path, prefix, endpoint) : 'callback'
  const asked = { ...textsOf(request.query), ...textsOf(request.body) }
  return {
    at: now,
    place,
    endpoint,
    method: request.method,
    path: path.replace(prefix, ''),
    status: reply.statusCode,
    sent: sentWith(asked, request.headers, place),
    gave: givesTokens(place) ? tokensIn(body, now) : { codes: callback?.getAll('code') ?? [] },
  }
}

/** The parameters of an authorization response; the real server never sends one without `iss`. */
export function callbackOf(reply: FastifyReply, body: string, issuer: string): URLSearchParams | undefined {
  const location = reply.getHeader('location')
  const found =
    typeof location === 'string' ? new URLSearchParams(/\?([^#]*)/.exec(location)?.[1] ?? '') : fieldsOf(body)
  return found.get('iss') === issuer ? found : undefined
}

/** The hidden fields of a page that posts itself, OAuth 2.0 Form Post Response Mode §2. */
function fieldsOf(html: string): URLSearchParams {
  if (!html.includes('id="form-post"')) return new URLSearchParams()
  const fields = [...html.matchAll(hiddenField)].map(([, name = '', value = '']) => [name, decoded(value)])
  return new URLSearchParams(Object.fromEntries(fields))
}

/** A hidden field as views/form-post.eta writes it. */
export const hiddenField = /<input type="hidden" name="([^"]*)" value="([^"]*)">/g

function decoded(text: string): string {
  const entities = { '&quot;': '"', '&#39;': "'", '&lt;': '<', '&gt;': '>', '&amp;': '&' } as const
  return text.replaceAll(/&(?:quot|#39|lt|gt|amp);/g, (entity) => entities[entity as keyof typeof entities]) // the pattern matches its keys
}

function placeOf(path: string, prefix: string, endpoint: string | undefined): Place {
  const wellKnown = /\/\.well-known\/([\w-]+)/.exec(path)?.[1]
  if (wellKnown !== undefined)
    return wellKnown === 'oauth-protected-resource' ? 'resource-metadata' : 'metadata'
  if (endpoint !== undefined) return endpoint
  return path.startsWith(`${prefix}/api/`) && !path.startsWith(`${prefix}/api/oauth/`) ? 'api' : 'other'
}

function sentWith(
  asked: Readonly<Record<string, string>>,
  { authorization, dpop }: FastifyRequest['headers'],
  place: Place,
): Sent {
  // Bearer, or the scheme of tokens that are bound to a key.
  const token = /^(?!basic )\w+ +(.*)$/i.exec(authorization ?? '')?.[1] ?? asked['access_token']
  const sent = {
    code: place === 'token' ? asked['code'] : undefined,
    refreshToken: asked['grant_type'] === 'refresh_token' ? (asked['refresh_token'] ?? '') : undefined,
    accessToken: place === 'api' || place === 'userinfo' ? token : undefined,
    grantType: asked['grant_type'],
    challengeMethod: asked['code_challenge_method'],
    deviceCode: place === 'token' ? asked['device_code'] : undefined,
    ...assertionIn(asked['client_assertion']),
    clientId: asked['client_id'],
    requestUri: asked['request_uri'],
    requestAlgorithm: algorithmOf(asked['request']),
    ...proofIn(dpop),
  }
  return Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== undefined))
}

/** The header and claims of an assertion, unchecked. */
function assertionIn(assertion = '') {
  const aud = partsOf(assertion)[1]?.['aud']
  return {
    assertionAlgorithm: algorithmOf(assertion),
    assertionAudience: aud === undefined ? undefined : [aud].flat().map(String),
  }
}

/** The header and claims of a DPoP proof, unchecked. */
function proofIn(proof: string | readonly string[] | undefined) {
  if (proof === undefined) return {}
  const { nonce = '' } = partsOf(String(proof))[1] ?? {}
  return { proofNonce: String(nonce), proofAlgorithm: algorithmOf(String(proof)) }
}

function algorithmOf(jwt = ''): string | undefined {
  const alg = partsOf(jwt)[0]?.['alg']
  return typeof alg === 'string' ? alg : undefined
}

function partsOf(jwt: string): readonly Readonly<Record<string, unknown>>[] {
  return jwt.split('.', 2).map((part) => objectOf(Buffer.from(part, 'base64url').toString()) ?? {})
}

function textsOf(parsed: unknown): Readonly<Record<string, string>> {
  if (!isObject(parsed)) return {}
  return Object.fromEntries(
    Object.entries(parsed).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  )
}

/** Whether responses of this place have tokens or a device code. */
export function givesTokens(place: Place): boolean {
  return place === 'token' || place === 'device_authorization'
}

/** The tokens of a token response, RFC 6749 §5.1, or the code of a device, RFC 8628 §3.2. */
export function tokensIn(body: string, now: Seconds): Gave {
  const members = objectOf(body) ?? {}
  const {
    access_token: accessToken,
    refresh_token: refreshToken,
    device_code: deviceCode,
    expires_in,
  } = members
  const seconds = Number(expires_in)
  return {
    codes: [],
    ...(typeof accessToken === 'string' && { accessToken }),
    ...(typeof refreshToken === 'string' && { refreshToken }),
    ...(typeof deviceCode === 'string' && { deviceCode }),
    ...(Number.isInteger(seconds) && { expiresAt: now + seconds }),
  }
}
