import pg from 'pg'
import t from 'tap'
import { newFolder } from '../helpers/command.ts'
import { faultsOf, secret } from '../helpers/doctor.ts'
import { startServer } from '../helpers/server.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const postgres = await startPostgres(t, { fsync: true })

t.test(
  'a healthy PostgreSQL has no finding and is not changed, and a misconfigured one is found',
  async (t) => {
    // As in production: a role with no rights except on its own database.
    const created = new URL(await postgres.createDatabase())
    const administrator = new pg.Client(created.href)
    await administrator.connect()
    await administrator.query("create role lychgate login password 'theirs'")
    await administrator.query(`alter database ${created.pathname.slice(1)} owner to lychgate`)
    await administrator.query('alter schema public owner to lychgate')
    const store = `postgres://lychgate:theirs@${created.host}${created.pathname}`
    const settings = {
      LYCHGATE_STORE: store,
      LYCHGATE_SECRET: secret,
      LYCHGATE_DATA: newFolder(t),
      LYCHGATE_ISSUER: 'https://auth.example.org',
    }
    const faults = async () =>
      (await faultsOf(settings, { offline: true })).filter(({ check }) => check !== 'network')
    t.match(await faults(), [
      { check: 'database', level: 'warning', said: /^does not exist yet/ },
      { check: 'keys' },
    ])
    await (await startServer(t, { store })).close()
    const client = new pg.Client(store)
    await client.connect()
    const writes = 'select sum(n_tup_ins + n_tup_upd + n_tup_del) as count from pg_stat_user_tables'
    const before = (await client.query(writes)).rows
    t.match(await faults(), [{ level: 'warning', found: 'wal_compression = off' }])
    await administrator.query('alter system set wal_compression = on')
    await administrator.query('select pg_reload_conf()')
    while ((await client.query('show wal_compression')).rows[0].wal_compression === 'off');
    t.strictSame(await faults(), [])
    t.strictSame((await client.query(writes)).rows, before)

    await client.query(
      "insert into drizzle.__drizzle_migrations (hash, created_at) values ('x', 99999999999999)",
    )
    t.match(await faults(), [
      { check: 'schema', said: /a newer version/ },
      { check: 'keys', level: 'not checked' },
    ])
    await administrator.query('alter system set fsync = off')
    await administrator.query('select pg_reload_conf()')
    while ((await client.query('show fsync')).rows[0].fsync === 'on');
    t.match((await faults())[0], {
      check: 'database',
      level: 'problem',
      found: 'fsync = off',
      change: [/^fsync = on/],
    })
    await client.end()
    await administrator.end()
    await postgres.stop()
    const [gone] = await faults()
    t.match(gone, {
      check: 'database',
      level: 'problem',
      said: /^the PostgreSQL database cannot be used: .*ECONNREFUSED/,
    })
    t.notMatch(JSON.stringify(gone), 'theirs')
  },
)
