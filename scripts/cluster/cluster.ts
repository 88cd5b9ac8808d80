/** Starts the cluster, to watch a failover by hand. `npm run test:cluster` tests the same one. */
import { createInterface } from 'node:readline'
import { scriptCommand } from '../command.ts'
import { ProgramsMissing, unavailable } from '../debian/packages.ts'
import { type Folder, makeFolder } from './folder.ts'
import { askStatus, until } from './loopback.ts'
import { getPrograms, getProxies } from './packages.ts'
import { type Cluster, startCluster } from './start.ts'

const { check } = scriptCommand(
  'cluster',
  'Starts two Lychgate nodes in front of PostgreSQL with Patroni, etcd and HAProxy: two PostgreSQL nodes in synchronous ' +
    'mode, on free ports of 127.0.0.1, in a temporary folder that goes with it. Programs that are not on this machine ' +
    'come from its Debian packages, which are unpacked into that folder and not installed. LYCHGATE_ variables reach ' +
    'the nodes.',
)
  .addHelpText(
    'after',
    `
While it runs, type:
  kill    ends the primary at once, as a power cut does, and says when writes are back
  hang    stops it where it is, with every connection open
  back    brings back what was lost, as standby
  roles   who is primary and who is standby
  end     ends everything, as Ctrl-C does

npm run cluster
LYCHGATE_SERVICE_NAME=Example npm run cluster`,
  )
  .option(
    '--check',
    `only find out whether this machine has the programs, and the proxies of npm run test:proxies, or can get them; ${unavailable} says that it cannot`,
    false,
  )
  .parse()
  .opts<{ check: boolean }>()
await main()

async function main(): Promise<void> {
  const folder = makeFolder()
  let isEnding = false
  const end = async (code: number) => {
    isEnding = true
    await folder.remove()
    process.exit(code)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => void end(1))
  try {
    const programs = getPrograms(folder)
    if (check) getProxies(folder)
    else {
      const settings = Object.entries(process.env).flatMap(([name, value]) =>
        name.startsWith('LYCHGATE_') && value !== undefined ? [[name, value] as const] : [],
      )
      say('starting, which takes half a minute')
      await obey(folder, await startCluster(folder, programs, Object.fromEntries(settings)))
    }
    await end(0)
  } catch (error) {
    // Other failures while everything is stopped do not matter.
    if (isEnding) return
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
    await end(error instanceof ProgramsMissing ? unavailable : 1)
  }
}

/** Runs the commands that are typed until the end is requested; without a terminal, until a signal arrives. */
async function obey(folder: Folder, cluster: Cluster): Promise<void> {
  say(`issuer    ${cluster.issuer}
store     ${cluster.store}
logs      ${folder.path}/*.log`)
  for (const { name, restPort } of cluster.nodes) say(`node ${name}  http://127.0.0.1:${restPort}/cluster`)
  await tell(cluster)
  let bringBack: () => void = () => undefined
  const lose = async (verb: 'kill' | 'freeze') => {
    const { primary } = await cluster.settled()
    cluster[verb](primary)
    bringBack = () => {
      // Like its watchdog.
      if (verb === 'freeze') cluster.kill(primary)
      cluster.revive(primary)
    }
    const began = performance.now()
    say(`${primary} is gone`)
    await until('writes', async () => (await register(cluster)) === 201)
    say(`writes are back after ${((performance.now() - began) / 1000).toFixed(1)} s`)
  }
  const commands: Readonly<Record<string, () => Promise<void>>> = {
    kill: () => lose('kill'),
    hang: () => lose('freeze'),
    back: async () => {
      bringBack()
      await cluster.settled()
      await tell(cluster)
    },
    roles: () => tell(cluster),
  }
  for await (const line of createInterface({ input: process.stdin })) {
    if (line.trim() === 'end') return
    const obeyed = commands[line.trim()]
    if (obeyed) await obeyed()
    else say('kill, hang, back, roles or end')
  }
  await new Promise(() => setInterval(() => undefined, 60_000))
}

async function tell(cluster: Cluster): Promise<void> {
  const { primary = 'none', standby = 'none' } = await cluster.roles()
  say(`primary ${primary}, standby ${standby}`)
}

async function register({ issuer }: Cluster): Promise<number | undefined> {
  return await askStatus(`${issuer}/api/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'Cluster', redirect_uris: ['http://127.0.0.1:1/callback'] }),
  })
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
