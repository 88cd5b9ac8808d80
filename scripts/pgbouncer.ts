/**
 * `npm run pgbouncer -- SOURCE`: builds PgBouncer from its source, or takes a built one, and has two nodes run every
 * operation of test/storage/operations.ts through it in transaction mode, with the settings of docs/scaling.md.
 */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { openStore } from '../src/storage/open.ts'
import { freePort } from '../test/helpers/free-port.ts'
import { startServer } from '../test/helpers/server.ts'
import { operationsOf } from '../test/storage/operations.ts'
import { startPostgres } from '../test/storage/postgres-server.ts'
import { scriptCommand } from './command.ts'
import { downloadPackages, ProgramsMissing, unavailable, unpackPackages } from './debian/packages.ts'

const [source = ''] = scriptCommand(
  'pgbouncer',
  'Builds PgBouncer 1.21 or newer and runs every operation of two nodes through it in transaction mode.',
)
  .argument('<source>', 'the folder with its source (which has a meson.build), or the built program')
  .parse().args

const folder = mkdtempSync(join(tmpdir(), 'lychgate-pgbouncer-'))
chmodSync(folder, 0o755)
const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })]
const t = { teardown: (end: () => unknown) => void ends.push(end) }
try {
  const { program, environment } = built(resolve(source))
  const version = run(program, ['--version'], environment).split('\n')[0]
  const postgres = await startPostgres(t)
  const database = await postgres.createDatabase()
  const operator = new pg.Client(database)
  await operator.connect()
  t.teardown(() => operator.end())
  for (const statement of block('sql').split(';\n'))
    await operator.query(statement.replace('lychgate', 'postgres'))
  const { rows } = await operator.query("select current_setting('server_version') as version")

  const unprepared = block('ini').replace(/^max_prepared_statements.*/m, 'max_prepared_statements = 0')
  const rejected = await openStore(await startPooler(unprepared)).catch((fault: Error) => fault.message)
  if (typeof rejected !== 'string' || !rejected.includes('max_prepared_statements'))
    throw new Error('a pooler that keeps no prepared statements was not rejected')

  const server = await startServer(t, { store: await startPooler(block('ini')), nodes: 2 })
  const operations = Object.entries(await operationsOf(server))
  for (const [name, prepare] of operations) {
    for (let run = 0; run < 2; run += 1) await (await prepare())()
    process.stdout.write(`ok  ${name}\n`)
  }
  process.stdout.write(
    `${new Date().toISOString().slice(0, 10)}: ${version}, PostgreSQL ${rows[0]?.version}: ${operations.length} operations on two nodes\n`,
  )

  async function startPooler(settings: string): Promise<string> {
    const url = new URL(database)
    const { hostname, port, username, password } = url
    const own = await freePort()
    const files = { ini: join(folder, `${own}.ini`), users: join(folder, 'users.txt') }
    writeFileSync(files.users, `"${username}" "${password}"\n`)
    writeFileSync(
      files.ini,
      `[databases]\n* = host=${hostname} port=${port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${own}
unix_socket_dir =\nauth_type = trust\nauth_file = ${files.users}\n${settings}`,
    )
    // As root it would not start.
    const isRoot = process.getuid?.() === 0
    const args = [...(isRoot ? ['--user=nobody'] : []), '--quiet', files.ini]
    const pooler = spawn(program, args, { env: { ...process.env, ...environment }, stdio: 'inherit' })
    t.teardown(() => pooler.kill())
    while (!(await accepts(own))) {
      if (pooler.exitCode !== null) throw new Error(`PgBouncer ended with ${pooler.exitCode}`)
      await setTimeout(20)
    }
    url.port = String(own)
    return url.href
  }
} catch (error) {
  if (!(error instanceof ProgramsMissing)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = unavailable
} finally {
  for (const end of ends.reverse()) await end()
}

/** Returns the first block of this language in the part of docs/scaling.md about PgBouncer. */
function block(language: string): string {
  const page = readFileSync('docs/scaling.md', 'utf8').split('\n## PgBouncer\n')[1] ?? ''
  return new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(page)?.[1]?.trim() ?? ''
}

/** Builds the program; what that needs and the machine does not have comes from Debian packages, not installed. */
function built(from: string): { readonly program: string; readonly environment: NodeJS.ProcessEnv } {
  if (existsSync(from) && statSync(from).isFile()) return { program: from, environment: {} }
  if (!existsSync(join(from, 'meson.build')))
    throw new ProgramsMissing(`${from}: not a program, and no source with a meson.build`)
  const packages = join(folder, 'packages')
  unpackPackages(downloadPackages(folder, ['meson', 'ninja-build', 'libevent-dev']), packages)
  const libraries = join(packages, 'usr/lib', run('gcc', ['-print-multiarch']).trim())
  const environment = {
    PATH: `${join(packages, 'usr/bin')}:${process.env['PATH']}`,
    PYTHONPATH: join(packages, 'usr/lib/python3/dist-packages'),
    PKG_CONFIG_PATH: join(libraries, 'pkgconfig'),
    CPATH: join(packages, 'usr/include'),
    LIBRARY_PATH: libraries,
    LD_LIBRARY_PATH: libraries,
  }
  const target = join(folder, 'build')
  const without = ['cares', 'systemd', 'pam', 'ldap'].map((name) => `-D${name}=disabled`)
  run('/usr/bin/python3', [join(packages, 'usr/bin/meson'), 'setup', target, from, ...without], environment)
  run('ninja', ['-C', target, 'pgbouncer'], environment)
  return { program: join(target, 'pgbouncer'), environment }
}

function run(program: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): string {
  const options = { encoding: 'utf8', env: { ...process.env, ...environment } } as const
  const { status, stdout, stderr, error } = spawnSync(program, args, options)
  if (error !== undefined) throw new ProgramsMissing(`${program}: ${error.message}`)
  if (status !== 0) throw new Error(`${program} ended with ${status}: ${stderr || stdout}`)
  return stdout
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolved) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => {
      socket.destroy()
      resolved(true)
    })
    socket.on('error', () => resolved(false))
  })
}
