import pg from 'pg'
import type { Seconds } from '../../domain/model.ts'
import { connectionFault } from '../../domain/server-url.ts'
import { migrationLock } from './open-pool.ts'
import { addPartitions, nextSize, readPartitions } from './partitions.ts'
import { numbers } from './prepared.ts'

/**
 * Gives the audit log partitions, in one transaction: the table that there is becomes the first of them. PostgreSQL reads
 * it once, to see that every event belongs there, and until then nothing can be written to it or read from it.
 * @returns The number of the event with which the second partition begins; undefined, with nothing changed, if the log
 *   has partitions.
 * @throws {Error} with one line for the operator, without the URL; then nothing was changed.
 */
export async function partitionLog(
  url: string,
  now: Seconds,
  auditedSince: Seconds,
): Promise<number | undefined> {
  const client = new pg.Client({
    ...numbers,
    connectionString: url,
    application_name: 'lychgate store partition',
    connectionTimeoutMillis: 5000,
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query(begin)
    await client.query('select pg_advisory_xact_lock($1)', [migrationLock])
    if ((await readPartitions(client)) !== undefined) return undefined
    await client.query('lock table audit_events in access exclusive mode')
    const { rows } = await client.query('select last_value as last from audit_events_seq_seq')
    const last: number = rows[0]?.last
    const next = last + 1 + (await nextSize(client, last, now, auditedSince))
    await client.query(conversion(next))
    await addPartitions(client, now, auditedSince)
    await client.query('commit')
    return next
  } catch (fault) {
    throw new Error(`the PostgreSQL database cannot be used: ${connectionFault(url, fault)}`, {
      cause: fault,
    })
  } finally {
    // Ends the connection, and with it the transaction if it was not committed.
    await client.end().catch(() => undefined)
  }
}

// It waits for transactions that use the log, and others wait for it: not for long. The rest takes as long as it takes.
const begin = `begin; set local lock_timeout = '5s'; set local statement_timeout = 0;
  set local idle_in_transaction_session_timeout = 0`

/** The indexes keep their names, by which migrations find them. */
const conversion = (next: number) => `
  alter table audit_events rename to audit_events_1;
  alter index audit_events_pkey rename to audit_events_1_pkey;
  alter index audit_events_user_id rename to audit_events_1_user_id;
  create table audit_events (like audit_events_1 including defaults) partition by range (seq);
  alter table audit_events add primary key (seq);
  create index audit_events_user_id on audit_events (user_id, seq);
  alter sequence audit_events_seq_seq owned by audit_events.seq;
  alter table audit_events attach partition audit_events_1 for values from (minvalue) to (${next})`
