import t from 'tap'
import { isDeeperThan, isNestedDeeper, parseJson, parseStrictJson } from '../../src/domain/strict-json.ts'

t.test('JSON is parsed whose objects name each member once', async (t) => {
  for (const text of [
    '{"a":{"a":1,"b":[{"a":2},{"a":3}]},"b":"x"}',
    String.raw`{"text":"\"a\": 1, \"a\": 2","more":"\\","list":["a",":",":"]}`,
    '{"__proto__":1,"a":null}',
    '[[["a:b"]]]',
    '"a:b"',
    ' {"a" :1 , "" :2 } ',
    '7',
  ])
    t.strictSame(parseStrictJson(text), JSON.parse(text), text)
})

t.test('a repeated member, or what is no JSON, is undefined', async (t) => {
  for (const text of [
    '{"a":1,"a":1}',
    '{"a":1,"b":{"c":1,"c":2}}',
    '[{"a":1},{"b":2,"b":3}]',
    String.raw`{"a":1,"\u0061":2}`,
    String.raw`{"a\"":":","a\u0022":2}`,
    '{"__proto__":1,"__proto__":2}',
    '{"a":1',
    '',
  ])
    t.equal(parseStrictJson(text), undefined, text)
})

t.test('deep nesting needs no stack', async (t) => {
  const nested = (times: number) => `${'[{"a":'.repeat(times)}1${'}]'.repeat(times)}`
  t.ok(Array.isArray(parseStrictJson(nested(16))))
  t.equal(parseStrictJson(nested(17)), undefined)
  t.equal(parseStrictJson(nested(20_000)), undefined)
  t.throws(() => parseJson(nested(20_000)), new SyntaxError('nested deeper than 32 levels'))
})

t.test('the depth of JSON is how many objects and arrays stand inside each other', async (t) => {
  const rows: readonly [text: string, depth: number][] = [
    ['7', 0],
    ['null', 0],
    ['"[[]]"', 0],
    ['"\\\\"', 0],
    ['["\\"[["]', 1],
    ['{}', 1],
    ['[]', 1],
    ['{"a":1,"b":null}', 1],
    ['[1,[],2]', 2],
    ['{"a":{"b":1}}', 2],
    ['[{"a":[]}]', 3],
    ['[[],[[1]],[]]', 3],
  ]
  for (const [text, depth] of rows) {
    const body: unknown = JSON.parse(text)
    const deeperThan = [0, 1, 2, 3, 4].filter((level) => isDeeperThan(level, body))
    t.strictSame(deeperThan, [0, 1, 2, 3].slice(0, depth), text)
    const nestedDeeper = [0, 1, 2, 3, 4].filter((level) => isNestedDeeper(level, text))
    t.strictSame(nestedDeeper, deeperThan, `${text}, by its text`)
  }
})
