import type { FastifyReply } from 'fastify'
import type { KeyRing } from '../../keys/key-ring.ts'
import type { Conduct } from './conduct.ts'
import { callbackOf, hiddenField, membersOf, type Place, type Step } from './step.ts'

/** A true answer of the real server, and what it takes to change it. */
export interface Answer {
  readonly step: Step
  readonly body: string
  readonly reply: FastifyReply
  readonly issuer: string
  readonly keys: KeyRing
  /** What was seen here before. */
  readonly conduct: Pick<Conduct, 'has'>
}

/** The body to send instead, headers being changed on the reply; undefined where there is nothing to lie about. */
export type Lie = (answer: Answer) => string | undefined | Promise<string | undefined>

/** The members of a JSON object, or the claims of a token. */
export type Members = Readonly<Record<string, unknown>>
/** The members of a response with one of them changed; undefined where there is nothing to lie about. */
export type Change = (members: Members, answer: Answer) => Members | undefined | Promise<Members | undefined>

/** Lies about members of successful JSON answers at one place. */
export function inJson(place: Place, change: Change): Lie {
  return async (answer) => {
    const { step, body, reply } = answer
    if (step.place !== place || step.status >= 300) return undefined
    const members = membersOf(body)
    const changed = members && (await change(members, answer))
    if (changed === undefined) return undefined
    // The document is another one now.
    reply.removeHeader('etag')
    return JSON.stringify(changed)
  }
}

/** Lies in the token response of this grant type. */
export function inTokens(grantType: 'authorization_code' | 'refresh_token', change: Change): Lie {
  return inJson('token', (members, answer) =>
    answer.step.sent.grantType === grantType ? change(members, answer) : undefined,
  )
}

/** Says something else than JSON instead of a token response. */
export function insteadOfTokens(
  grantType: 'authorization_code' | 'refresh_token',
  contentType: string,
  body: string,
): Lie {
  return ({ step, reply }) => {
    if (step.gave.accessToken === undefined || step.sent.grantType !== grantType) return undefined
    reply.header('content-type', contentType)
    return body
  }
}

/** The same answer without this member. */
export function without(members: Members, name: string): Members | undefined {
  if (!(name in members)) return undefined
  return Object.fromEntries(Object.entries(members).filter(([member]) => member !== name))
}

/** Lies about parameters of the authorization response, RFC 6749 §4.1.2, whether by redirect or by a posted form. */
export function inCallback(change: (parameters: URLSearchParams, issuer: string) => void): Lie {
  return ({ step, body, reply, issuer }) => {
    const parameters = callbackOf(reply, body, issuer)
    if (step.place !== 'callback' || parameters?.has('code') !== true) return undefined
    const before = parameters.toString()
    change(parameters, issuer)
    if (parameters.toString() === before) return undefined
    const location = reply.getHeader('location')
    if (typeof location !== 'string') return withFields(body, parameters)
    reply.header('location', `${location.split('?', 1)[0]}?${parameters}`)
    return body
  }
}

/** A page that posts itself, with these fields instead of its own. */
function withFields(html: string, parameters: URLSearchParams): string {
  const fields = [...parameters].map(
    ([name, value]) =>
      `<input type="hidden" name="${name}" value="${value.replaceAll(/[&"<>]/g, (special) => entities[special] ?? special)}">`,
  )
  let isFirst = true
  return html.replaceAll(hiddenField, () => {
    const replacement = isFirst ? fields.join('\n') : ''
    isFirst = false
    return replacement
  })
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '"': '&quot;', '<': '&lt;', '>': '&gt;' }
