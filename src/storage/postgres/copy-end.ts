import pg from 'pg'
import { connectionFault } from '../../domain/server-url.ts'
import type { CopyEnd } from '../copy.ts'
import { numbers } from './prepared.ts'

/** How many rows are read at a time. */
const page = 2000

/** A PostgreSQL database as one end of a copy; servers may use it. */
export async function openPostgresEnd(url: string): Promise<CopyEnd> {
  const [reader, writer] = [connection(url), connection(url)]
  const close = async () => {
    await Promise.all([reader.end().catch(() => undefined), writer.end().catch(() => undefined)])
  }
  try {
    await Promise.all([reader.connect(), writer.connect()])
  } catch (fault) {
    await close()
    throw new Error(`the PostgreSQL database cannot be used: ${connectionFault(url, fault)}`, {
      cause: fault,
    })
  }
  return {
    journal: 'drizzle.__drizzle_migrations',
    place: (number) => `$${number}`,
    inBytes: (column) => `${column} collate "C"`,
    async *rows(text) {
      await reader.query(
        `begin isolation level repeatable read read only; ${withoutLimit}; declare copied no scroll cursor for ${text}`,
      )
      try {
        for (;;) {
          const { rows } = await reader.query({ text: `fetch ${page} from copied`, rowMode: 'array' })
          if (rows.length === 0) return
          for (const row of rows) yield row.map(asInSqlite)
        }
      } finally {
        await reader.query('rollback').catch(() => undefined)
      }
    },
    run: async (text, values) => {
      await writer.query(text, values && [...values])
    },
    close,
    lastNumber: (table) => `select pg_sequence_last_value(${sequenceOf(table)}::regclass)`,
    numberFrom: (table, last) => `select setval(${sequenceOf(table)}, ${last})`,
    // It waits for transactions that write, and others wait for it: not for long.
    pause: (table) => `begin; set local lock_timeout = '5s';
      create or replace function lychgate_moved() returns trigger language plpgsql as
        $$ begin raise exception 'the store was moved' using errcode = 'read_only_sql_transaction'; end $$;
      create or replace trigger lychgate_moved before insert or update or delete or truncate on "${table}"
        for each statement execute function lychgate_moved();
      commit`,
    resume: (table) => `drop trigger if exists lychgate_moved on "${table}"`,
  }
}

function connection(url: string): pg.Client {
  const client = new pg.Client({
    ...numbers,
    connectionString: url,
    application_name: 'lychgate store copy',
    connectionTimeoutMillis: 5000,
  })
  client.on('error', () => undefined)
  return client
}

/** Of the role or the server: a table takes as long as it takes. */
const withoutLimit = 'set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0'

/** A boolean is a number there, and PostgreSQL takes one for it. */
function asInSqlite(value: unknown): unknown {
  return typeof value === 'boolean' ? Number(value) : value
}

function sequenceOf(table: string): string {
  return `pg_get_serial_sequence('"${table}"', 'seq')`
}
