import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { storeUrl } from '../../settings/load.ts'
import { examineStore } from '../../storage/examine.ts'
import type { StoreFacts } from '../../storage/store-facts.ts'
import { type Finding, ok, problem, setting, warning } from './finding.ts'
import type { Setup } from './setup.ts'

/** Every answer that changes something waits for one commit. */
const slowCommitMilliseconds = 200
const leastFreeBytes = 64 * 2 ** 20
const fewFreeBytes = 1024 * 2 ** 20
/** What statfs calls file systems of other machines: their locks do not hold what SQLite needs. */
const networkFileSystems: Readonly<Record<number, string>> = {
  26985: 'NFS',
  4283649346: 'CIFS',
  4266872130: 'SMB',
}

/** The store, as far as it can be seen without changing it, and what is wrong with it. */
export interface ExaminedStore {
  readonly facts?: StoreFacts
  readonly findings: readonly Finding[]
}

/** Opens the store of this configuration for reading. */
export async function examineDatabase(setup: Setup): Promise<ExaminedStore> {
  const url = storeUrl(setup.config)
  if (url === 'sqlite::memory:') return { findings: [] }
  try {
    const facts = await examineStore(url)
    return { ...(facts && { facts }), findings: [...judge(facts, setup), ...examineDisk(url)] }
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error)
    const change = setting('store', 'sqlite:/var/lib/lychgate/lychgate.db')
    return { findings: [problem('database', said, { expected: 'a database that opens', change })] }
  }
}

function* judge(facts: StoreFacts | undefined, setup: Setup): Generator<Finding> {
  if (facts === undefined || facts.schema === 'missing') {
    yield warning('database', 'is not there yet; the server makes it when it first starts', {
      expected: storeOf(setup),
      change: ['lychgate serve'],
    })
    return
  }
  for (const { said, expected, found, remedy } of facts.faults) {
    yield problem('database', said, { expected, found, change: [remedy] })
  }
  if (facts.faults.length === 0) yield ok('database', `${facts.engine} opens and is sound`)
  yield judgeSchema(facts.schema, setup)
  yield* judgeCommit(facts)
  yield* judgeClients(facts)
  if (setup.config.mode === 'serve') yield* judgeUsers(facts)
}

function judgeSchema(schema: Exclude<StoreFacts['schema'], 'missing'>, setup: Setup): Finding {
  switch (schema) {
    case 'current':
      return ok('schema', 'is the one of this version')
    case 'older':
      return warning(
        'schema',
        'is that of an older version; the server brings it up to date when it starts',
        {
          expected: 'the schema of this version',
          found: 'an older one',
          change: ['make a backup, then restart the server with this version'],
        },
      )
    case 'newer':
      return problem('schema', 'a newer version of Lychgate made this database; this one does not open it', {
        expected: 'the schema of this version',
        found: 'migrations this version does not know',
        change: ['start the newer version, or put the backup from before the upgrade in its place'],
      })
    case 'foreign':
      return problem('schema', 'the database belongs to another program', {
        expected: storeOf(setup),
        found: 'tables that Lychgate did not make',
        change: setting('store', 'sqlite:/var/lib/lychgate/lychgate.db'),
      })
  }
}

function* judgeCommit({ commitMilliseconds }: StoreFacts): Generator<Finding> {
  if (commitMilliseconds === undefined) return
  const milliseconds = Math.ceil(commitMilliseconds * 10) / 10
  if (milliseconds <= slowCommitMilliseconds) yield ok('commit', `takes ${milliseconds} ms`)
  else {
    yield warning('commit', 'is slow: sign-in and every token wait for it', {
      expected: `at most ${slowCommitMilliseconds} ms`,
      found: `${milliseconds} ms, the best of a few`,
      change: ['put the data folder (or PostgreSQL) on a faster disk, near the server'],
    })
  }
}

function* judgeUsers({ seededUsers: [first, ...others] = [] }: StoreFacts): Generator<Finding> {
  if (first === undefined) return
  yield problem('people', 'the store has people of the development server, whose passwords everybody knows', {
    expected: 'nobody of them',
    found: [first, ...others].join(', '),
    change: [first, ...others].map((name) => `lychgate user remove ${name}`),
  })
}

function* judgeClients({ clientsWithoutPkce = [] }: StoreFacts): Generator<Finding> {
  if (clientsWithoutPkce.length === 0) return
  yield warning(
    'clients',
    'a client may leave PKCE out: a code of it that leaks can be redeemed by an attacker',
    {
      expected: 'PKCE of every client that can do it',
      found: clientsWithoutPkce.join(', '),
      change: clientsWithoutPkce.map((id) => `lychgate client set ${id} --pkce required`),
    },
  )
}

function* examineDisk(url: string): Generator<Finding> {
  if (!url.startsWith('sqlite:')) return
  const folder = dirname(url.slice('sqlite:'.length))
  let disk: ReturnType<typeof statfsSync>
  try {
    disk = statfsSync(folder)
  } catch {
    // A folder that is not there is found with the files.
    return
  }
  const network = networkFileSystems[disk.type]
  if (network !== undefined) {
    yield problem('disk', `the database is on ${network}: SQLite loses data there`, {
      expected: 'a disk of this machine',
      found: `${folder} on ${network}`,
      change: setting('store', 'postgres://lychgate@localhost/lychgate'),
    })
  }
  const free = disk.bavail * disk.bsize
  if (free >= fewFreeBytes) yield ok('disk', `${megabytes(free)} are free`)
  else {
    yield (free < leastFreeBytes ? problem : warning)('disk', 'is nearly full', {
      expected: `at least ${megabytes(fewFreeBytes)} free`,
      found: `${megabytes(free)} free in ${folder}`,
      change: ['make room, or move the data folder', ...setting('data', '/var/lib/lychgate')],
    })
  }
}

function megabytes(size: number): string {
  return `${Math.floor(size / 2 ** 20)} MiB`
}

/** Without the password an address may carry. */
function storeOf({ config }: Setup): string {
  const url = storeUrl(config)
  return url.startsWith('sqlite:') ? url : 'the PostgreSQL database of the store setting'
}
