import pg from 'pg'
import type { Condition } from '../../domain/decision.ts'
import { connectionFault } from '../../domain/server-url.ts'
import { systemClock } from '../../system/system.ts'
import { isRead, schemaState } from '../migrations.ts'
import { storedFacts } from '../reads.ts'
import { commitsTried, type StoreFacts, type StoreFault } from '../store.ts'
import { appliedMigrations } from './open-pool.ts'
import { aheadOf, type PartitionedLog, partitionsAhead, readPartitions } from './partitions.ts'
import { isDistributed, recoversSoon, recovery } from './placement.ts'
import { numbers, run } from './prepared.ts'

const oldestVersion = 15

/**
 * Looks at a database through one connection that reads.
 * @throws {Error} with one line for the operator, without the URL, when it cannot be opened.
 */
export async function examinePostgres(url: string, isAdministered: Condition['holds']): Promise<StoreFacts> {
  const client = new pg.Client({
    ...numbers,
    connectionString: url,
    application_name: 'lychgate doctor',
    connectionTimeoutMillis: 5000,
    statement_timeout: 5000,
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
    // Not of the session: behind a pooler that is another client's in the next moment.
    await client.query('begin read only')
    const facts = await factsOf(client, isAdministered)
    await client.query('commit')
    return { ...facts, ...(!facts.isStandby && (await quickestCommit(client))) }
  } catch (fault) {
    throw new Error(`the PostgreSQL database cannot be used: ${connectionFault(url, fault)}`, {
      cause: fault,
    })
  } finally {
    await client.end().catch(() => undefined)
  }
}

async function factsOf(
  client: pg.Client,
  isAdministered: Condition['holds'],
): Promise<StoreFacts & { readonly isStandby: boolean }> {
  const settings = await client.query(
    `select current_setting('server_version') as version, current_setting('fsync') as fsync,
      current_setting('wal_compression') as compression, pg_is_in_recovery() as standby,
      (select setting::int from pg_settings where name = 'citus.recover_2pc_interval') as interval`,
  )
  const { version, fsync, compression, standby, interval } = settings.rows[0] ?? {}
  const before = systemClock()
  const instant = await client.query('select extract(epoch from clock_timestamp())::bigint as at')
  const clock = { before, at: Number(instant.rows[0]?.at), after: systemClock() }
  const schema = await schemaOf(client)
  const distributed = await isDistributed(client)
  return {
    engine: `PostgreSQL ${version}${distributed ? ' with Citus' : ''}`,
    schema,
    faults: [
      ...serverFaults(String(version), fsync === 'off', standby === true),
      ...partitionFaults(await readPartitions(client)),
      ...(distributed && !recoversSoon(interval) ? [recoversLate] : []),
    ],
    advice: compression === 'off' ? [uncompressed] : [],
    clock,
    ...(isRead(schema) && (await run(client, storedFacts(isAdministered)))),
    isStandby: standby === true,
  }
}

const uncompressed: StoreFault = {
  said: 'PostgreSQL writes the first change of each page to its log uncompressed',
  expected: 'wal_compression = lz4: a third of the bytes of a refresh',
  found: 'wal_compression = off',
  remedy: 'wal_compression = lz4   (in postgresql.conf)',
}

const recoversLate: StoreFault = {
  said: 'after a worker of Citus was lost, revoked tokens can work for a while',
  expected: 'citus.recover_2pc_interval of at most a second',
  found: 'a longer one',
  remedy: recovery,
}

function* serverFaults(version: string, isUnsafe: boolean, isStandby: boolean): Generator<StoreFault> {
  if (Number.parseInt(version, 10) < oldestVersion) {
    yield {
      said: 'PostgreSQL is too old',
      expected: `${oldestVersion} or newer`,
      found: version,
      remedy: `upgrade PostgreSQL to ${oldestVersion} or newer`,
    }
  }
  if (isStandby) {
    yield {
      said: 'the database is a standby, which takes no writes',
      expected: 'the primary',
      found: 'pg_is_in_recovery() is true',
      remedy: 'name the primary in LYCHGATE_STORE, or an address that leads to whichever is the primary',
    }
  }
  if (isUnsafe) {
    yield {
      said: 'PostgreSQL does not wait for the disk: a crash can lose acknowledged changes, and revoked tokens can work again',
      expected: 'fsync = on',
      found: 'fsync = off',
      remedy: 'fsync = on   (in postgresql.conf)',
    }
  }
}

function* partitionFaults(log: PartitionedLog | undefined): Generator<StoreFault> {
  if (log === undefined || aheadOf(log) > 0) return
  yield {
    said: 'the audit log has no partition after the one that is being filled: then nothing can be written to it',
    expected: `${partitionsAhead} partitions without an event, which the sweep adds`,
    found: 'none',
    remedy: 'look for “sweeping failed” in the log of the servers',
  }
}

async function schemaOf(client: pg.Client): Promise<StoreFacts['schema']> {
  const applied = await appliedMigrations(client)
  return applied.length === 0 ? 'missing' : schemaState('postgres', applied)
}

/** A message without readers takes the way of every commit to the disk and changes no table. */
async function quickestCommit(client: pg.Client): Promise<Pick<StoreFacts, 'commitMilliseconds'>> {
  const times: number[] = []
  try {
    for (let count = 0; count < commitsTried; count++) {
      await client.query('begin read write')
      await client.query("select pg_logical_emit_message(true, 'lychgate', '')")
      const start = performance.now()
      await client.query('commit')
      times.push(performance.now() - start)
    }
  } catch {
    // This user may not, which a server that only writes rows never notices.
    return {}
  }
  return { commitMilliseconds: Math.min(...times) }
}
