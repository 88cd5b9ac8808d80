import t from 'tap'
import { parseBearer, parseBearerField } from '../../src/domain/bearer.ts'
import { OAuthError } from '../../src/domain/errors.ts'
import { readCredentials } from '../helpers/client-methods.ts'
import { fc } from '../helpers/generated.ts'

const anyText = fc.string({ unit: 'binary', maxLength: 40 })
const emails = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** RFC 6749 appendix B: application/x-www-form-urlencoded, as the WHATWG writes it. */
const formEncode = (text: string) => new URLSearchParams({ x: text }).toString().slice(2)
const text = fc
  .string({ unit: 'grapheme', maxLength: 20 })
  .filter((each) => !each.includes('\0') && each.isWellFormed())
const spelled = fc.constantFrom('Basic', 'basic', 'BASIC', 'bAsIc')

t.test('any client_id and client_secret survive HTTP Basic, RFC 6749 §2.3.1', async (t) => {
  const encode = fc.constantFrom(formEncode, encodeURIComponent)
  fc.assert(
    fc.property(text, text, encode, spelled, (clientId, clientSecret, encoded, scheme) => {
      fc.pre(clientId !== '')
      const pair = Buffer.from(`${encoded(clientId)}:${encoded(clientSecret)}`).toString('base64')
      const read = readCredentials(`${scheme} ${pair}`, {})
      return (
        read.method === 'client_secret_basic' &&
        read.clientId === clientId &&
        read.clientSecret === clientSecret
      )
    }),
    { numRuns: 5000 },
  )
  t.pass()
})

/** RFC 7617 §2 by hand: the scheme, spaces, then in base64 an id, a colon and a secret, each form-encoded. */
function readBasic(header: string): readonly [string, string] | undefined {
  if (header.slice(0, 5).toLowerCase() !== 'basic' || header.charAt(5) !== ' ') return undefined
  const token = trimSpaces(header.slice(5))
  const unpadded = token.endsWith('==')
    ? token.slice(0, -2)
    : token.endsWith('=')
      ? token.slice(0, -1)
      : token
  if (unpadded === '' || ![...unpadded].every((each) => `${emails}0123456789+/`.includes(each)))
    return undefined
  const pair = Buffer.from(unpadded, 'base64').toString()
  const colon = [...pair].indexOf(':') < 0 ? -1 : pair.indexOf(':')
  const [id, secret] = [formDecode(pair.slice(0, colon)), formDecode(pair.slice(colon + 1))]
  return colon < 1 || !id || secret === undefined ? undefined : [id, secret]
}

/** UTF-8 that is well-formed and has no NUL; undefined otherwise. */
function formDecode(encoded: string): string | undefined {
  const bytes: number[] = []
  for (let at = 0; at < encoded.length; at += 1) {
    const character = String.fromCodePoint(encoded.codePointAt(at) ?? 0)
    if (character.length === 2) at += 1
    if (character !== '%') {
      bytes.push(...Buffer.from(character === '+' ? ' ' : character))
      continue
    }
    const digits = encoded.slice(at + 1, at + 3)
    if (digits.length < 2 || ![...digits].every((digit) => '0123456789abcdefABCDEF'.includes(digit)))
      return undefined
    bytes.push(Number.parseInt(digits, 16))
    at += 2
  }
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(bytes))
  } catch {
    return undefined
  }
}

function trimSpaces(padded: string): string {
  let [from, to] = [0, padded.length]
  while (padded.charAt(from) === ' ') from += 1
  while (to > from && padded.charAt(to - 1) === ' ') to -= 1
  return padded.slice(from, to)
}

t.test(
  'a Basic header is parsed by its grammar, or rejected as invalid_client with a challenge',
  async (t) => {
    const content = fc.string({
      unit: fc.constantFrom(...'ab::%+&= ', '%C3%A5', '%zz', '%00', '%FF', '\u00e5', '\0'),
      maxLength: 12,
    })
    const encoded = fc.oneof(
      content.map((each) => Buffer.from(`a:${each}`).toString('base64')),
      content.map((each) => Buffer.from(each).toString('base64')),
      content.map((each) => Buffer.from(each).toString('base64url')),
      fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes).toString('base64')),
      anyText,
    )
    const header = fc.oneof(
      fc
        .tuple(
          spelled,
          fc.constantFrom(' ', ' ', ' ', '  ', '', '\t'),
          encoded,
          fc.constantFrom('', '', ' ', ',', '='),
        )
        .map((parts) => parts.join('')),
      anyText,
    )
    let read = 0
    fc.assert(
      fc.property(header, (authorization) => {
        const expected = readBasic(authorization)
        if (expected !== undefined) {
          read += 1
          const { clientId, clientSecret } = readCredentials(authorization, {})
          return clientId === expected[0] && clientSecret === expected[1]
        }
        try {
          readCredentials(authorization, {})
          return false
        } catch (error) {
          return (
            error instanceof OAuthError &&
            error.code === 'invalid_client' &&
            error.status === 401 &&
            /^Basic /.test(error.headers['www-authenticate'] ?? '')
          )
        }
      }),
      { numRuns: 10_000 },
    )
    t.ok(read > 50, `${read} were read`)
  },
)

/** RFC 6750 §2.1: b64token. */
function isToken(token: string): boolean {
  let end = token.length
  while (token.charAt(end - 1) === '=') end -= 1
  return (
    end > 0 &&
    token.length <= 8192 &&
    [...token.slice(0, end)].every((each) => `${emails}0123456789-._~+/`.includes(each))
  )
}

t.test('a Bearer header is one b64token, malformed, or of another scheme', async (t) => {
  const token = fc.string({
    unit: fc.constantFrom(...'aZ09-._~+/bY18-._~+/cX27', '=', ',', '"', ' ', '\u00e9', '\0', '\n'),
    maxLength: 12,
  })
  const scheme = fc.constantFrom('Bearer', 'bearer', 'BEARER', 'Bearer', 'Basic', 'Bearer2', 'DPoP', '')
  const header = fc.oneof(
    fc
      .tuple(
        scheme,
        fc.constantFrom(' ', ' ', ' ', '  ', '', '\t', '\n'),
        token,
        fc.constantFrom('', ' ', '  '),
      )
      .map((parts) => parts.join('')),
    anyText,
  )
  let read = 0
  fc.assert(
    fc.property(header, (authorization) => {
      const credentials = parseBearer(authorization)
      const isBearer = authorization.slice(0, 6).toLowerCase() === 'bearer'
      const next = authorization.charAt(6)
      if (!isBearer || (next !== '' && next.trim() !== '')) return credentials.kind === 'absent'
      const rest = trimSpaces(authorization.slice(6))
      if (next !== ' ' || !isToken(rest)) return credentials.kind === 'malformed'
      read += 1
      return credentials.kind === 'token' && credentials.token === rest
    }),
    { numRuns: 10_000 },
  )
  t.ok(read > 50, `${read} were read`)
})

t.test('a token in a form field is one b64token and nothing around it', async (t) => {
  const token = fc.string({ unit: fc.constantFrom(...'aZ09-._~+/', '=', ',', ' ', '\n'), maxLength: 8 })
  fc.assert(
    fc.property(token, (field) => parseBearerField(field).kind === (isToken(field) ? 'token' : 'malformed')),
    { numRuns: 5000 },
  )
  t.pass()
})
