import { sql } from 'drizzle-orm'
import type { ExchangedToken } from '../../domain/model.ts'
import { grantKey } from '../rows.ts'
import { type QueuedWrite, type ReadStep, type Script, together } from '../script.ts'
import type { ReadName, WriteName } from '../statements.ts'
import { buildStatements, dialect, type Named, type Statements } from './prepared.ts'
import { lockNumber } from './transaction.ts'

/*
 * What is different where grants are on several machines, each of which has a copy of all clients and users.
 *
 * A row of a copied table cannot be locked: the lock would be one of the whole table, and of two transactions that hold
 * it each would wait for the other to write. Instead transactions take advisory locks of the coordinator under the names
 * that decisions have (`locksOf`): what ends a client or a user takes them alone, what relies on one takes them shared.
 *
 * No statement can follow the exchanges of a grant from machine to machine. A script reads them one after the other.
 */

/** Statements for grants that are distributed. They have the names of the others. */
export function buildDistributedStatements(): Statements {
  const { clients, users } = dialect.tables
  const restsOnEnded: (typeof dialect)['restsOnEnded'] = (id) =>
    sql`encode(${id}, 'hex') = any(string_to_array(${sql.placeholder('ended')}, ','))`
  const statements = buildStatements({ ...dialect, restsOnEnded, forShare: '' }, [clients, users])
  const locks = ['pg_advisory_xact_lock', 'pg_advisory_xact_lock_shared'].map(
    (name) => [name, lockBy(name)] as const,
  )
  return { ...statements, writing: new Map([...statements.writing, ...locks]) }
}

function lockBy(name: string): Named {
  return { name, text: `select ${name}($1)`, bind: (values) => Object.values(values) }
}

/** Reads which exchanged grants have ended, where a statement asks for it. */
export function* followExchanges<T>(script: Script<T>): Script<T> {
  let step = script.next()
  while (!step.done) {
    if ('isQueued' in step.value) {
      yield step.value
      step = script.next()
    } else step = script.next(yield* withEnded(step.value))
  }
  return step.value
}

/** Takes the locks of clients and users, in a transaction that decides about them. */
export function* lockOwners<T>(script: Script<T>): Script<T> {
  let step = script.next()
  while (!step.done) {
    if ('isQueued' in step.value) {
      for (const lock of locksBefore(step.value)) yield { ...lock, isQueued: true }
      yield step.value
      step = script.next()
    } else step = script.next(yield* readLocked(step.value))
  }
  return step.value
}

interface Lock {
  readonly statement: WriteName
  readonly values: { readonly number: string }
}

const alone = (name: string) => lock('pg_advisory_xact_lock', name)
const shared = (name: string) => lock('pg_advisory_xact_lock_shared', name)

function lock(statement: 'pg_advisory_xact_lock' | 'pg_advisory_xact_lock_shared', name: string): Lock {
  // `as`: only these statements have it.
  return { statement: statement as string as WriteName, values: { number: String(lockNumber(name)) } }
}

type Values = Readonly<Record<string, unknown>>

/** The lock that a statement takes before it runs. */
const before: { readonly [N in ReadName | WriteName]?: (values: Values) => Lock } = {
  client: ({ key }) => alone(`client ${key}`),
  actingClient: ({ key }) => shared(`client ${key}`),
  user: ({ key }) => alone(`user ${key}`),
  sessionOfGrant: ({ userId }) => shared(`user ${userId}`),
  consentOfGrant: ({ userId }) => shared(`user ${userId}`),
  insertGrantOfClient: ({ clientId }) => shared(`client ${clientId}`),
  'update client': ({ id }) => alone(`client ${id}`),
  'delete client': ({ key }) => alone(`client ${key}`),
  'update user': ({ id }) => alone(`user ${id}`),
  removeUser: ({ userId }) => alone(`user ${userId}`),
  // Shared: they wait for what decides about the client, and not for each other.
  touchClient: ({ clientId }) => shared(`client ${clientId}`),
  learnPkce: ({ clientId }) => shared(`client ${clientId}`),
}

/** The locks of rows that a statement finds by something else. */
const ofRows: { readonly [N in ReadName]?: (row: { readonly id: string }) => Lock } = {
  userByLogin: ({ id }) => alone(`user ${id}`),
  unusedClientsUntil: ({ id }) => alone(`client ${id}`),
  idleClients: ({ id }) => alone(`client ${id}`),
}

function locksBefore(step: ReadStep | QueuedWrite): readonly Lock[] {
  if ('together' in step) return step.together.flatMap(locksBefore)
  if ('text' in step) return []
  const lockOf = before[step.statement]
  return lockOf === undefined ? [] : [lockOf(step.values as Values)] // any object has members by names
}

function* readLocked(step: ReadStep): Script<unknown> {
  const lockOf = 'statement' in step ? ofRows[step.statement as ReadName] : undefined
  if (lockOf !== undefined) {
    const found = (yield step) as readonly { readonly id: string }[] // of these statements
    if (found.length === 0) return found
    // Those that are as they were, once no other transaction decides about them.
    const locks = found.map(lockOf)
    const again = (yield* afterLocks(locks, step)) as typeof found
    return again.filter(({ id }) => found.some((row) => row.id === id))
  }
  const locks = locksBefore(step)
  return locks.length === 0 ? yield step : yield* afterLocks(locks, step)
}

/** In one trip. */
function* afterLocks(locks: readonly Lock[], step: ReadStep): Script<unknown> {
  const results = yield* together([...locks, step])
  return results.at(-1)
}

/** Where the grants that a statement reads begin their exchanges; of the statements that ask which have ended. */
const exchangedGrants: { readonly [N in ReadName]?: (values: Values) => ReadStep } = {
  connections: ({ userId }) => ({ text: `${exchangesOf} where user_seq = ${seqOfUser}`, values: [userId] }),
  newestGrants: ({ userId }) => ({ text: `${exchangesOf} where user_seq = ${seqOfUser}`, values: [userId] }),
  sliceOfGrants: ({ after, limit }) => ({
    text: `${exchangesOf} where id > $1 order by id limit $2`,
    values: [after, limit],
  }),
}

const exchangesOf = `select id, case when extra like '%"exchangedFrom":{%' then extra end as extra from grants`
const seqOfUser = '(select seq from users where id = $1)'

function* withEnded(step: ReadStep): Script<unknown> {
  const exchanged = 'statement' in step ? exchangedGrants[step.statement as ReadName] : undefined
  if (exchanged === undefined || !('statement' in step)) return yield step
  const rows = (yield exchanged(step.values as Values)) as readonly GrantRow[] // of these texts
  const ended = yield* endedOf(rows)
  return yield { ...step, values: { ...step.values, ended } }
}

interface GrantRow {
  readonly id: Buffer
  readonly extra: string | null
}

type Subject = Pick<ExchangedToken, 'grantId' | 'tokenId'>

/** What a grant or a token was exchanged for, and whether that has ended by itself. */
interface Link {
  readonly subject: Subject | undefined
  readonly hasEnded: boolean
}

/** Returns the ids of the grants that rest on a token that has ended, in hexadecimal digits. */
function* endedOf(rows: readonly GrantRow[]): Script<string> {
  const links = new Map<string, Link>()
  const grants = rows.map(({ id, extra }) => ({ id, subject: subjectIn(extra) }))
  for (
    let next: readonly Link[] = grants.map(({ subject }) => ({ subject, hasEnded: false }));
    next.length > 0;
  ) {
    const subjects = next.flatMap(({ subject }) => (subject && !links.has(nameOf(subject)) ? [subject] : []))
    const found = yield* together(subjects.map(readSubject))
    next = subjects.map((subject, index) => {
      const link = linkOf(found[index] as readonly SubjectRow[]) // of `readSubject`
      links.set(nameOf(subject), link)
      return link
    })
  }
  return grants.flatMap(({ id, subject }) => (endsIn(subject, links) ? [id.toString('hex')] : [])).join(',')
}

function endsIn(first: Subject | undefined, links: ReadonlyMap<string, Link>): boolean {
  const seen = new Set<string>()
  for (let subject = first; subject !== undefined; ) {
    const name = nameOf(subject)
    const link = links.get(name)
    if (link === undefined || link.hasEnded) return true
    if (seen.has(name)) return false
    seen.add(name)
    subject = link.subject
  }
  return false
}

interface SubjectRow {
  readonly hasEnded: boolean
  readonly extra: string | null
}

function readSubject({ grantId, tokenId }: Subject): ReadStep {
  const text = `select extra, revoked_at is not null or exists (
    select 1 from revoked_access_tokens where grant_id = $1 and token_id = $2) as "hasEnded" from grants where id = $1`
  return { text, values: [grantKey(grantId), tokenId] }
}

/** A subject that is not stored was deleted with its client or its user. */
function linkOf([row]: readonly SubjectRow[]): Link {
  return { subject: row && subjectIn(row.extra), hasEnded: row?.hasEnded ?? true }
}

function subjectIn(extra: string | null): Subject | undefined {
  return extra === null
    ? undefined
    : (JSON.parse(extra) as { readonly exchangedFrom?: Subject }).exchangedFrom // as `grantRow` wrote it
}

function nameOf({ grantId, tokenId }: Subject): string {
  return `${grantId} ${tokenId}`
}
