import { isDeepStrictEqual } from 'node:util'
import type { AuditContext } from '../../domain/audit.ts'
import type { Decision } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { isObject } from '../../domain/is-object.ts'
import { CommandFailed } from '../failure.ts'
import { operatorContext } from '../operator.ts'
import type { Kind, Placed, Wanted } from './read.ts'
import type { Target } from './target.ts'

/** What changes about one object. */
export interface Change {
  readonly action: 'add' | 'change' | 'delete'
  readonly kind: 'group' | 'user' | 'client'
  readonly name: string
  readonly members: readonly Difference[]
}

/** A member of an entry before and after; absent: the entry has none. */
export interface Difference {
  readonly member: string
  readonly before?: unknown
  readonly after?: unknown
}

/** Changes that are written together. */
export interface Batch {
  readonly changes: readonly Change[]
  write(): Promise<void>
  /** What is left to do when every addition and change is written. */
  finish?(): Promise<void>
}

/** What planning needs in addition to the entries. */
export interface Setting {
  readonly target: Target
  /** Collects what cannot be applied, with the place in the file. */
  readonly faults: string[]
  /** Tells the operator about something that was done, by name. */
  readonly tell: (members: Readonly<Record<string, unknown>>) => void
}

/** Returns the audit context of what an entry says. */
export function contextOf({ file }: Pick<Placed<unknown>, 'file'>): AuditContext {
  return { ...operatorContext(), facts: { file } }
}

/** Returns the audit context of a deletion: the files that have this kind, and not the object. */
export function pruningContext({ files }: Wanted, kind: Kind): AuditContext {
  return contextOf({ file: (files[kind] ?? []).join(' ').slice(0, 200) })
}

/** Plans one entry. What the domain rejects becomes a fault at its place. */
export function attempt<T>({ faults }: Setting, { where }: Placed<unknown>, plan: () => T): T | undefined {
  try {
    return plan()
  } catch (error) {
    if (!(error instanceof OAuthError || error instanceof CommandFailed)) throw error
    faults.push(`${where}: ${error.message}`)
    return undefined
  }
}

/** Returns what two entries differ in. Members of objects, such as claims, are compared one by one. */
export function differences(before: object, after: object): readonly Difference[] {
  const [old, wanted] = [membersOf(before), membersOf(after)]
  return [...new Set([...wanted.keys(), ...old.keys()])].flatMap((member) => {
    const [from, to] = [old.get(member), wanted.get(member)]
    if (isDeepStrictEqual(from, to)) return []
    return [{ member, ...(from !== undefined && { before: from }), ...(to !== undefined && { after: to }) }]
  })
}

function membersOf(entry: object): ReadonlyMap<string, unknown> {
  return new Map(
    Object.entries(entry).flatMap(([name, value]): [string, unknown][] =>
      isObject(value)
        ? Object.entries(value).map(([inner, one]) => [`${name}.${inner}`, one])
        : [[name, value]],
    ),
  )
}

/** What names an object, and the ids that the server makes: no difference of an object that is added. */
const naming = ['name', 'id', 'username', 'sub', 'client_id']

/** Returns the members of an added entry, without its names. */
export function membersOfNew(entry: object): readonly Difference[] {
  return differences({}, entry).filter(({ member }) => !naming.includes(member))
}

/** Returns the result of a decision. @throws {OAuthError} its rejection. */
export function resultOf<T>(decision: Decision<T>): T {
  if ('rejection' in decision) throw decision.rejection
  return decision.result
}
