import { globSync, readFileSync } from 'node:fs'
import t from 'tap'
import { violations } from '../scripts/layers.ts'

const files = globSync('src/**/*.ts').map((path) => ({ path, text: readFileSync(path, 'utf8') }))
const withOne = (path: string, target: string) => [
  ...files,
  { path, text: `import { x } from '${target}'\n` },
]

t.test('no import of src is against its layers', async (t) => {
  t.strictSame(violations(files), [])
})

t.test('`ls src` has at most 22 folders and 6 files', async (t) => {
  t.ok(globSync('src/*/').length <= 22)
  const entries = globSync('src/*.*')
  t.ok(entries.length <= 6, entries.join(', '))
})

t.test('an import that points up is an error', async (t) => {
  t.strictSame(violations(withOne('src/domain/x.ts', '../http/errors.ts')), [
    'src/domain/x.ts imports src/http/errors.ts: http is above domain',
  ])
  t.strictSame(violations(withOne('src/http/x.ts', '../app/app.ts')), [
    'src/http/x.ts imports src/app/app.ts: app is above http',
  ])
})

t.test('so is one from a specification to another, whatever they are called', async (t) => {
  const [line = '', ...more] = violations(withOne('src/specs/new/deep/x.ts', '../../rfc9449-dpop/rules.ts'))
  t.strictSame(more, [])
  t.ok(line.endsWith(': src/specs/new and src/specs/rfc9449-dpop are neighbours'), line)
  t.strictSame(violations(withOne('src/specs/new/deep/x.ts', '../rules.ts')), [])
})

t.test('the guard has what another application has, and no one else opens a store', async (t) => {
  const wrong = [
    ['src/guard/x.ts', '../feature/deps.ts'],
    ['src/pages/x.ts', '../guard/protected-api/plugin.ts'],
    ['src/http/x.ts', '../storage/open.ts'],
    ['src/dev/x.ts', '../storage/sqlite/sqlite-store.ts'],
    ['src/cli/x.ts', '../specs/rfc9449-dpop/rules.ts'],
  ] as const
  for (const [path, target] of wrong) {
    t.equal(violations(withOne(path, target)).length, 1, `${path} ${target}`)
  }
})

t.test('a new folder has to have a place in the order', async (t) => {
  t.strictSame(violations(withOne('src/attic/x.ts', './y.ts')), ['src/attic has no place in the order'])
  t.strictSame(violations(files.filter(({ path }) => path !== 'src/one-file.ts')), [
    'the order has one-file.ts, which src has not',
  ])
})
