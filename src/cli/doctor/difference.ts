import { isObject } from '../../domain/is-object.ts'
import { type Answer, headerOf } from './ask.ts'

/** How a response differs from what this configuration says. */
export interface Difference {
  readonly kind: 'redirect' | 'status' | 'other' | 'slash' | 'scheme' | 'issuer' | 'members' | 'type'
  readonly said: string
  readonly expected: string
  readonly found: string
}

type Members = Readonly<Record<string, unknown>>

/** The first difference of a JSON document that matters; undefined when it is what it should be. */
export function differenceOf(answer: Answer, reference: Answer): Difference | undefined {
  const { status, body } = answer
  const location = headerOf(answer, 'location')
  if (status >= 300 && status < 400) {
    const found = `${status}, to ${location ?? 'nowhere'}`
    return { kind: 'redirect', said: 'is answered with a redirect', expected: answer.url, found }
  }
  if (status !== reference.status) {
    const found = `${status}: ${excerpt(answer)}`
    return { kind: 'status', said: `is answered with ${status}`, expected: `${reference.status}`, found }
  }
  const [members, expected] = [membersOf(body), membersOf(reference.body) ?? {}]
  if (members === undefined) {
    const found = `${headerOf(answer, 'content-type') ?? 'no content type'}: ${excerpt(answer)}`
    return { kind: 'other', said: 'is answered by something else', expected: 'a JSON document', found }
  }
  return (
    differenceOfIssuer(members, expected) ??
    differenceOfMembers(members, expected) ??
    differenceOfType(answer, reference)
  )
}

/** RFC 8414 §3.3, RFC 9728 §3.3: clients compare it character by character, and reject anything else. */
function differenceOfIssuer(members: Members, reference: Members): Difference | undefined {
  const name = 'issuer' in reference ? 'issuer' : 'resource'
  const [expected, found] = [String(reference[name]), members[name]]
  if (found === expected) return undefined
  if (typeof found !== 'string') {
    return {
      kind: 'other',
      said: `names no ${name}`,
      expected,
      found: Object.keys(members).slice(0, 5).join(', '),
    }
  }
  if (found.replace(/\/+$/, '') === expected) {
    return { kind: 'slash', said: `names the ${name} with a trailing slash`, expected, found }
  }
  const other = expected.startsWith('https:')
    ? expected.replace(/^https/, 'http')
    : expected.replace(/^http/, 'https')
  if (found === other) {
    const scheme = new URL(found).protocol.slice(0, -1)
    return { kind: 'scheme', said: `names the ${name} with ${scheme}`, expected, found }
  }
  return { kind: 'issuer', said: `names another ${name}`, expected, found }
}

function differenceOfMembers(members: Members, reference: Members): Difference | undefined {
  const names = [...new Set([...Object.keys(reference), ...Object.keys(members)])]
  const different = names.filter((name) => JSON.stringify(members[name]) !== JSON.stringify(reference[name]))
  const [first] = different
  if (first === undefined) return undefined
  const [expected, found] = [reference, members].map(
    (each) => `${first}: ${shortened(JSON.stringify(each[first]))}`,
  )
  const said = `differs in ${different.join(', ')}`
  return { kind: 'members', said, expected: expected ?? '', found: found ?? '' }
}

function differenceOfType(answer: Answer, reference: Answer): Difference | undefined {
  const [expected = '', found = 'none'] = [reference, answer].map((one) => headerOf(one, 'content-type'))
  const [type, otherType] = [expected, found].map((text) => text.split(';')[0]?.trim().toLowerCase())
  return type === otherType
    ? undefined
    : { kind: 'type', said: 'has the wrong content type', expected, found }
}

/** The members of a JSON object; undefined when the text is none. */
export function membersOf(body: string): Members | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** What a page calls itself, or how it begins: enough to know whose error page it is. */
export function excerpt({ body }: Answer): string {
  const title = /<title[^>]*>([^<]*)/i.exec(body)?.[1]
  return shortened((title ?? body).trim().replaceAll(/\s+/g, ' ')) || 'nothing'
}

function shortened(text: string | undefined): string {
  if (text === undefined) return 'absent'
  return text.length > 100 ? `${text.slice(0, 99)}…` : text
}
