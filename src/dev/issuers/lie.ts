import type { FastifyReply, FastifyRequest } from 'fastify'
import type { KeyRing } from '../../keys/key-ring.ts'
import { escapeForPage } from '../../pages/i18n/html.ts'
import { objectOf } from '../json-body.ts'
import type { Conduct } from './conduct.ts'
import type { Criterion } from './criteria.ts'
import { callbackOf, hiddenField, type Place, type Step } from './step.ts'

/** A misbehaving issuer: a whole server that breaks exactly one rule. */
export interface Profile {
  readonly id: string
  readonly title: string
  /** What it breaks: `RFC 9207 §2`. */
  readonly clause: string
  /** The row of the requirement ledger by which the real server does not do it. */
  readonly ledger?: string
  /** What a sound client does. */
  readonly sound: string
  readonly fooledWhen: Criterion
  /** Absent: it does not lie. */
  readonly lie?: Lie
  /** Changes a request before the real server sees it; returns whether it did. */
  readonly ask?: (request: FastifyRequest) => boolean
}

/** A true response of the real server, and what it takes to change it. */
export interface Answer {
  readonly step: Step
  readonly body: string
  readonly reply: FastifyReply
  readonly issuer: string
  readonly keys: KeyRing
  /** What was seen here before. */
  readonly conduct: Pick<Conduct, 'has'>
}

/** Returns the body to send instead, and changes headers on the reply; undefined where there is nothing to change. */
export type Lie = (answer: Answer) => string | undefined | Promise<string | undefined>

/** The members of a JSON object, or the claims of a token. */
export type Members = Readonly<Record<string, unknown>>
/** Returns the members with one of them changed; undefined where there is nothing to change. */
export type Change = (members: Members, answer: Answer) => Members | undefined | Promise<Members | undefined>

/** Changes members of successful JSON responses at one place. */
export function inJson(place: Place, change: Change): Lie {
  return async (answer) => {
    const { step, body, reply } = answer
    if (step.place !== place || step.status >= 300) return undefined
    const members = objectOf(body)
    const changed = members && (await change(members, answer))
    if (changed === undefined) return undefined
    reply.removeHeader('etag')
    return JSON.stringify(changed)
  }
}

/** Changes the token response of this grant type. */
export function inTokens(grantType: 'authorization_code' | 'refresh_token', change: Change): Lie {
  return inJson('token', (members, answer) =>
    answer.step.sent.grantType === grantType ? change(members, answer) : undefined,
  )
}

/** Sends another body in place of a token response. */
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

/** The same members without this one. */
export function without(members: Members, name: string): Members | undefined {
  if (!(name in members)) return undefined
  return Object.fromEntries(Object.entries(members).filter(([member]) => member !== name))
}

/** Changes parameters of the authorization response (RFC 6749 §4.1.2), a redirect or a posted form. */
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
    ([name, value]) => `<input type="hidden" name="${name}" value="${escapeForPage(value)}">`,
  )
  let isFirst = true
  return html.replaceAll(hiddenField, () => {
    const replacement = isFirst ? fields.join('\n') : ''
    isFirst = false
    return replacement
  })
}
