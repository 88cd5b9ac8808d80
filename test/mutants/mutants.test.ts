import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { createBreaker, flawsOf, testFinder } from '../../scripts/mutants/check.ts'
import { createJudge, type Killer } from '../../scripts/mutants/judge.ts'
import { faultsToTry, killsFile, openKills } from '../../scripts/mutants/kills.ts'
import { pointsOf } from '../../scripts/mutants/points.ts'
import { openWorkspace } from '../../scripts/mutants/workspace.ts'
import { coreRules, isCore } from './core.ts'
import type { Fault } from './fault.ts'
import { faults } from './faults.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

t.test('a diagnostic that tap does not close does not hide the points after it', async (t) => {
  const tap =
    '# Subtest: one\n    not ok 1 - no\n      ---\n      found: |\n        x\n    1..1\nnot ok 1 - one\nok 2 - two\n'
  t.strictSame(pointsOf(tap).failed, [{ title: 'one', path: [], isTest: true }])
})

t.test('every fault applies to the current source and has a test that can detect it', async (t) => {
  t.same(flawsOf(faults, root), [])
  const rules = new Set(faults.flatMap((fault) => ('rule' in fault ? [fault.rule] : [])))
  t.ok(rules.size >= 60, `${rules.size} rules have a fault`)
})

t.test('a fault that cannot be applied is reported in one line', async (t) => {
  const root = t.testdir({
    'src.ts': 'export const one = 1\nexport const two = 1\n',
    src: { 'a.ts': 'export const moved = 1\n' },
    'x.test.ts': '',
  })
  const fault = { id: 'x', file: 'src.ts', find: 'one', replace: 'uno', tests: ['x.test.ts'] }
  const flaws = (...changed: Partial<Fault>[]) =>
    flawsOf(
      changed.map((change) => ({ ...fault, ...change })),
      root,
    )
  t.same(flaws({}), [])
  t.same(flaws({ find: 'three' }), ['x: stale: neither src.ts nor another file contains "three"'])
  const moved = { file: 'src/gone.ts', find: 'moved' }
  t.same(flaws(moved), ['x: moved: its text is in src/a.ts, not in src/gone.ts'])
  t.same(flaws({ file: 'gone.ts' }), ['x: stale: neither gone.ts nor another file contains "one"'])
  t.same(flaws({ find: '= 1' }), ['x: ambiguous: "= 1" is 2 times in src.ts'])
  t.same(flaws({ replace: '' }), ['x: broken: src.ts does not parse with it'])
  t.same(flaws({ tests: ['gone.test.ts'] }), ['x: stale: there is no gone.test.ts'])
  t.same(flaws({}, {}), ['x: its id is taken'])
  const { tests: _tests, ...edit } = fault
  t.same(flawsOf([{ ...edit, rule: 'rfc0-1-rule' }], root), ['x: no test carries [rfc0-1-rule]'])
})

t.test('a fault applies to moved and reformatted code', async (t) => {
  const root = t.testdir({
    src: {
      'a.ts': 'export const twice = [\n  "one", // the first\n  /[\'/]/,\n]\n',
      'b.ts': 'export const text = `${[1, 2].map(\n  String,\n)} of`\nexport const of = 2\n',
    },
  })
  const broken = (find: string, replace: string, file = 'src/gone.ts') =>
    createBreaker(root)({ id: 'x', file, find, replace, tests: [] })
  const a = (text: string) => ({ file: 'src/a.ts', text: `export const twice = ${text}\n` })
  t.same(broken("'one', /['/]/]", '2]'), a('[\n  2]'), 'layout, quotes, comments and a trailing comma')
  t.same(broken("/['/]/", '2', 'src/b.ts'), a('[\n  "one", // the first\n  2,\n]'), 'found elsewhere')
  t.same(broken("/['/]/,", ''), a('[\n  "one", // the first\n  \n]'), 'a trailing comma that is named')
  t.match(broken('.map(String)', ''), { file: 'src/b.ts', text: /\$\{\[1, 2\]\} of/ }, 'in a template')
  t.match(broken(' of`', ' or`'), { file: 'src/b.ts', text: /\} or`/ }, 'part of a token')
  t.throws(() => broken('2', '3', 'src/b.ts'), { message: 'ambiguous: "2" is 2 times in src/b.ts' })
  t.throws(() => broken('export const', 'const'), { message: /is 3 times in src\/a.ts, src\/b.ts/ })
})

t.test('a fault is killed only by a test of its rule that passes without it', async (t) => {
  const root = t.testdir({
    node_modules: t.fixture('symlink', fileURLToPath(new URL('../../node_modules', import.meta.url))),
    src: { 'sum.ts': 'export const add = (a: number, b: number) => a + b\nexport const unused = 0\n' },
    test: {
      'sum.test.ts': `import t from 'tap'
        import { add } from '../src/sum.ts'
        t.test('[rule-sum] one and two', async (t) => t.equal(add(1, 2), 3))
        t.test('two and three', async (t) => t.equal(add(2, 3), 5))`,
      'red.test.ts': `import t from 'tap'
        t.test('[rule-red] never', async (t) => t.fail('as always'))`,
    },
  })
  const workspace = openWorkspace(root)
  t.teardown(() => workspace.remove())
  const judge = createJudge(testFinder(root))
  const verdict = (find: string, replace: string, rule: string, before?: Killer) =>
    judge({ id: 'x', file: 'src/sum.ts', find, replace, rule }, workspace, before)
  const title = '[rule-sum] one and two'
  const killed = { killedBy: title, test: 'test/sum.test.ts', title }
  t.same(await verdict('a + b', 'a - b', 'rule-sum'), killed)
  t.same(await verdict('unused = 0', 'unused = 1', 'rule-sum'), {
    survived: 'nothing noticed: test/sum.test.ts',
  })
  t.match(
    await verdict('a + b', 'a === 1 ? 3 : 0', 'rule-sum'),
    { survived: /nothing noticed/ },
    'by its rule',
  )
  t.match(await verdict('add', 'sum', 'rule-sum'), { doubtful: /is red, and none of its tests failed/ })
  t.match(await verdict('a + b', 'a - b', 'rule-red'), { doubtful: /is red without any fault/ })
  for (const before of ['[rule-sum] one and two', 'two and three', 'gone'])
    t.same(await verdict('a + b', 'a - b', 'rule-sum', { ...killed, title: before }), killed)
  t.match(await verdict('unused = 0', 'unused = 1', 'rule-sum', killed), { survived: /nothing noticed/ })
  t.match(readFileSync(join(root, 'src/sum.ts'), 'utf8'), /a \+ b/, 'and the source was not touched')
})

t.test('a kill is on record until the fault, its source or the test changes', async (t) => {
  const files = {
    src: { 'a.ts': 'export const one = 1\n', 'b.ts': 'export const two = 2\n' },
    test: { mutants: {}, 'x.test.ts': '[rule-a] [rule-b] first', 'y.test.ts': '[rule-a] second' },
  }
  const root = t.testdir(files)
  const write = (file: string, text: string) => writeFileSync(join(root, file), text)
  const a = { id: 'a', rule: 'rule-a', file: 'src/a.ts', find: 'one = 1', replace: 'one = 2' }
  const b = { id: 'b', file: 'src/b.ts', find: 'two = 2', replace: 'two = 3', tests: ['test/x.test.ts'] }
  const kills = (faults: readonly Fault[] = [a, b]) =>
    openKills(root, faults, testFinder(root), createBreaker(root))
  const includes = (fault: Fault) => kills([a, b, fault]).includes(fault)
  t.notOk(includes(a), 'there is no record')
  const run = kills()
  run.add(b, { test: 'test/x.test.ts', title: 'first' })
  run.add(a, { test: 'test/x.test.ts', title: 'first' })
  t.same([includes(a), includes(b)], [true, true])
  const lines = () => readFileSync(join(root, killsFile), 'utf8')
  t.match(
    lines(),
    /^\{"id":"a","test":"test\/x\.test\.ts","title":"first","hash":"\w{16}"\}\n\{"id":"b".*\}\n$/,
    'in order',
  )

  t.notOk(includes({ ...a, replace: 'one = 0' }), 'the fault changed')
  t.notOk(includes({ ...a, rule: 'rule-b' }), 'its rule changed, which the test carries too')
  t.notOk(includes({ ...b, tests: ['test/y.test.ts'] }), 'another test has to detect it')
  write('src/b.ts', '// Commented.\nexport  const two = 2\n')
  t.same([includes(a), includes(b)], [true, true], 'a comment and the layout of its source changed')
  write('src/b.ts', 'export const two = 2, three = 3\n')
  t.same([includes(a), includes(b)], [true, false], 'its source changed')
  write('src/b.ts', 'export const two = 2\n')
  write('test/y.test.ts', '[rule-a] changed')
  t.same([includes(a), includes(b)], [true, true], 'a test changed that did not kill it')
  write('test/x.test.ts', '[rule-a] [rule-b] changed')
  t.same([includes(a), includes(b)], [false, false], 'the test changed that killed it')

  const before = lines()
  kills().add(a, { test: 'test/y.test.ts', title: 'second' })
  write(killsFile, `${before}${lines()}`)
  t.same([includes(a), includes(b)], [true, false], 'of the two lines that a merge left, one is right')
  t.same(faultsToTry([a, b], kills()), [b])
  const core = { ...a, id: 'core', rule: 'rfc7636-4.6-mismatch-invalid-grant' }
  write('test/y.test.ts', '[rule-a] [rfc7636-4.6-mismatch-invalid-grant]')
  kills([core]).add(core, { test: 'test/y.test.ts', title: 'second' })
  t.ok(includes(core))
  t.same(faultsToTry([core], kills([core])), [core], 'a fault of the core is always tried')
  t.notMatch(lines(), /"id":"[ab]"/, 'faults that are gone leave the record')
  kills([core]).remove(core)
  t.equal(lines(), '', 'a fault that survives is not on record')
})

t.test('a file that changes while the faults are tried is not recorded as tried', async (t) => {
  const root = t.testdir({
    src: { 'a.ts': 'export const one = 1\n' },
    test: { mutants: {}, 'x.test.ts': '' },
  })
  const fault = { id: 'a', file: 'src/a.ts', find: 'one = 1', replace: 'one = 2', tests: ['test/x.test.ts'] }
  const open = () => openKills(root, [fault], testFinder(root), createBreaker(root))
  const run = open()
  writeFileSync(join(root, 'test/x.test.ts'), 'changed')
  run.add(fault, { test: 'test/x.test.ts', title: 'x' })
  t.notOk(open().includes(fault))
})

t.test('every clause of the core has a fault', async (t) => {
  const rules = new Set(faults.flatMap((fault) => ('rule' in fault ? [fault.rule] : [])))
  t.same(
    [...coreRules].filter((rule) => !rules.has(rule)),
    [],
  )
  const core = faults.filter(isCore)
  t.ok(core.length >= 80 && core.length <= 140, `${core.length} faults`)
})

t.test('an unknown fault is one line and ends with 64', async (t) => {
  const { status, stderr, stdout } = spawnSync(process.execPath, ['scripts/mutants.ts', '--only', 'nobody'], {
    cwd: root,
    encoding: 'utf8',
  })
  t.same([status, stderr, stdout], [64, 'mutants: there is no fault nobody\n', ''])
})
