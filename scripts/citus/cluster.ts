import { randomBytes } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { freePort } from '../../test/helpers/free-port.ts'
import { makeFolder } from '../cluster/folder.ts'
import { until } from '../cluster/loopback.ts'
import { programsWithCitus } from './build.ts'

/** A coordinator and two workers, on free ports of this machine, in a temporary folder. */
export interface CitusCluster {
  /** The URL of a new, empty database of all three, with Citus in it. */
  createDatabase(): Promise<string>
  readonly workers: readonly Machine[]
}

/** One PostgreSQL of the cluster. */
export interface Machine {
  readonly port: number
  /** Ends it at once: the next start recovers. */
  kill(): Promise<void>
  start(): Promise<void>
}

/** The part of tap's `t` that is used here. */
interface Owner {
  teardown(end: () => unknown): unknown
}

const settings = {
  shared_preload_libraries: 'citus',
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: 300,
  max_prepared_transactions: 300,
  shared_buffers: '64MB',
  dynamic_shared_memory_type: 'mmap',
  jit: 'off',
  // Nothing here cuts the power, and written data outlives a killed process.
  fsync: 'off',
  'citus.node_conninfo': 'sslmode=disable',
  // See docs/scaling.md: it is part of the layout.
  'citus.recover_2pc_interval': '1s',
}

/** @param options `coordinatorPort`: that of the coordinator; otherwise a free one. */
export async function startCitus(
  t: Owner,
  source: string,
  options: { readonly coordinatorPort?: number } = {},
): Promise<CitusCluster> {
  const programs = programsWithCitus(source)
  const folder = makeFolder()
  t.teardown(() => folder.remove())
  // Of packages that are not installed.
  const environment = { LD_LIBRARY_PATH: globSync(join(programs, '../../../*-linux-gnu')).join(':') }

  async function addMachine(name: string, port: number): Promise<Machine> {
    const data = folder.add(name)
    const initdb = [join(programs, 'initdb'), '--pgdata', data, '--username=postgres', '--auth=trust']
    await folder.run(`initdb-${name}`, [...initdb, '--encoding=UTF8', '--locale=C', '--no-sync'], {
      environment,
    })
    const flags = Object.entries({ ...settings, port }).flatMap(([key, value]) => ['-c', `${key}=${value}`])
    const start = async () => {
      folder.start(name, [join(programs, 'postgres'), '-D', data, ...flags], { environment })
      await until(`${name} accepts connections`, () =>
        query(port, 'postgres', 'select 1').then(
          () => true,
          () => false,
        ),
      )
    }
    await start()
    const kill = async () => {
      // The first line of the file is the process id.
      const pid = Number.parseInt(readFileSync(join(data, 'postmaster.pid'), 'utf8'), 10)
      process.kill(pid, 'SIGQUIT')
      while (isAlive(pid)) await setTimeout(20)
    }
    return { port, kill, start }
  }

  const coordinator = await addMachine('coordinator', options.coordinatorPort ?? (await freePort()))
  const workers = [await addMachine('one', await freePort()), await addMachine('two', await freePort())]
  const machines = [coordinator, ...workers]

  return {
    workers,
    createDatabase: async () => {
      const name = `lychgate_${randomBytes(6).toString('hex')}`
      for (const { port } of machines) {
        await query(port, 'postgres', `create database ${name} template template0`)
        await query(port, name, 'create extension citus')
      }
      await query(
        coordinator.port,
        name,
        `select citus_set_coordinator_host('127.0.0.1', ${coordinator.port})`,
      )
      for (const { port } of workers)
        await query(coordinator.port, name, `select citus_add_node('127.0.0.1', ${port})`)
      return `postgres://postgres@127.0.0.1:${coordinator.port}/${name}`
    },
  }
}

async function query(port: number, database: string, text: string): Promise<void> {
  const client = new pg.Client({ host: '127.0.0.1', port, database, user: 'postgres' })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query(text)
  } finally {
    await client.end().catch(() => undefined)
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
