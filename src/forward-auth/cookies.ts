import type { FastifyReply, FastifyRequest } from 'fastify'
import { hmacText } from '../domain/hmac.ts'
import type { Grant } from '../domain/model.ts'
import { hashSecret, isSameText } from '../domain/secret.ts'
import type { KeyRing } from '../keys/key-ring.ts'

/*
 * The cookies of a protected host. `__Host-` binds them to it: no other host of the domain can set or read them. The
 * proxy gets the Cookie header without them, for the app.
 */

/** Who is signed in to the host. */
export const signedInCookie = '__Host-lychgate_host'
/** Which browser began to sign in, so that no other one can end what it began. */
export const browserCookie = '__Host-lychgate_host_browser'

type Sealer = Pick<KeyRing, 'pseudonym'>

const cookieSyntax = /^lyc_host_([\w-]{16})([\w-]{22})([\w-]{22})$/

/** Returns the cookie of a grant for one host. Neither a leaked database nor a leaked key suffices to make one. */
export function sealCookie({ id, secret }: Grant, host: string, { pseudonym }: Sealer): string {
  return `lyc_host_${id}${pseudonym('forward-auth cookie', id, host)}${grantTag(secret, host)}`
}

/** Opens a cookie, before anything is looked up; `isOf` checks it with the secret of its grant. */
export function openCookie(text: string, host: string, { pseudonym }: Sealer) {
  const [, grantId = '', keyTag, tag] = cookieSyntax.exec(text) ?? []
  if (!isSameText(keyTag, pseudonym('forward-auth cookie', grantId, host))) return undefined
  return { grantId, isOf: (secret: string) => isSameText(tag, grantTag(secret, host)) }
}

function grantTag(secret: string, host: string): string {
  return hmacText(secret, `forward-auth cookie ${host}`, 16)
}

/** Where a sign-in began, which goes through the authorization request as its `state`. */
export interface Begun {
  readonly host: string
  /** The secret of the browser. */
  readonly browser: string
}

/** Returns the `state` of a sign-in: where it goes back to, bound to the host and the browser. */
export function sealState(to: string, nonce: string, begun: Begun, sealer: Sealer): string {
  const content = Buffer.from(JSON.stringify([nonce, to])).toString('base64url')
  return `${content}.${stateTag(content, begun, sealer)}`
}

/** Returns where a sign-in goes back to; undefined if this browser did not begin it on this host. */
export function openState(state: string, begun: Begun, sealer: Sealer): string | undefined {
  const [content = '', tag] = state.split('.')
  if (!isSameText(tag, stateTag(content, begun, sealer))) return undefined
  const [, to] = JSON.parse(Buffer.from(content, 'base64url').toString()) as readonly string[] // of sealState
  return to
}

function stateTag(content: string, { host, browser }: Begun, { pseudonym }: Sealer): string {
  return pseudonym('forward-auth state', content, host, hashSecret(browser))
}

/** Returns the `code_verifier` of a sign-in (RFC 7636 §4.1), which is not stored: it follows from the state. */
export function verifierOf(state: string, { host, browser }: Begun, { pseudonym }: Sealer): string {
  return ['1', '2'].map((half) => pseudonym('forward-auth verifier', half, state, host, browser)).join('')
}

const pairsOf = ({ headers }: FastifyRequest) => headers.cookie?.split(/; */) ?? []

/** Reads a cookie. `__Host-` has one value for a host; of two, which no browser sends, none counts. */
export function readCookie(request: FastifyRequest, name: string): string | undefined {
  const values = pairsOf(request).filter((pair) => pair.startsWith(`${name}=`))
  return values.length === 1 ? values[0]?.slice(name.length + 1) : undefined
}

/** Returns the Cookie header that the app gets: without the cookies of this server. */
export function cookiesOfApp(request: FastifyRequest): string {
  return pairsOf(request)
    .filter((pair) => !pair.startsWith(signedInCookie))
    .join('; ')
}

/** Sets a cookie of the host, until the browser is closed. */
export function setCookie(reply: FastifyReply, name: string, value: string): void {
  reply.header('set-cookie', `${name}=${value}; Path=/; Secure; HttpOnly; SameSite=Lax`)
}
