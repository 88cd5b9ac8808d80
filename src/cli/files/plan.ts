import type { AuditContext } from '../../domain/audit.ts'
import type { Decision } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { CommandFailed } from '../failure.ts'
import { operatorContext } from '../operator.ts'
import type { Kind, Placed, Wanted } from './read.ts'
import { type Difference, differences } from './state.ts'
import type { Target } from './target.ts'

/** What changes about one object. */
export interface Change {
  readonly action: 'add' | 'change' | 'delete'
  readonly kind: 'group' | 'user' | 'client' | 'upstream'
  readonly name: string
  readonly members: readonly Difference[]
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

/** Returns where a deletion comes from: the files that have this kind, and not the object. */
export function pruningFile({ files }: Wanted, kind: Kind): string {
  return (files[kind] ?? []).join(' ').slice(0, 200)
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

/** What names an object, and the ids that the server makes: no difference of an object that is added. */
const naming = ['name', 'id', 'username', 'sub', 'client_id', 'upstream_id']

/** Returns the members of an added entry, without its names. */
export function membersOfNew(entry: object): readonly Difference[] {
  return differences({}, entry).filter(({ member }) => !naming.includes(member))
}

/** Returns the result of a decision. @throws {OAuthError} its rejection. */
export function resultOf<T>(decision: Decision<T>): T {
  if ('rejection' in decision) throw decision.rejection
  return decision.result
}
