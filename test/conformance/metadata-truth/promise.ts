import type { Test } from 'tap'
import type { Json } from '../../helpers/wire.ts'
import type { Subject } from './subject.ts'

/** Uses one advertised entry of a document. */
export type Exercise<V = string> = (t: Test, subject: Subject, value: V) => Promise<void>

/** How the value of one member is tested. */
export type Promised =
  /** Its value as a whole. */
  | { readonly value: Exercise<unknown> }
  /** A flag, by its known values. */
  | { readonly flag: Readonly<Record<string, Exercise<boolean>>> }
  /** A list of known entries, and one that is not in the list. */
  | { readonly each: Readonly<Record<string, Exercise>>; readonly unlisted: Exercise<readonly string[]> }
  /** A list whose entries are all used alike, and one that is not in the list. */
  | { readonly every: Exercise; readonly unlisted: Exercise<readonly string[]> }

export type Promises = Readonly<Record<string, Promised>>

/** An advertised member or entry that no code here can use. */
export function unproven(document: Json, promises: Promises): readonly string[] {
  return Object.entries(document).flatMap(([member, value]) => {
    const promised = promises[member]
    if (promised === undefined) return [member]
    const known = 'flag' in promised ? promised.flag : 'each' in promised ? promised.each : undefined
    const entries = known === undefined ? [] : [value].flat().map(String)
    return entries.filter((entry) => !Object.hasOwn(known ?? {}, entry)).map((entry) => `${member}: ${entry}`)
  })
}

/** Uses every entry of a document, in one subtest each. An entry that cannot be used fails. */
export async function keep(t: Test, subject: Subject, document: Json, promises: Promises): Promise<void> {
  for (const name of unproven(document, promises)) t.fail(`no exerciser for ${name}`)
  for (const [member, value] of Object.entries(document)) {
    const promised = promises[member]
    if (promised !== undefined) await t.test(member, (t) => keepOne(t, subject, value, promised))
  }
}

async function keepOne(t: Test, subject: Subject, value: unknown, promised: Promised): Promise<void> {
  if ('value' in promised) return promised.value(t, subject, value)
  if ('flag' in promised) {
    if (typeof value !== 'boolean') return void t.fail('a flag is true or false')
    return promised.flag[String(value)]?.(t, subject, value)
  }
  if (!Array.isArray(value) || value.length === 0) return void t.fail('a list has entries')
  const entries = value.map(String)
  t.equal(new Set(entries).size, entries.length, 'each entry stands there once')
  for (const entry of entries) {
    const exercise = 'every' in promised ? promised.every : promised.each[entry]
    if (exercise !== undefined) await t.test(entry, (t) => exercise(t, subject, entry))
  }
  await t.test('and nothing else', (t) => promised.unlisted(t, subject, entries))
}
