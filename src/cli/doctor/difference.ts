import { type Setup, setting, upstreamOf } from '../../doctor/finding.ts'
import { excerptOf, type HttpResponse, headerOf, membersOf, shortened } from './http.ts'

/** How a response differs from the response of a server of this configuration, and what to change. */
export interface Difference {
  readonly kind: 'redirect' | 'status' | 'other' | 'rewritten' | 'issuer' | 'members' | 'type'
  readonly said: string
  readonly expected: string
  readonly found: string
  readonly change: readonly string[]
}

type Members = Readonly<Record<string, unknown>>

/** Returns the first difference of a JSON document that matters; undefined if there is none. */
export function differenceOf(
  setup: Setup,
  response: HttpResponse,
  reference: HttpResponse,
): Difference | undefined {
  const { url, status } = response
  const location = `location ${new URL(url).pathname} { proxy_pass ${upstreamOf(setup)}; }`
  if (status >= 300 && status < 400) {
    return {
      kind: 'redirect',
      said: 'is a redirect',
      expected: url,
      found: `${status}, to ${headerOf(response, 'location') ?? 'no location'}`,
      change: [
        `${location}   (in nginx: no return, no rewrite, no added slash)`,
        `or make the issuer the address it leads to: ${setting('issuer', 'https://…').join('   ')}`,
      ],
    }
  }
  if (status !== reference.status) {
    const change = [`${location}   (in nginx: without a path after the port)`]
    const [said, expected] = [`has status ${status}`, `${reference.status}`]
    return { kind: 'status', said, expected, found: `${status}: ${excerptOf(response)}`, change }
  }
  const [members, expected] = [membersOf(response), membersOf(reference) ?? {}]
  if (members === undefined) {
    const found = `${headerOf(response, 'content-type') ?? 'no content type'}: ${excerptOf(response)}`
    const change = changeOfServer(setup)
    return { kind: 'other', said: 'comes from another server', expected: 'a JSON document', found, change }
  }
  return (
    differenceOfIssuer(setup, members, expected) ??
    differenceOfMembers(members, expected) ??
    differenceOfType(response, reference)
  )
}

/** Compares as clients do, character by character: RFC 8414 §3.3, RFC 9728 §3.3. */
function differenceOfIssuer(setup: Setup, members: Members, reference: Members): Difference | undefined {
  const name = 'issuer' in reference ? 'issuer' : 'resource'
  const [expected, value] = [String(reference[name]), members[name]]
  if (value === expected) return undefined
  if (typeof value !== 'string') {
    const names = Object.keys(members).slice(0, 5).join(', ')
    return { kind: 'other', said: `has no ${name}`, expected, found: names, change: changeOfServer(setup) }
  }
  const [ending, otherEnding] = [value, expected].map((text) => text.replace(/^https?:/, ''))
  const isSlashed = value.replace(/\/+$/, '') === expected
  if (!isSlashed && ending !== otherEnding) {
    const issuer = URL.canParse(value) ? value.replace(/\/+$/, '') : undefined
    return {
      kind: 'issuer',
      said: `has another ${name}`,
      expected,
      found: value,
      change: changeOfServer(setup, issuer),
    }
  }
  const said = `has the ${name} with ${isSlashed ? 'a trailing slash' : value.split(':')[0]}`
  const rewrite = 'sub_filter_types none;   (in nginx: the proxy must not rewrite what it passes on)'
  return {
    kind: 'rewritten',
    said,
    expected,
    found: value,
    change: [rewrite, ...setting('issuer', setup.config.issuer)],
  }
}

function differenceOfMembers(members: Members, reference: Members): Difference | undefined {
  const names = [...new Set([...Object.keys(reference), ...Object.keys(members)])]
  const different = names.filter((name) => JSON.stringify(members[name]) !== JSON.stringify(reference[name]))
  const [first] = different
  if (first === undefined) return undefined
  const shown = (value: unknown) => `${first}: ${shortened(JSON.stringify(value) ?? 'absent')}`
  const [expected, found] = [shown(reference[first]), shown(members[first])]
  return { kind: 'members', said: `differs in ${different.join(', ')}`, expected, found, change: refresh }
}

function differenceOfType(response: HttpResponse, reference: HttpResponse): Difference | undefined {
  const [expected = '', value = 'none'] = [reference, response].map((one) => headerOf(one, 'content-type'))
  const [type, otherType] = [expected, value].map((text) => text.split(';')[0]?.trim().toLowerCase())
  if (type === otherType) return undefined
  return { kind: 'type', said: 'has the wrong content type', expected, found: value, change: refresh }
}

const refresh = [
  'restart the server with this version and these options',
  'proxy_cache off;   (in nginx, where it keeps an old copy)',
]

function changeOfServer(setup: Setup, issuer = setup.config.issuer): readonly string[] {
  const upstream = upstreamOf(setup)
  return [
    `proxy_pass ${upstream};   (in nginx: to this server, without a path)`,
    ...setting('issuer', issuer),
  ]
}
