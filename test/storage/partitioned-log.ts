import pg from 'pg'
import { openStore, partitionAuditLog } from '../../src/storage/open.ts'
import type { PostgresServer } from './postgres-server.ts'

/** Runs statements, each after the other. */
export async function runIn(url: string, text: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(text)
  await client.end()
}

/** Partitions of three events each, and then one that is as large as those of a server. */
export const small = `do $$ declare part regclass; begin
  for part in select inhrelid from pg_inherits where inhparent = 'audit_events'::regclass loop
    execute format('drop table %s', part);
  end loop;
  for start in 1..28 by 3 loop
    execute format('create table audit_events_%s partition of audit_events for values from (%s) to (%s)',
      start, start, case start when 28 then 4000000 else start + 3 end);
  end loop;
end $$`

/** Makes a database whose audit log has small partitions. @returns Its URL. */
export async function smallPartitions(postgres: PostgresServer): Promise<string> {
  const url = await postgres.createDatabase()
  await (await openStore(url)).close()
  await partitionAuditLog(url, 1000, 0)
  await runIn(url, small)
  return url
}
