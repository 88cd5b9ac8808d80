import type pg from 'pg'
import type { Seconds } from '../../domain/model.ts'
import { codeOf } from './prepared.ts'

/*
 * The audit log in partitions, each for a range of the numbers of its events, which are in the order of time. Old events
 * are dropped with their partition: one at a time they would cost the table and its indexes more than they did when they
 * were written. `lychgate store partition` makes the first ones, and the sweep all others.
 */

/** A partition of the audit log, for the numbers from one to another. */
interface Partition {
  /** As it is written in SQL. */
  readonly name: string
  readonly from: number
  readonly to: number
  /** `due`: it will be dropped. `detaching`: others still read it. `detached`: nothing does. */
  readonly state: 'used' | 'due' | 'detaching' | 'detached'
}

export interface PartitionedLog {
  /** In the order of their numbers. */
  readonly partitions: readonly Partition[]
  /** The number of the last event. */
  readonly last: number
}

/** The sweep of a partitioned log. */
export interface PartitionSweep {
  /** How many events were dropped. */
  readonly rows: number
}

/** So many partitions have no event yet. If the sweep cannot add one, that is the time there is to find out why. */
export const partitionsAhead = 2
/** No partition is for fewer events: at 5,000 a second those ahead last for half an hour. */
const leastEvents = 4_000_000
/** The partitions of the time that events are kept, if they come as often as now. */
const partitionsKept = 16
/** The partitions of a log that is kept for ever are for this time each. */
const longestSpan: Seconds = 2_592_000

/** Any constant: held by the one node that changes partitions. */
const partitionLock = 0x6c796370
/** The comment of a partition of which every event is due, so that each node knows it, also after a restart. */
const dueComment = 'lychgate: every event is due'

/** Reads the partitions of the log. @returns Undefined if it has none. */
export async function readPartitions(client: pg.ClientBase): Promise<PartitionedLog | undefined> {
  const { rows } = await client.query(readText)
  if (rows[0]?.kind !== 'p') return undefined
  const partitions = rows.flatMap(({ name, bound, state }) =>
    name === null ? [] : { name, state, ...rangeOf(bound) },
  )
  return { partitions: partitions.toSorted((one, other) => one.from - other.from), last: rows[0].last }
}

// What was detached has no parent any more: it is found by its comment.
const readText = `select log.relkind as kind, part.name,
    pg_get_expr(part.relpartbound, part.oid) as bound, coalesce(pg_sequence_last_value(
      pg_get_serial_sequence('audit_events', 'seq')::regclass), 0) as last,
    case when part.inhparent is null then 'detached' when part.inhdetachpending then 'detaching'
      when part.comment = '${dueComment}' then 'due' else 'used' end as state
  from pg_class log left join (select child.oid, relpartbound, inhparent, inhdetachpending,
      format('%I.%I', nspname, relname) as name, obj_description(child.oid, 'pg_class') as comment
    from pg_class child join pg_namespace space on space.oid = relnamespace
    left join pg_inherits on inhrelid = child.oid where relkind = 'r') part
    on inhparent = log.oid or (inhparent is null and comment = '${dueComment}')
  where log.oid = to_regclass('audit_events')`

function rangeOf(bound: string | null): Pick<Partition, 'from' | 'to'> {
  const [, from, to] = /FROM \((?:MINVALUE|'(\d+)')\) TO \('(\d+)'\)/.exec(bound ?? '') ?? []
  return { from: Number(from ?? 0), to: Number(to ?? 0) }
}

/** How many partitions have no event yet. */
export function aheadOf({ partitions, last }: PartitionedLog): number {
  return partitions.filter(({ from, state }) => from > last && state === 'used').length
}

/** How a sweep uses connections: briefly, or for as long as it takes to read a partition. */
export interface Connections {
  readonly brief: <T>(work: (client: pg.ClientBase) => Promise<T>) => Promise<T>
  readonly long: <T>(work: (client: pg.ClientBase) => Promise<T>) => Promise<T>
}

/**
 * Adds the partitions that are missing, and drops the oldest one if every event of it is due.
 * @returns Undefined if the log has no partitions.
 */
export async function sweepPartitions(
  { brief, long }: Connections,
  now: Seconds,
  auditedSince: Seconds,
): Promise<PartitionSweep | undefined> {
  const log = await brief(readPartitions)
  if (log === undefined) return undefined
  if (aheadOf(log) < partitionsAhead)
    await brief((client) => alone(client, () => addPartitions(client, now, auditedSince)))
  const oldest = log.partitions.find(({ state, to }) => state !== 'used' || to <= log.last)
  if (oldest === undefined) return { rows: 0 }
  const rows = await long((client) =>
    dropPartition(client, oldest, auditedSince).catch((fault: unknown) => {
      if (!isBusy(fault)) throw fault
      return 0
    }),
  )
  return { rows }
}

/** Another node drops the partition, or a transaction, such as a backup, still reads it. The next sweep goes on. */
function isBusy(fault: unknown): boolean {
  return ['55P03', '57014', '55000', '42P01'].includes(codeOf(fault))
}

/** Runs work in a transaction, unless another node does so at this moment. */
async function alone(client: pg.ClientBase, work: () => Promise<unknown>): Promise<void> {
  await client.query('begin')
  try {
    const { rows } = await client.query(`select pg_try_advisory_xact_lock(${partitionLock}) as "isAlone"`)
    if (rows[0]?.isAlone) await work()
    await client.query('commit')
  } catch (fault) {
    await client.query('rollback').catch(() => undefined)
    throw fault
  }
}

/**
 * Adds partitions until enough have no event yet. Made apart and then attached, which waits for nothing that reads or
 * writes the log, and nothing of that waits for it.
 */
export async function addPartitions(
  client: pg.ClientBase,
  now: Seconds,
  auditedSince: Seconds,
): Promise<void> {
  const log = await readPartitions(client)
  if (log === undefined) return
  const size = await nextSize(client, log.last, now, auditedSince)
  let from = Math.max(...log.partitions.map(({ to }) => to))
  for (let ahead = aheadOf(log); ahead < partitionsAhead; ahead++) {
    await client.query(`create table audit_events_${from} (like audit_events including defaults);
      alter table audit_events attach partition audit_events_${from} for values from (${from}) to (${from + size})`)
    from += size
  }
}

/** Returns for how many events the next partition is: a share of all that are kept, by the newest ones. */
export async function nextSize(
  client: pg.ClientBase,
  last: number,
  now: Seconds,
  auditedSince: Seconds,
): Promise<number> {
  const span = auditedSince > 0 ? (now - auditedSince) / partitionsKept : longestSpan
  const { rows } = await client.query(
    `select seq, at from audit_events where seq > ${last - leastEvents} order by seq limit 1`,
  )
  const [first] = rows
  if (first === undefined) return leastEvents
  const events = ((last - first.seq) / Math.max(1, now - first.at)) * span
  return Math.max(leastEvents, Math.ceil(events))
}

/** Goes on with the end of a partition, where it is. @returns How many events were dropped. */
async function dropPartition(
  client: pg.ClientBase,
  { name, state }: Partition,
  auditedSince: Seconds,
): Promise<number> {
  const rows = state === 'used' ? await markIfDue(client, name, auditedSince) : 0
  if (rows === undefined) return 0
  // Concurrently: what reads the log does not wait for it, and it waits for what has begun to read. In no transaction.
  if (state === 'detaching') await client.query(`alter table audit_events detach partition ${name} finalize`)
  else if (state !== 'detached')
    await client.query(`alter table audit_events detach partition ${name} concurrently`)
  await client.query(`drop table ${name}`)
  return rows
}

/** @returns How many events the partition has if all are due. */
async function markIfDue(
  client: pg.ClientBase,
  name: string,
  auditedSince: Seconds,
): Promise<number | undefined> {
  const { rows: newest } = await client.query(`select at from ${name} order by seq desc limit 1`)
  if (newest[0]?.at >= auditedSince) return undefined
  let due: number | undefined
  await alone(client, async () => {
    // It reads the partition once: the clocks of nodes differ, so that the newest event alone does not tell.
    await client.query('set local statement_timeout = 0')
    const { rows } = await client.query(`select count(*) as count, max(at) as newest from ${name}`)
    if (rows[0]?.newest >= auditedSince) return
    await client.query(`comment on table ${name} is '${dueComment}'`)
    due = rows[0]?.count
  })
  return due
}
