import pg from 'pg'
import { connectionFault } from '../../domain/server-url.ts'
import { schemaState } from '../migrations.ts'
import { appliedMigrations, migrationLock } from './open-pool.ts'
import { isDistributed, layout, page, recoversSoon, recovery } from './placement.ts'

/** The versions that it was tried with, see docs/scaling.md. */
const tried = { citus: '13.2', postgres: '15' }

/** What a store was distributed to. */
export interface Distributed {
  readonly engine: string
  readonly workers: number
  readonly shards: number
}

/**
 * Spreads the tables of a store that no server uses over the workers of Citus, in one transaction.
 * @throws {Error} with one line for the operator; then nothing was changed.
 */
export async function distribute(url: string): Promise<Distributed> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'lychgate store distribute',
    connectionTimeoutMillis: 5000,
    lock_timeout: 5000,
    statement_timeout: 0,
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
    const engine = await assertCitus(client)
    // Nothing migrates or starts in the meantime.
    await client.query('begin')
    await client.query('select pg_advisory_xact_lock($1)', [migrationLock])
    await assertIdle(client)
    const facts = await spread(client)
    await client.query('commit')
    return { engine, ...facts }
  } catch (fault) {
    const reason = fault instanceof CannotDistribute ? fault.message : connectionFault(url, fault)
    throw new Error(reason, { cause: fault })
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** Its message is one line for the operator. */
class CannotDistribute extends Error {}

/** @returns The versions of PostgreSQL and Citus. */
async function assertCitus(client: pg.Client): Promise<string> {
  const { rows } = await client.query(
    `select split_part(current_setting('server_version'), ' ', 1) as postgres,
      (select extversion from pg_extension where extname = 'citus') as extension`,
  )
  const { postgres, extension } = rows[0] ?? {}
  if (!extension) throw new CannotDistribute(`the database has no extension citus: ${page}`)
  const { rows: versions } = await client.query(
    "select substring(citus_version() from 'Citus ([0-9.]+)') as citus",
  )
  const { citus } = versions[0] ?? {}
  if (!isOf(citus, tried.citus) || !isOf(postgres, tried.postgres))
    throw new CannotDistribute(
      `Citus ${citus} on PostgreSQL ${postgres} was not tried, only ${tried.citus} on ${tried.postgres}: ${page}`,
    )
  const { rows: places } = await client.query(
    `select citus_is_coordinator() as coordinator,
      exists (select from pg_dist_node where groupid = 0) as registered,
      (select count(*)::int from pg_dist_node where groupid > 0 and isactive and shouldhaveshards) as workers,
      (select setting::int from pg_settings where name = 'citus.recover_2pc_interval') as interval`,
  )
  const { coordinator, registered, workers, interval } = places[0] ?? {}
  if (!coordinator) throw new CannotDistribute(`this is a worker of Citus; name the coordinator: ${page}`)
  if (!registered)
    throw new CannotDistribute("the coordinator has no name: select citus_set_coordinator_host('<host>')")
  if (workers === 0) throw new CannotDistribute("there are no workers: select citus_add_node('<host>', 5432)")
  if (!recoversSoon(interval))
    throw new CannotDistribute(`a revoked token could work for a while after a worker was lost: ${recovery}`)
  return `PostgreSQL ${postgres} with Citus ${citus}`
}

function isOf(version: string, release: string): boolean {
  return version === release || version.startsWith(`${release}.`)
}

async function assertIdle(client: pg.Client): Promise<void> {
  const state = schemaState('postgres', await appliedMigrations(client))
  if (state !== 'current')
    throw new CannotDistribute('start this version with it first, which makes its tables')
  if (await isDistributed(client)) throw new CannotDistribute('it is distributed already')
  const { rows } = await client.query(
    `select count(*) filter (where relkind = 'p')::int as partitioned,
      (select count(*)::int from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
        and application_name like 'lychgate%') as servers
    from pg_class where oid in (select to_regclass(name) from unnest($1::text[]) as name)`,
    [Object.keys(layout)],
  )
  const { partitioned, servers } = rows[0] ?? {}
  if (partitioned > 0) throw new CannotDistribute('partitions that are distributed were not tried')
  if (servers > 0) throw new CannotDistribute('a server uses this store; stop every node first')
}

async function spread(client: pg.Client): Promise<Pick<Distributed, 'workers' | 'shards'>> {
  // A table that is copied while others are distributed takes one connection to each machine.
  await client.query("set local citus.multi_shard_modify_mode = 'sequential'")
  for (const table of ['clients', 'users']) await client.query('select create_reference_table($1)', [table])
  await client.query("select create_distributed_table('grants', 'id', colocate_with => 'none')")
  await client.query(
    "select create_distributed_table('revoked_access_tokens', 'grant_id', colocate_with => 'grants')",
  )
  for (const table of Object.keys(layout))
    await client.query('select truncate_local_data_after_distributing_table($1)', [table])
  const { rows } = await client.query(
    `select count(*)::int as shards, count(distinct nodename || ':' || nodeport)::int as workers
      from pg_dist_shard join pg_dist_shard_placement using (shardid) where logicalrelid = 'grants'::regclass`,
  )
  const { shards, workers } = rows[0] ?? {}
  return { shards, workers }
}
