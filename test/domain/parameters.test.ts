import t from 'tap'
import {
  assertNoneRepeated,
  every,
  formatParameters,
  parseParameters,
  single,
} from '../../src/domain/parameters.ts'
import { fc } from '../helpers/generated.ts'

const limits = { parameters: 100, parameterBytes: 8192 }
const parse = (text: string) => parseParameters(text, limits)
const members = (text: string) => ({ ...parse(text) })

t.test('names and values are form-decoded as UTF-8, with + as a space', async (t) => {
  const rows: [string, Record<string, unknown>][] = [
    ['', {}],
    ['a=1', { a: '1' }],
    ['a=1&b=2', { a: '1', b: '2' }],
    ['a=+%20%26%2B%C2%A3%E2%82%AC', { a: '  &+£€' }],
    ['a=b=c&d==', { a: 'b=c', d: '=' }],
    ['%61=%F0%9F%98%80', { a: '😀' }],
    ['=1', { '': '1' }],
    ['state=a:b/c?d@e', { state: 'a:b/c?d@e' }],
    ['a+b=1', { 'a b': '1' }],
    ['e%CC%81=%C3%A9', { 'e\u0301': '\u00e9' }],
  ]
  for (const [text, expected] of rows) t.strictSame(members(text), expected, text)
})

t.test('a parameter without a value counts as omitted', async (t) => {
  for (const text of ['a=', 'a', '&', '&&a&', '=', 'a=&a=', '%61=']) t.strictSame(members(text), {}, text)
  t.strictSame(members('a=&a=1&a'), { a: '1' })
})

t.test('a repeated parameter keeps every value, in order', async (t) => {
  t.strictSame(members('a=1&b=x&a=2&a=3&a=2'), { a: ['1', '2', '3', '2'], b: 'x' })
})

t.test('names of Object.prototype are ordinary names', async (t) => {
  const parameters = parse('__proto__=1&constructor=2&toString=3&hasOwnProperty=4')
  t.equal(Object.getPrototypeOf(parameters), null)
  t.strictSame(Object.entries(parameters), [
    ['__proto__', '1'],
    ['constructor', '2'],
    ['toString', '3'],
    ['hasOwnProperty', '4'],
  ])
  t.equal(single(parse('a=1'), 'constructor'), undefined)
  t.strictSame(every(parse('a=1'), 'toString'), [])
  t.throws(() => assertNoneRepeated(parse('__proto__=1&__proto__=2')), { code: 'invalid_request' })
})

t.test('what is not form-urlencoded UTF-8 is rejected, at any position', async (t) => {
  const broken = ['%', '%4', '%zz', '%C3', '%FF', '%C0%80', '%ED%A0%80', '%F8%88%80%80%80', '%00', 'a%00b']
  const raw = ['é', '\u{fffd}', '\0', 'a\tb', 'a\nb', 'a\r', '\x7f', '😀']
  for (const text of [...broken, ...raw]) {
    for (const place of [
      `a=${text}`,
      `${text}=a`,
      `x=1&${text}&y=2`,
      `a=%20${text}`,
      `a=${text}+`,
      `+${text}=b`,
    ]) {
      t.throws(
        () => parse(place),
        { code: 'invalid_request', detail: { rule: 'rfc6749-B-form-encoding' } },
        JSON.stringify(place),
      )
    }
  }
})

t.test('a raw space is a space inside a value, and an error elsewhere', async (t) => {
  t.strictSame(members('scope=openid profile&x=1'), { scope: 'openid profile', x: '1' })
  t.strictSame(members('a= b &c=d%20e f+g'), { a: ' b ', c: 'd e f g' })
  for (const text of ['a b=1', ' a=1', 'a =1', 'a=1& b=2', 'a b', ' ', 'a=1&b c']) {
    t.throws(
      () => parse(text),
      { code: 'invalid_request', detail: { rule: 'rfc6749-B-form-encoding' } },
      JSON.stringify(text),
    )
  }
})

t.test('the number of parameters and the length of a value are limited', async (t) => {
  const many = (count: number) => Array.from({ length: count }, (_, at) => `p${at}=1`).join('&')
  t.equal(Object.keys(parse(many(100))).length, 100)
  for (const [text, why] of [
    [many(101), 'one too many'],
    ['&'.repeat(100), 'empty ones count'],
  ] as const)
    t.throws(
      () => parse(text),
      {
        code: 'invalid_request',
        message: 'the request has too many parameters (limits.parameters)',
        detail: { rule: 'lychgate-limits-parameters', stored: 100 },
      },
      why,
    )
  for (const [character, bytes] of [
    ['x', 1],
    ['é', 2],
    ['€', 3],
    ['😀', 4],
  ] as const) {
    const most = Math.floor(8192 / bytes)
    const sent = encodeURIComponent(character)
    t.equal(parse(`a=${sent.repeat(most)}`)['a'], character.repeat(most))
    t.throws(
      () => parse(`a=${sent.repeat(most + 1)}`),
      {
        code: 'invalid_request',
        message: 'a parameter value is too long (limits.parameterBytes)',
        detail: {
          rule: 'lychgate-limits-parameter-bytes',
          stored: 8192,
          received: (most + 1) * bytes,
        },
      },
      character,
    )
  }
})

t.test('an error names the parameter only if its name is short and plain', async (t) => {
  const detail = { rule: 'rfc6749-3.1-no-duplicate-request-params' }
  for (const name of ['client_id', 'x'.repeat(40), 'a'])
    t.throws(() => assertNoneRepeated(parse(`${name}=1&${name}=1`)), {
      code: 'invalid_request',
      message: `${name} must not be repeated`,
      detail,
    })
  for (const name of ['%22', 'A', 'x'.repeat(41), 'a-b', '%0A', 'Aa', 'aA'])
    t.throws(() => assertNoneRepeated(parse(`${name}=1&${name}=2`)), {
      code: 'invalid_request',
      message: 'a parameter must not be repeated',
      detail,
    })
  t.throws(() => single(parse('code=1&code=2'), 'code'), {
    code: 'invalid_request',
    message: 'code must not be repeated',
    detail,
  })
  t.equal(single(parse('code=1'), 'code'), '1')
  t.doesNotThrow(() => assertNoneRepeated(parse('resource=a&resource=b&x=1')))
  t.strictSame(every(parse('resource=a&resource=b'), 'resource'), ['a', 'b'])
  t.strictSame(every(parse('resource=a'), 'resource'), ['a'])
})

t.test('a parsed form is serialised to the same parameters', async (t) => {
  const text = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
    .filter((each) => !each.includes('\0'))
  const pairs = fc.uniqueArray(fc.tuple(text, fc.array(text, { minLength: 1, maxLength: 3 })), {
    selector: ([name]) => name,
    maxLength: 10,
  })
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(pairs, (sent) => {
        const query = new URLSearchParams(
          sent.flatMap(([name, values]) => values.map((value): [string, string] => [name, value])),
        )
        const read = parse(query.toString())
        const again = parse(formatParameters(read))
        return sent.every(([name, values]) => {
          return (
            every(read, name).join('|') === values.join('|') &&
            every(again, name).join('|') === values.join('|')
          )
        })
      }),
      { seed: 3986, numRuns: 300 },
    ),
  )
})

t.test('any text is parsed or rejected, and nothing else is thrown', async (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
      try {
        parse(text)
      } catch (error) {
        return error instanceof Error && error.name === 'OAuthError'
      }
      return true
    }),
    { seed: 1738, numRuns: 2000 },
  )
  t.pass()
})
