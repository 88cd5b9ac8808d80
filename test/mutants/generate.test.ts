import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { apply, mutationsOf } from '../../scripts/mutants/generate.ts'
import { selectMutations, staleExplanations } from '../../scripts/mutants/generated.ts'
import { hashOf, openScores, summaryOf } from '../../scripts/mutants/scores.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The mutations of a source text, each as its operator and what changes. */
const changesOf = (source: string) =>
  mutationsOf('src/x.ts', source).map(({ operator, text }) => `${operator}: ${text}`)

t.test('conditions are negated, and their operands swapped and removed', async (t) => {
  t.strictSame(changesOf('if (a < b) go()'), [
    'negated condition: a < b → !(a < b)',
    'swapped comparison: a < b → a <= b',
    'removed call: go() → nothing',
  ])
  t.strictSame(changesOf('const ok = (a || b) && !c'), [
    'swapped logic: (a || b) && !c → ((a || b) || !c)',
    'removed operand: (a || b) && !c → (a || b)',
    'removed operand: (a || b) && !c → !c',
    'swapped logic: a || b → (a && b)',
    'removed operand: a || b → a',
    'removed operand: a || b → b',
    'removed negation: !c → c',
  ])
  t.strictSame(changesOf('const ok = a ? b : c ?? d'), [
    'negated condition: a → !(a)',
    'removed operand: c ?? d → c',
    'removed operand: c ?? d → d',
  ])
  t.strictSame(changesOf('const ok = a === b'), ['swapped comparison: a === b → a !== b'])
})

t.test('checks and early returns are removed', async (t) => {
  t.strictSame(changesOf("check(ok, 'rule', 'what is wrong')"), [
    "removed call: check(ok, 'rule', 'what is wrong') → nothing",
    'negated condition: ok → !(ok)',
    "changed string: 'rule' → ''",
  ])
  t.match(changesOf('function f() { if (a) return b; return c }'), [
    /^removed early return: if \(a\) return b; → nothing$/,
    /^negated condition/,
  ])
})

t.test('members, methods and literals are changed', async (t) => {
  t.strictSame(changesOf('const x = { ...a, ...(b && { b }), c: [...d, 1] }'), [
    'removed spread: ...a → ...{}',
    'removed spread: ...(b && { b }) → ...{}',
    'removed spread: ...d → ...[]',
    'changed number: [...d, 1] → [...d, (1 + 1)]',
    'changed number: [...d, 1] → [...d, (1 - 1)]',
  ])
  t.strictSame(changesOf('const x = list.filter(f).some(g) && true'), [
    'swapped logic: list.filter(f).some(g) && true → (list.filter(f).some(g) || true)',
    'removed operand: list.filter(f).some(g) && true → list.filter(f).some(g)',
    'removed operand: list.filter(f).some(g) && true → true',
    'removed filter: list.filter(f) → list',
    'swapped method: some → every',
    'flipped boolean: true → false',
  ])
  t.strictSame(changesOf('const form = /^a$/u'), [
    'removed anchor: /^a$/u → /a$/u',
    'removed anchor: /^a$/u → /^a/u',
  ])
})

t.test('types, names and wording stay', async (t) => {
  t.strictSame(changesOf("import { a } from 'a'\nexport { b } from './b.ts'\ninterface C { d: 'e' | 1 }"), [])
  t.strictSame(changesOf("const x: 'a' = b['c'] + `${d}` as 'f'"), [
    "swapped arithmetic: b['c'] + `${d}` → b['c'] - `${d}`",
  ])
})

t.test('a mutation knows its place, and every one parses', async (t) => {
  const source = 'const one = 1\n\nfunction two() {\n  const inner = () => one + 1\n}\n'
  const [number, , sum] = mutationsOf('src/x.ts', source)
  t.match(number, { line: 1, where: 'one' })
  t.match(sum, { line: 4, where: 'two', text: 'one + 1 → one - 1' })
  t.equal(sum && apply(source, sum), source.replace('one + 1', 'one - 1'))
})

t.test('a sample is the same for the same seed, and explanations are of mutations that exist', async (t) => {
  const draw = (seed: number) => selectMutations(root, { files: ['src/domain/pkce.ts'], sample: 10, seed })
  t.equal(draw(1).length, 10)
  t.strictSame(draw(1), draw(1))
  t.strictNotSame(draw(1), draw(2))
  t.strictSame(staleExplanations(root), [])
})

t.test('the score of a file is on record until the file changes or goes', async (t) => {
  const folder = t.testdir({ test: { mutants: {} }, 'one.ts': 'const one = 1', 'two.ts': 'const two = 2' })
  const record = openScores(folder)
  t.notOk(record.isCurrent('one.ts'))
  const counts = { tests: 3, types: 1, explained: 1 }
  const one = { file: 'one.ts', hash: hashOf('const one = 1'), ...counts, survived: [] }
  const two = { file: 'two.ts', hash: hashOf('const two = 2'), ...counts, survived: ['a mutation'] }
  record.put(two)
  record.put({ ...one, tests: 9 })
  record.put(one)
  t.ok(record.isCurrent('one.ts'))
  t.strictSame(record.all(), [one, two])
  t.equal(
    summaryOf([one, two]),
    '11 generated mutants in 2 files: 6 killed by tests, 2 by the type check, 2 explained, 1 survived; score 88.9 %',
  )
  writeFileSync(join(folder, 'one.ts'), 'const one = 3')
  rmSync(join(folder, 'two.ts'))
  const later = openScores(folder)
  t.notOk(later.isCurrent('one.ts'))
  t.strictSame(later.all(), [one])
})
