/** What misbehaving issuers change in the responses of the real server. */
import { createPublicKey, type JsonWebKey } from 'node:crypto'
import type { FastifyReply } from 'fastify'
import { decodeJwt, decodeProtectedHeader, exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { SigningAlgorithm } from '../../domain/model.ts'
import type { KeyRing } from '../../keys/key-ring.ts'
import { escapeForPage } from '../../pages/i18n/html.ts'
import { objectOf } from '../json-body.ts'
import type { Conduct } from './conduct.ts'
import { callbackOf, hiddenField, type Place, type Step } from './step.ts'

/** A correct response of the real server, and what is needed to change it. */
export interface HttpResponse {
  readonly step: Step
  readonly body: string
  readonly reply: FastifyReply
  readonly issuer: string
  readonly keys: KeyRing
  /** What was seen here before. */
  readonly conduct: Pick<Conduct, 'has'>
}

type Maybe<T> = T | undefined | Promise<T | undefined>

/** Returns the body to send instead, and changes headers on the reply; undefined where nothing is to be changed. */
export type Alter = (response: HttpResponse) => Maybe<string>

/** Members of a JSON object, claims of a token, or parameters of an authorization response. */
export type Members = Readonly<Record<string, unknown>>

/** Returns the members with something changed; undefined where nothing is to be changed. */
export type Change = (members: Members, response: HttpResponse) => Maybe<Members>

/** Sets these members. */
export function set(values: Members): Change {
  return (members) => ({ ...members, ...values })
}

/** Removes the member of this name. */
export function remove(name: string): Change {
  return ({ [name]: removed, ...others }) => (removed === undefined ? undefined : others)
}

/** Replaces the value of a member that is present; `replacement` returns undefined to leave it unchanged. */
export function replace(name: string, replacement: (value: unknown) => unknown): Change {
  return (members) => {
    const value = name in members ? replacement(members[name]) : undefined
    return value === undefined ? undefined : { ...members, [name]: value }
  }
}

/** Changes members of successful JSON responses at one place. */
export function inJson(place: Place, change: Change): Alter {
  return async (response) => {
    const { step, body, reply } = response
    if (step.place !== place || step.status >= 300) return undefined
    const members = objectOf(body)
    const changed = members && (await change(members, response))
    if (changed === undefined) return undefined
    reply.removeHeader('etag')
    return JSON.stringify(changed)
  }
}

type GrantType = 'authorization_code' | 'refresh_token' | 'client_credentials'

/** Changes the token response of this grant type. */
export function inTokens(grantType: GrantType, change: Change): Alter {
  return inJson('token', (members, response) =>
    response.step.sent.grantType === grantType ? change(members, response) : undefined,
  )
}

/** Sends another body in place of a token response. */
export function insteadOfTokens(grantType: GrantType, contentType: string, body: string): Alter {
  return ({ step, reply }) => {
    if (step.gave.accessToken === undefined || step.sent.grantType !== grantType) return undefined
    reply.header('content-type', contentType)
    return body
  }
}

/** Changes parameters of a successful authorization response (RFC 6749 §4.1.2), a redirect or a posted form. */
export function inCallback(change: Change): Alter {
  return async (response) => {
    const { step, body, reply, issuer } = response
    const parameters = callbackOf(reply, body, issuer)
    if (step.place !== 'callback' || parameters?.has('code') !== true) return undefined
    const changed = await change(Object.fromEntries(parameters), response)
    if (changed === undefined) return undefined
    const pairs = Object.entries(changed).flatMap(([name, value]) =>
      [value].flat().map((each) => [name, String(each)] as [string, string]),
    )
    const location = reply.getHeader('location')
    if (typeof location !== 'string') return withFields(body, pairs)
    reply.header('location', `${location.split('?', 1)[0]}?${new URLSearchParams(pairs)}`)
    return body
  }
}

/** A page that posts itself, with these fields instead of its own. */
function withFields(html: string, pairs: readonly (readonly [string, string])[]): string {
  const fields = pairs.map(
    ([name, value]) => `<input type="hidden" name="${name}" value="${escapeForPage(value)}">`,
  )
  let isFirst = true
  return html.replaceAll(hiddenField, () => {
    const replacement = isFirst ? fields.join('\n') : ''
    isFirst = false
    return replacement
  })
}

/** Replaces the ID Token of a token response. */
export function replaceIdToken(replacement: (jws: string, response: HttpResponse) => Maybe<string>): Change {
  return async (members, response) => {
    const { id_token: jws } = members
    const replaced = typeof jws === 'string' ? await replacement(jws, response) : undefined
    return replaced === undefined ? undefined : { ...members, id_token: replaced }
  }
}

/** Changes claims of the ID Token of a token response; its signature is correct. */
export function inClaims(change: Change): Change {
  return replaceIdToken(async (jws, response) => {
    const claims = await change(decodeJwt(jws), response)
    return claims && response.keys.sign(algorithmOf(jws), 'JWT', claims)
  })
}

function algorithmOf(jws: string): SigningAlgorithm {
  // `as`: the key ring has signed it.
  return decodeProtectedHeader(jws).alg as SigningAlgorithm
}

/** Signs the same claims by a key that is not published, under this key id. */
export async function signedByStranger(jws: string, kid: string): Promise<string> {
  const algorithm = algorithmOf(jws)
  const { privateKey } = await strangerKey(algorithm)
  return new SignJWT(decodeJwt(jws)).setProtectedHeader({ alg: algorithm, kid, typ: 'JWT' }).sign(privateKey)
}

/** Removes the signature, RFC 7518 §3.6. */
export function unsigned(jws: string): string {
  const header = Buffer.from(JSON.stringify({ alg: 'none', typ: 'JWT' })).toString('base64url')
  return `${header}.${jws.split('.')[1]}.`
}

/** Signs the same claims by HMAC with the text of the public key as the secret, RFC 8725 §2.1. */
export async function signedByPublicKey(jws: string, keys: KeyRing): Promise<string> {
  const { kid = '' } = decodeProtectedHeader(jws)
  const found = keys.jwks().keys.find((key) => key.kid === kid)
  // `as`: a public JWK of ours is one of Node's.
  const publicKey = createPublicKey({ key: found as JsonWebKey, format: 'jwk' })
  const secret = Buffer.from(publicKey.export({ type: 'spki', format: 'pem' }).toString())
  return new SignJWT(decodeJwt(jws)).setProtectedHeader({ alg: 'HS256', kid, typ: 'JWT' }).sign(secret)
}

/** Changes the signature. */
export function wronglySigned(jws: string): string {
  const [header = '', payload = '', signature = ''] = jws.split('.')
  const bytes = Buffer.from(signature, 'base64url')
  bytes[0] = (bytes[0] ?? 0) ^ 1
  return [header, payload, bytes.toString('base64url')].join('.')
}

/** Replaces each published key by another one with the same key id. */
export async function swapKeys(jwks: Members): Promise<Members> {
  const { keys } = jwks
  if (!Array.isArray(keys)) return jwks
  const swapped = keys.map(async (key: { readonly kid: string; readonly alg: SigningAlgorithm }) => {
    const { publicKey } = await strangerKey(key.alg)
    return { ...(await exportJWK(publicKey)), kid: key.kid, alg: key.alg, use: 'sig' }
  })
  return { ...jwks, keys: await Promise.all(swapped) }
}

/** Generated once per process, because an RSA key takes a while. */
const strangers = new Map<SigningAlgorithm, ReturnType<typeof generateKeyPair>>()

function strangerKey(algorithm: SigningAlgorithm) {
  const key = strangers.get(algorithm) ?? generateKeyPair(algorithm, { extractable: true })
  strangers.set(algorithm, key)
  return key
}
