import type pg from 'pg'

/**
 * The tables that Citus spreads over machines, by what: a hash of this column, or a copy of all rows on each. The others
 * stay with the coordinator, where their rows can be locked.
 */
export const layout: Readonly<Record<string, string>> = {
  clients: 'copied',
  grants: 'id',
  revoked_access_tokens: 'grant_id',
  users: 'copied',
}

/** Where the documentation tells about it. */
export const page = 'docs/scaling.md#citus'

/**
 * Whether machines that stopped learn soon what they had prepared. Until then they read as if it had not happened, such
 * as a revocation.
 * @param milliseconds `citus.recover_2pc_interval`.
 */
export function recoversSoon(milliseconds: number): boolean {
  return milliseconds > 0 && milliseconds <= 1000
}

/** What sets it. */
export const recovery = "alter system set citus.recover_2pc_interval = '1s'; select pg_reload_conf()"

/**
 * Whether the tables of a database are distributed.
 * @throws {Error} with one line for the operator if they are in a way that was not tried, or if this is a worker.
 */
export async function isDistributed(client: pg.ClientBase): Promise<boolean> {
  const { rows: catalogs } = await client.query(
    "select to_regclass('pg_dist_partition') is not null as found",
  )
  if (!catalogs[0]?.found) return false
  const { rows } = await client.query(placements)
  if (rows.length === 0) return false
  if (!rows[0]?.coordinator) throw new Error(`this is a worker of Citus; name the coordinator: ${page}`)
  const names = new Set([...Object.keys(layout), ...rows.map(({ name }) => String(name))])
  const differing = [...names].filter((name) => rows.find((row) => row.name === name)?.key !== layout[name])
  // Rows of one grant are on one machine.
  const groups = new Set(rows.filter(({ key }) => key !== 'copied').map(({ colocation }) => colocation))
  if (differing.length === 0 && groups.size === 1) return true
  const which = differing.length === 0 ? 'apart' : differing.join(', ')
  throw new Error(`its tables are distributed in a way that was not tried (${which}): ${page}`)
}

const placements = `select relname as name, colocationid as colocation, citus_is_coordinator() as coordinator,
    case when partmethod = 'h' then column_to_column_name(logicalrelid, partkey)
      when repmodel = 't' then 'copied' else 'local' end as key
  from pg_dist_partition join pg_class on pg_class.oid = logicalrelid
  where relnamespace = current_schema()::regnamespace`
