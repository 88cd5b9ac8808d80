/** What features add to the core is complete at the start, and costs nothing where nothing is contributed. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { closeSeams, createSeams, type Seams } from '../../src/feature/seams.ts'
import {
  choice,
  condition,
  contribution,
  declaredContribution,
  members,
  merged,
  named,
  transformation,
} from '../../src/feature/shapes.ts'
import { declared } from '../../src/features.ts'
import { startServer } from '../helpers/server.ts'

t.test('what features declare is added by their plugins, each name once', async (t) => {
  const grants = named<string>('grant type', { one: {}, two: {} })
  grants.add('one', 'first')
  t.throws(() => grants.add('one', 'again'), { message: 'the grant type one is added twice' })
  t.throws(() => grants.add('three', 'third'), { message: 'no feature declares the grant type three' })
  t.throws(() => grants.close(), { message: 'the grant type two is declared, but no plugin adds it' })
  grants.add('two', 'second')
  t.doesNotThrow(() => grants.close())
  t.strictSame([...grants.added.values()], ['first', 'second'])

  const claims = declaredContribution<() => Readonly<Record<string, string>>, object>(
    'claim',
    { sid: {} },
    merged,
  )
  t.throws(() => claims.add('acr', () => ({})), { message: 'no feature declares the claim acr' })
  t.throws(() => claims.close(), { message: 'the claim sid is declared, but no plugin adds it' })
  claims.add('sid', () => ({ sid: '1' }))
  t.strictSame(claims.collect(), { sid: '1' })
})

t.test('nothing is added to any seam after the start', async (t) => {
  const { app } = await startServer(t)
  for (const [name, seam] of Object.entries(app.seams)) {
    // `as`: each seam takes something else, and none takes it any more.
    const { add } = seam as { readonly add: (one: unknown, two: unknown) => void }
    t.throws(() => add('name', () => undefined), { message: /^the .* is added after the start$/ }, name)
  }
})

t.test('a server whose features leave out what they declare does not start', async (t) => {
  const forget = (add: (seams: Seams) => { add(name: string, one: never): void }) =>
    startServer(t, {
      async observe({ seams }) {
        add(seams).add = () => {}
      },
    })
  const missing = 'is declared, but no plugin adds it'
  for (const [name, add, what] of [
    ['grantTypes', (seams: Seams) => seams.grantTypes, 'grant type authorization_code'],
    [
      'clientAuthentication',
      (seams: Seams) => seams.clientAuthentication,
      'client authentication method none',
    ],
    ['tokenBindings', (seams: Seams) => seams.tokenBindings, 'token binding jkt'],
    [
      'tokenMembers',
      (seams: Seams) => seams.tokenMembers,
      `member of the token response ${Object.keys(declared.tokenMembers)[0]}`,
    ],
    ['signInClaims', (seams: Seams) => seams.signInClaims, 'claim about the sign-in sid'],
  ] as const)
    await t.rejects(forget(add), { message: `the ${what} ${missing}` }, name)
  t.throws(() => closeSeams(createSeams(declared)), new RegExp(missing))
})

t.test('contributions are joined, and without any there is no promise and no object', async (t) => {
  const sync = contribution<(n: number) => readonly number[] | undefined, readonly number[]>(
    'number',
    (all) => all.flat(),
  )
  t.equal(sync.collect(1), undefined, 'nothing is added')
  sync.add((n) => (n > 1 ? [n] : undefined))
  sync.add((n) => (n > 2 ? [n * 10] : undefined))
  t.equal(sync.collect(1), undefined, 'nothing is contributed')
  t.strictSame(sync.collect(2), [2])
  t.strictSame(sync.collect(3), [3, 30])

  type Later = (n: number) => object | undefined | Promise<object | undefined>
  const later = contribution<Later, object>('member', merged)
  later.add((n) => (n > 1 ? { a: n, b: n } : undefined))
  t.strictSame(later.collect(2), { a: 2, b: 2 }, 'no promise')
  later.add((n) => (n > 2 ? Promise.resolve(n > 3 ? { b: 'later' } : undefined) : undefined))
  t.strictSame(later.collect(2), { a: 2, b: 2 })
  t.strictSame(await later.collect(3), { a: 3, b: 3 }, 'a promise of nothing')
  t.strictSame(await later.collect(4), { a: 4, b: 'later' }, 'the later one wins')
})

t.test('conditions throw, the first choice decides, and transformations follow each other', async (t) => {
  const positive = condition<(n: number) => void>('check')
  t.doesNotThrow(() => positive.assert(-1))
  positive.add((n) => {
    if (n < 0) throw new Error('negative')
  })
  positive.add((n) => {
    if (n === 0) throw new Error('zero')
  })
  t.doesNotThrow(() => positive.assert(1))
  t.throws(() => positive.assert(-1), { message: 'negative' })
  t.throws(() => positive.assert(0), { message: 'zero' })
  positive.add(async () => {})
  t.throws(() => positive.assert(1), { message: 'the check returns a value' }, 'no later error is lost')

  const loader = choice<(n: number) => string | undefined>('loader')
  t.equal(loader.choose(1), undefined)
  loader.add((n) => (n > 1 ? 'first' : undefined))
  loader.add(() => 'second')
  t.strictSame([loader.choose(1), loader.choose(2)], ['second', 'first'])

  const text = transformation<{ text: string }>('transformation')
  t.strictSame(text.apply({ text: 'a' }), { text: 'a' })
  text.add((all) => ({ text: `${all.text}b` }))
  text.add((all) => ({ text: `${all.text}c` }))
  t.strictSame(text.apply({ text: 'a' }), { text: 'abc' })

  const document = members('metadata')
  document.add({ list: ['a', 'b'], one: 1 })
  document.add({ list: ['b', 'c'], one: 2 })
  t.strictSame(document.all(), { list: ['a', 'b', 'c'], one: 2 })
})

t.test('CONTRIBUTING.md names every seam, and no other one', (t) => {
  const text = readFileSync(new URL('../../CONTRIBUTING.md', import.meta.url), 'utf8')
  const list = text.slice(text.indexOf('3. Connect it'), text.indexOf('Names are checked for collisions'))
  const named = [...list.matchAll(/`(\w+)`/g)].map(([, name]) => name)
  t.strictSame(named.sort(), Object.keys(createSeams(declared)).sort())
  t.end()
})
