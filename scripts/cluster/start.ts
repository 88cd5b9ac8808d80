import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { freePort } from '../../test/helpers/free-port.ts'
import {
  type DatabaseNode,
  haproxyConfiguration,
  type Passwords,
  patroniConfiguration,
} from './configuration.ts'
import { type Folder, processesIn } from './folder.ts'
import { askStatus, until } from './loopback.ts'
import type { Programs } from './packages.ts'

/** Two Lychgate nodes on a PostgreSQL of two nodes, one of which takes over when the other is down. */
export interface Cluster {
  /** The URL that clients know, in front of both Lychgate nodes. */
  readonly issuer: string
  /** `LYCHGATE_STORE` of both: one address in front of the current PostgreSQL primary. */
  readonly store: string
  readonly nodes: readonly DatabaseNode[]
  /** The primary, and the standby that may take over without loss, if they exist now. */
  roles(): Promise<Partial<Roles>>
  /** Waits until both exist. */
  settled(): Promise<Roles>
  /** Ends PostgreSQL and Patroni of this node at once, like a power cut. */
  kill(name: string): void
  /** Suspends them, with every connection open, until they are killed. */
  freeze(name: string): void
  /** Restarts Patroni of a killed node, which starts its PostgreSQL as standby. */
  revive(name: string): void
}

/** Names of PostgreSQL nodes. */
export interface Roles {
  readonly primary: string
  readonly standby: string
}

const entry = fileURLToPath(new URL('../../src/lychgate.js', import.meta.url))

/** @param settings LYCHGATE_ variables for both Lychgate nodes. */
export async function startCluster(
  folder: Folder,
  programs: Programs,
  settings: Readonly<Record<string, string>> = {},
): Promise<Cluster> {
  const passwords = { superuser: secret(), replication: secret(), lychgate: secret() }
  const etcdPort = await startEtcd(folder, programs)
  const nodes = [await makeNode(folder, 'one'), await makeNode(folder, 'two')]
  for (const node of nodes) {
    const content = patroniConfiguration(node, { etcdPort, bin: programs.postgres, passwords })
    writeFileSync(join(node.folder, 'patroni.yaml'), content)
  }
  const cluster = control(folder, programs, nodes)
  for (const { name } of nodes) cluster.revive(name)
  const { primary } = await cluster.settled()
  await createDatabase(nodes.find(({ name }) => name === primary)?.port ?? 0, passwords)

  const ports = {
    store: await freePort(),
    issuer: await freePort(),
    lychgate: [await freePort(), await freePort()],
  }
  writeFileSync(join(folder.path, 'haproxy.cfg'), haproxyConfiguration(nodes, ports))
  folder.start('haproxy', [programs.haproxy, '-db', '-f', 'haproxy.cfg'], programs)
  const store = `postgres://lychgate:${passwords.lychgate}@127.0.0.1:${ports.store}/lychgate`
  const issuer = `http://localhost:${ports.issuer}`
  const environment = {
    LYCHGATE_ISSUER: issuer,
    LYCHGATE_STORE: store,
    LYCHGATE_SECRET: secret(),
    // All requests have the same source address here.
    LYCHGATE_RATE_LIMITS: 'off',
    LYCHGATE_LIMITS_GRANTS_PER_USER_AND_CLIENT: '0',
    ...settings,
  }
  await until('HAProxy to find the primary', () => accepts(store))
  await Promise.all(
    ports.lychgate.map((port, at) => startLychgate(folder, `lychgate-${at + 1}`, port, environment)),
  )
  return { ...cluster, issuer, store }
}

type Control = Omit<Cluster, 'issuer' | 'store'>

function control(folder: Folder, programs: Programs, nodes: readonly DatabaseNode[]): Control {
  const nodeOf = (name: string) => {
    const node = nodes.find((each) => each.name === name)
    if (node === undefined) throw new Error(`there is no node ${name}`)
    return node
  }
  const signal = (name: string, kind: NodeJS.Signals) => {
    const pids = processesIn(nodeOf(name).folder)
    for (const pid of pids) {
      try {
        process.kill(pid, kind)
      } catch (error) {
        // It ended in the meantime.
        if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
      }
    }
    return pids.length
  }
  async function nodeThatSays(path: string): Promise<string | undefined> {
    const statuses = await Promise.all(
      nodes.map((node) => askStatus(`http://127.0.0.1:${node.restPort}${path}`)),
    )
    return nodes.find((_, at) => statuses[at] === 200)?.name
  }
  async function roles(): Promise<Partial<Roles>> {
    const [primary, standby] = await Promise.all([nodeThatSays('/primary'), nodeThatSays('/synchronous')])
    return { ...(primary && { primary }), ...(standby && { standby }) }
  }
  return {
    nodes,
    roles,
    settled: () =>
      until('a primary and its synchronous standby', async () => {
        const { primary, standby } = await roles()
        return primary !== undefined && standby !== undefined && { primary, standby }
      }),
    kill: (name) => {
      const lock = join(nodeOf(name).folder, 'database/postmaster.pid')
      const memory = readFileSync(lock, 'utf8').split('\n')[6]?.trim().split(/\s+/)[1] ?? ''
      // Also those that one of them started in the meantime.
      while (signal(name, 'SIGKILL') > 0);
      // A machine that lost power has no shared memory left; killed processes leave it.
      spawnSync('ipcrm', ['-m', memory])
    },
    freeze: (name) => signal(name, 'SIGSTOP'),
    revive: (name) => {
      const { folder: cwd } = nodeOf(name)
      folder.start(`patroni-${name}`, [...programs.patroni, join(cwd, 'patroni.yaml')], { ...programs, cwd })
    },
  }
}

/** One member: what fails here is PostgreSQL. If etcd may fail too, use three. */
async function startEtcd(folder: Folder, { etcd, environment }: Programs): Promise<number> {
  const [port, peerPort] = [await freePort(), await freePort()]
  const [url, peerUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`]
  const flags = {
    '--name': 'only',
    '--data-dir': 'etcd',
    '--listen-client-urls': url,
    '--advertise-client-urls': url,
    '--listen-peer-urls': peerUrl,
    '--initial-advertise-peer-urls': peerUrl,
    '--initial-cluster': `only=${peerUrl}`,
  }
  const supported = process.arch === 'arm64' ? { ETCD_UNSUPPORTED_ARCH: 'arm64' } : {}
  folder.start('etcd', [etcd, ...Object.entries(flags).flat()], {
    environment: { ...environment, ...supported },
  })
  await until('etcd', async () => (await askStatus(`${url}/health`)) === 200)
  return port
}

async function makeNode(folder: Folder, name: string): Promise<DatabaseNode> {
  return { name, folder: folder.add(name), port: await freePort(), restPort: await freePort() }
}

async function createDatabase(port: number, { superuser, lychgate }: Passwords): Promise<void> {
  const client = new pg.Client(`postgres://postgres:${superuser}@127.0.0.1:${port}/postgres`)
  await client.connect()
  await client.query(`create role lychgate login password '${lychgate}'`)
  await client.query('create database lychgate owner lychgate')
  await client.end()
}

async function accepts(store: string): Promise<boolean> {
  const client = new pg.Client(store)
  client.on('error', () => undefined)
  const isIn = await client.connect().then(
    () => true,
    () => false,
  )
  await client.end()
  return isIn
}

async function startLychgate(
  folder: Folder,
  name: string,
  port: number,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  const child = folder.start(name, [process.execPath, entry, 'dev', '--port', String(port)], {
    environment,
    asStarter: true,
  })
  await until(name, async () => {
    if (child.exitCode !== null)
      throw new Error(`${name} ended:\n${folder.words(name).slice(-15).join('\n')}`)
    return (await askStatus(`http://127.0.0.1:${port}/readyz`)) === 200
  })
}

function secret(): string {
  return randomBytes(24).toString('base64url')
}
