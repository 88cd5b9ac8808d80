import type { Ended } from './browser.ts'
import { type Judgement, judge, type Rule, type Seen } from './observation.ts'
import { endingOf } from './params.ts'
import { membersOf } from './server.ts'

/** The status is one of these. */
export function status(...allowed: readonly number[]): Rule {
  return (seen) =>
    allowed.includes(seen.status) ? undefined : `status ${seen.status} instead of ${allowed.join(' or ')}`
}

/** The body is a JSON object, and its type says so. */
export const json: Rule = (seen) => {
  const type = String(seen.headers['content-type'] ?? 'none')
  if (!/^application\/(?:[\w.-]+\+)?json\b/i.test(type)) return `the type of the response is ${type}`
  return membersOf(seen) === undefined ? 'the body is not a JSON object' : undefined
}

/** RFC 6749 §5.2: a JSON object with one of these error codes. */
export function error(...codes: readonly string[]): Rule {
  return (seen) => {
    const error = membersOf(seen)?.['error']
    if (typeof error !== 'string') return `status ${seen.status} without an error member`
    return codes.length === 0 || codes.includes(error)
      ? undefined
      : `error ${error} instead of ${codes.join(' or ')}`
  }
}

/** RFC 6749 §5.2: rejected with status 400, or 401 for clients, and one of these error codes. */
export function rejected(...codes: readonly string[]): Rule {
  return (seen) => status(400, 401)(seen) ?? error(...codes)(seen)
}

/** No token came. */
export const noToken: Rule = (seen) =>
  membersOf(seen)?.['access_token'] === undefined ? undefined : 'the response has an access token'

/** The request is rejected with one of these codes, and no token comes. */
export function denies(seen: Seen, ...codes: readonly string[]): Judgement {
  return judge(seen, noToken, rejected(...codes))
}

/** A response with an access token. */
export const tokens: Rule = (seen) =>
  status(200)(seen) ??
  (typeof membersOf(seen)?.['access_token'] === 'string' ? undefined : 'there is no access_token')

/** A header has a value that matches. */
export function header(name: string, pattern: RegExp): Rule {
  return ({ headers }) => {
    const value = String(headers[name] ?? '')
    return pattern.test(value)
      ? undefined
      : value === ''
        ? `there is no ${name} header`
        : `${name} is ${value}`
  }
}

/** A response does not have a header. */
export function withoutHeader(name: string): Rule {
  return ({ headers }) => (headers[name] === undefined ? undefined : `${name} is ${String(headers[name])}`)
}

/** RFC 6749 §5.1. */
export const noStore = header('cache-control', /\bno-store\b/i)

/** RFC 6749 §5.2: printable ASCII without quotation mark and backslash. */
export const errorCharset: Rule = (seen) => {
  for (const name of ['error', 'error_description']) {
    const value = membersOf(seen)?.[name]
    if (typeof value === 'string' && !/^[\x20\x21\x23-\x5b\x5d-\x7e]*$/.test(value))
      return `${name} has other characters`
  }
  return undefined
}

/** A member of the JSON body has a value that fits. */
export function member(name: string, fits: (value: unknown) => boolean, expected: string): Rule {
  return (seen) => {
    const value = membersOf(seen)?.[name]
    return fits(value) ? undefined : `${name} is ${JSON.stringify(value) ?? 'absent'}: ${expected}`
  }
}

/** An authorization request got no code; with codes: its error is one of them, at the client or on a page. */
export function endsWithout(ended: Ended, ...codes: readonly string[]): Judgement {
  const seen = [ended.seen]
  if (ended.kind === 'page') return { seen }
  const got = ['code', 'access_token', 'id_token'].find((name) => ended.params.has(name))
  if (got !== undefined) return { seen, fault: `the request is accepted: ${got} comes` }
  const error = ended.params.get('error') ?? ''
  const fits = codes.length === 0 || codes.includes(error)
  return {
    seen,
    fault: fits ? undefined : `the error is ${error || 'missing'} instead of ${codes.join(' or ')}`,
  }
}

/** An authorization request ended at the client with one of these errors. */
export function endsWithError(ended: Ended, ...codes: readonly string[]): Judgement {
  if (ended.kind === 'page' && ended.isPush === true) return denies(ended.seen, ...codes)
  if (ended.kind === 'page')
    return {
      seen: [ended.seen],
      fault: `it ends with ${endingOf(ended)} instead of a redirect with an error`,
    }
  return endsWithout(ended, ...codes)
}

/** Nothing was sent to the client, or to where the request asked for. */
export function endsOnPage(ended: Ended): Judgement {
  const seen = [ended.seen]
  if (ended.kind === 'callback') return { seen, fault: 'the browser is sent on instead of shown a page' }
  const isRedirect = ended.seen.status >= 300 && ended.seen.status < 400
  return { seen, fault: isRedirect ? endingOf(ended) : undefined }
}

/** An authorization request got a code. */
export function endsWithCode(ended: Ended): Judgement {
  const isCode = ended.kind === 'callback' && ended.params.has('code')
  return { seen: [ended.seen], fault: isCode ? undefined : `no code comes: ${endingOf(ended)}` }
}

/** The browser was sent on, to where the client waits. */
export function endsAtClient(ended: Ended): Judgement {
  const fault = ended.kind === 'callback' ? undefined : `it ends with ${endingOf(ended)}`
  return { seen: [ended.seen], fault }
}

/** A fact that needs more than one response. */
export function observe(isMet: boolean, fault: string, ...seen: readonly Seen[]): Judgement {
  return { seen, fault: isMet ? undefined : fault }
}
