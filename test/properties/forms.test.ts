import t from 'tap'
import { OAuthError } from '../../src/domain/errors.ts'
import {
  assertNoneRepeated,
  every,
  formatParameters,
  type Parameters,
  parseParameters,
} from '../../src/domain/parameters.ts'
import { fc } from '../helpers/generated.ts'

const limits = { parameters: 20, parameterBytes: 40 }
const names = [
  'a',
  'b',
  'client_id',
  'resource',
  '__proto__',
  'constructor',
  'toString',
  'a%20b',
  '%C3%A5',
  '',
]
const values = [
  '',
  '',
  '1',
  '+',
  '%20',
  '%2B',
  '%26',
  '%3D',
  '=',
  'x=y',
  '%C3%A9',
  '%F0%9F%98%80',
  '%ef%bb%bf',
  '\u00e9',
  '%',
  '%4',
  '%zz',
  '%00',
  '\0',
  '%FF',
  '%C0%AF',
  '%ED%A0%80',
  ' ',
  'a'.repeat(40),
  'a'.repeat(41),
  '%61'.repeat(40),
]
const pair = fc.tuple(
  fc.constantFrom(...names),
  fc.constantFrom('=', '=', '=', '', '=='),
  fc.constantFrom(...values),
)
const body = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .array(
        pair.map((parts) => parts.join('')),
        { maxLength: 5 },
      )
      .map((pairs) => pairs.join('&')),
  },
  {
    weight: 1,
    arbitrary: fc
      .array(fc.constantFrom('a=1', 'b', '', 'resource=x'), { maxLength: 25 })
      .map((pairs) => pairs.join('&')),
  },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }) },
  { weight: 1, arbitrary: fc.string({ unit: fc.constantFrom(...'a&=+%20'), maxLength: 20 }) },
)

/**
 * Why a strict parser rejects the text, by hand; only the rest is compared with the WHATWG parser, which accepts
 * anything.
 */
function whyUnreadable(text: string): string | undefined {
  const characters = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at))
  if (characters.some((code) => code < 0x20 || code > 0x7e)) return 'not printable ASCII'
  if (text.split('&').some((pair) => pair.split('=')[0]?.includes(' '))) return 'a raw space in a name'
  if (text.split('&').length > limits.parameters) return 'too many'
  const bytes: number[] = []
  for (let at = 0; at < text.length; at += 1) {
    if (text.charAt(at) !== '%') {
      // A separator must not be read as part of a multi-byte character.
      bytes.push(text.charCodeAt(at))
      continue
    }
    const digits = text.slice(at + 1, at + 3)
    if (digits.length < 2 || [...digits].some((digit) => !'0123456789abcdefABCDEF'.includes(digit)))
      return 'a broken encoding'
    bytes.push(Number.parseInt(digits, 16))
    at += 2
  }
  if (bytes.includes(0)) return 'NUL'
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(bytes))
  } catch {
    return 'not UTF-8'
  }
  const long = [...new URLSearchParams(text).values()].some(
    (value) => Buffer.byteLength(value) > limits.parameterBytes,
  )
  return long ? 'too long' : undefined
}

function read(text: string): Parameters | undefined {
  try {
    return parseParameters(text, limits)
  } catch (error) {
    if (error instanceof OAuthError && error.code === 'invalid_request') return undefined
    throw error
  }
}

t.test('a form is parsed as the WHATWG does, or rejected for what no form has', async (t) => {
  let [accepted, rejected] = [0, 0]
  fc.assert(
    fc.property(body, (text) => {
      const parameters = read(text)
      if (whyUnreadable(text) !== undefined) {
        rejected += 1
        return parameters === undefined
      }
      if (parameters === undefined) return false
      accepted += 1
      const expected = new Map<string, string[]>()
      for (const [name, value] of new URLSearchParams(text)) {
        if (value !== '') expected.set(name, [...(expected.get(name) ?? []), value])
      }
      const entries = Object.keys(parameters).map((name) => [name, every(parameters, name)])
      return JSON.stringify(entries.sort()) === JSON.stringify([...expected].sort())
    }),
    { numRuns: 20_000 },
  )
  t.ok(accepted > 2000 && rejected > 2000, `${accepted} read, ${rejected} refused`)
})

t.test(
  'a form is rejected as repetitive exactly when a name other than resource has two values',
  async (t) => {
    let repetitive = 0
    fc.assert(
      fc.property(body, (text) => {
        const parameters = read(text)
        fc.pre(parameters !== undefined)
        const filled = [...new URLSearchParams(text)].filter(
          ([name, value]) => name !== 'resource' && value !== '',
        )
        const repeats = new Set(filled.map(([name]) => name)).size < filled.length
        if (repeats) repetitive += 1
        try {
          assertNoneRepeated(parameters ?? {})
          return !repeats
        } catch (error) {
          return repeats && error instanceof OAuthError && error.code === 'invalid_request'
        }
      }),
      { numRuns: 10_000 },
    )
    t.ok(repetitive > 300, `${repetitive} repeat`)
  },
)

t.test('a parsed form that is serialised again parses to the same', async (t) => {
  fc.assert(
    fc.property(body, (text) => {
      const parameters = read(text)
      fc.pre(parameters !== undefined)
      const again = read(formatParameters(parameters ?? {}))
      return JSON.stringify(again) === JSON.stringify(parameters)
    }),
    { numRuns: 10_000 },
  )
  t.pass()
})
