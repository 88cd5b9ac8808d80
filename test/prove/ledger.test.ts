/** Checks name clauses of the ledger, by its ids and levels. */
import { globSync, readFileSync } from 'node:fs'
import t from 'tap'
import { clauses, nameOf, placeOf } from '../../src/prove/check.ts'
import { checks } from '../../src/prove/checks.ts'
import { checksOf, profiles } from '../../src/prove/profiles.ts'

interface Row {
  readonly id: string
  readonly level: string
  readonly section: string
}

const rows = new Map(
  globSync('test/requirements/*.jsonl')
    .flatMap((file) => readFileSync(file, 'utf8').trim().split('\n'))
    .map((line): Row => JSON.parse(line))
    .map((row) => [row.id, row]),
)

t.test('each check is a clause of the ledger, with its level', async (t) => {
  t.strictSame(
    checks.filter(({ id }) => !rows.has(id)).map(({ id }) => id),
    [],
  )
  const differing = checks.filter(({ id, level }) => rows.get(id)?.level.replace(/ NOT$/, '') !== level)
  t.strictSame(
    differing.map((check) => `${nameOf(check)}: ${rows.get(check.id)?.level}`),
    [],
  )
})

t.test('what clauses want is said of each check, and of no other', async (t) => {
  t.strictSame(Object.keys(clauses).toSorted(), checks.map(nameOf).toSorted())
})

t.test('no two checks have the same name, and each has its place in a text', async (t) => {
  const names = checks.map(nameOf)
  t.strictSame(
    names.filter((name, at) => names.indexOf(name) !== at),
    [],
  )
  for (const { id } of checks) {
    const { title, url } = placeOf(id)
    t.match(url, /^https:/, id)
    const section = /§([\dA-Z][\d.]*)$/.exec(title)?.[1]
    if (section !== undefined) t.equal(section, rows.get(id)?.section.replace(/^§/, ''), id)
  }
})

t.test('each check is in a profile, and each profile has checks', async (t) => {
  const covered = new Set(profiles.flatMap((profile) => checksOf(profile)))
  t.equal(covered.size, checks.length)
  for (const profile of profiles) t.ok(checksOf(profile).length > 30, profile.name)
})
