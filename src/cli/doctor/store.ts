import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { isRetired, keyAlgorithms, termsOf } from '../../domain/key-term.ts'
import type { Seconds, StoredKey } from '../../domain/model.ts'
import { assertOpen } from '../../keys/change-keys.ts'
import { dueKeys } from '../../keys/rules.ts'
import { deriveSealingKey, ForeignKeys, isDevelopmentKey, WrongSecret } from '../../keys/seal.ts'
import { keyPolicy } from '../../settings/key-policy.ts'
import { storeUrl } from '../../settings/load.ts'
import { examineStore } from '../../storage/open.ts'
import type { StoreFacts } from '../../storage/store.ts'
import { readDevSecret, secretOf } from '../open.ts'
import { instant } from '../print.ts'
import { type Finding, ok, problem, type Setup, setting, unchecked, warning } from './finding.ts'

/** Every response that changes something waits for one commit. */
const slowCommitMilliseconds = 200
const leastFreeMegabytes = 64
const fewFreeMegabytes = 1024
/** Lifetimes count in seconds, and clients allow little. */
const mostSkewSeconds = 5
/** A key without automatic rotation is old after two years. */
const oldSeconds: Seconds = 2 * 365 * 86_400
/** The types by which statfs names file systems of other machines, whose locks SQLite cannot rely on. */
const networkFileSystems: Readonly<Record<number, string>> = {
  26985: 'NFS',
  4283649346: 'CIFS',
  4266872130: 'SMB',
}
const exampleStore = setting('store', 'sqlite:/var/lib/lychgate/lychgate.db')

const schemaFindings: Readonly<Record<Exclude<StoreFacts['schema'], 'missing'>, Finding>> = {
  current: ok`schema: is the one of this version`,
  older: warning`schema: is that of an older version; the server brings it up to date when it starts
    change  make a backup, then restart the server with this version`,
  newer: problem`schema: a newer version of Lychgate made this database; this one does not open it
    change  start the newer version, or put the backup from before the upgrade in its place`,
  foreign: problem`schema: the database belongs to another program
    change  ${exampleStore}`,
}

/** Opens the store of this configuration for reading, and returns what is in it and what is wrong with it. */
export async function examineDatabase(
  setup: Setup,
): Promise<{ readonly facts?: StoreFacts; readonly findings: readonly Finding[] }> {
  const url = storeUrl(setup.config)
  if (url === 'sqlite::memory:') return { findings: [] }
  try {
    const facts = await examineStore(url)
    return { ...(facts && { facts }), findings: [...judge(facts, setup), ...examineDisk(url)] }
  } catch (error) {
    const finding = problem`database: ${error instanceof Error ? error.message : String(error)}
      expected  a database that opens
      change  ${exampleStore}`
    return { findings: [finding] }
  }
}

function* judge(facts: StoreFacts | undefined, { config }: Setup): Generator<Finding> {
  const url = storeUrl(config)
  // The address of a server may contain a password.
  const store = url.startsWith('sqlite:') ? url : 'the PostgreSQL database of the store setting'
  if (facts === undefined || facts.schema === 'missing') {
    yield warning`database: does not exist yet; the server creates it when it first starts
      expected  ${store}
      change  lychgate serve`
    return
  }
  for (const { said, expected, found, remedy } of facts.faults) {
    yield problem`database: ${said}
      expected  ${expected}
      found  ${found}
      change  ${remedy}`
  }
  if (facts.faults.length === 0) yield ok`database: ${facts.engine} opens and is sound`
  yield schemaFindings[facts.schema]
  yield* judgeContents(facts, config.mode)
}

function* judgeContents(
  { commitMilliseconds, clientsWithoutPkce = [], unreachableClients = [], seededUsers = [] }: StoreFacts,
  mode: 'dev' | 'serve',
): Generator<Finding> {
  if (commitMilliseconds !== undefined) {
    const milliseconds = Math.ceil(commitMilliseconds * 10) / 10
    if (milliseconds <= slowCommitMilliseconds) yield ok`commit: takes ${milliseconds} ms`
    else {
      yield warning`commit: is slow: sign-in and every token wait for it
        expected  at most ${slowCommitMilliseconds} ms
        found  ${milliseconds} ms, the best of a few
        change  put the data folder (or PostgreSQL) on a faster disk, near the server`
    }
  }
  if (clientsWithoutPkce.length > 0) {
    yield warning`clients: PKCE is optional for a client: an attacker can redeem a leaked code of it
      found  ${clientsWithoutPkce}
      change  ${clientsWithoutPkce.map((id) => `lychgate client set ${id} --pkce required`)}`
  }
  if (unreachableClients.length > 0) {
    yield warning`logout: a client never responds: its users stay signed in there when they sign out here
      expected  200 or 204 from its backchannel_logout_uri
      found  ${unreachableClients}
      change  ${unreachableClients.map((id) => `lychgate logout deliveries --client ${id} --failed`)}
      change  lychgate client set CLIENT --backchannel-logout-uri URL`
  }
  if (mode === 'serve' && seededUsers.length > 0) {
    yield problem`users: the store has users of the development server, whose passwords are public
      found  ${seededUsers}
      change  ${seededUsers.map((name) => `lychgate user remove ${name}`)}`
  }
}

function* examineDisk(url: string): Generator<Finding> {
  if (!url.startsWith('sqlite:')) return
  const folder = dirname(url.slice('sqlite:'.length))
  let disk: ReturnType<typeof statfsSync>
  try {
    disk = statfsSync(folder)
  } catch {
    // examineFiles reports a missing folder.
    return
  }
  const network = networkFileSystems[disk.type]
  if (network !== undefined) {
    yield problem`disk: ${folder} is on ${network}: SQLite loses data there
      change  ${setting('store', 'postgres://lychgate@localhost/lychgate')}`
  }
  const free = Math.floor((disk.bavail * disk.bsize) / 2 ** 20)
  if (free >= fewFreeMegabytes) yield ok`disk: ${free} MiB are free`
  else {
    yield (free < leastFreeMegabytes ? problem : warning)`disk: is nearly full
      expected  at least ${fewFreeMegabytes} MiB free
      found  ${free} MiB free in ${folder}
      change  make room, or move the data folder
      change  ${setting('data', '/var/lib/lychgate')}`
  }
}

/** Returns findings about the secret and the keys: whether it opens them, and whether one is missing or due. */
export async function examineKeys(
  setup: Setup,
  ring: readonly StoredKey[] | undefined,
  now: Seconds,
): Promise<readonly Finding[]> {
  if (ring === undefined) return [unchecked`keys: cannot be read from this store`]
  if (ring.length === 0) {
    const none = warning`keys: there are none yet; the server creates them when it first starts
      expected  ${keyAlgorithms}
      change  lychgate serve`
    return [none]
  }
  const server = setup.config.mode === 'dev' ? 'development' : 'production'
  if (ring.some((key) => isDevelopmentKey(key) !== (server === 'development'))) {
    const foreign = problem`keys: ${new ForeignKeys(server).message}
      change  LYCHGATE_DATA=/var/lib/lychgate`
    return [foreign]
  }
  return [await examineSecret(setup, ring, now), ...examineTerms(setup, ring, now)]
}

async function examineSecret(
  { config, origins }: Setup,
  ring: readonly StoredKey[],
  now: Seconds,
): Promise<Finding> {
  const secret = secretOf(config)
  if (secret === undefined) return unchecked`secret: none is set, so the keys cannot be opened`
  if (config.mode === 'serve' && secret === readDevSecret(config.data)) {
    return problem`secret: is the one of the development server in this data folder
      change  lychgate keys secret > /etc/lychgate/secret
      change  LYCHGATE_SECRET_FILE=/etc/lychgate/secret`
  }
  const sealingKey = await deriveSealingKey(secret)
  try {
    assertOpen(ring, sealingKey, now)
    return ok`secret: opens every key`
  } catch (error) {
    if (!(error instanceof WrongSecret)) throw error
    return problem`secret: does not open the keys of this store; the server does not start with it
      expected  the secret this store was first used with
      found  another one, from ${origins.get('secret')?.name ?? 'the data folder'}
      change  LYCHGATE_SECRET_FILE=<the file with that secret>
      change  secret: <that secret>   (in the file)`
  }
}

function* examineTerms({ config }: Setup, ring: readonly StoredKey[], now: Seconds): Generator<Finding> {
  const terms = keyAlgorithms.map((algorithm) => ({ algorithm, ...termsOf(ring, algorithm, now) }))
  const missing = terms.flatMap(({ algorithm, acting }) => (acting === undefined ? algorithm : []))
  if (missing.length > 0) {
    yield problem`keys: there is no active key for ${missing}
      expected  an active key for each algorithm
      found  ${ring.filter((key) => !isRetired(key, now)).length} keys that are not retired
      change  restart the server: it creates what is missing`
  }
  const active = terms.flatMap(({ acting }) => acting ?? [])
  const ahead = active.filter(({ createdAt }) => createdAt > now)
  const due = dueKeys(ring, keyPolicy(config), now).flatMap(({ algorithm }) =>
    missing.includes(algorithm) ? [] : algorithm,
  )
  if (ahead.length > 0) {
    yield problem`keys: were created in the future: the clock of this machine was set back
      expected  created before ${instant(now)}
      found  ${ahead.map(({ id, createdAt }) => `${id}: ${instant(createdAt)}`)}
      change  timedatectl set-ntp true`
  } else if (due.length > 0) {
    yield warning`keys: ${due} should have a successor by now, created by a running server
      change  lychgate keys rotate`
  } else if (config.keys.rotationSeconds === 0 && active.some((key) => now - key.activeAt > oldSeconds)) {
    yield warning`keys: are old, and keys.rotationSeconds is 0, so that only an operator rotates them
      change  lychgate keys rotate
      change  ${setting('keys.rotationSeconds', '7776000')}`
  } else if (missing.length === 0) yield ok`keys: an active one for each of ${keyAlgorithms}`
}

/**
 * Compares another clock with this one.
 * @param before The time here before the other clock was asked, and `after` the time after that.
 */
export function compareClocks(
  owner: 'the database' | 'the issuer',
  { before, at, after }: NonNullable<StoreFacts['clock']>,
): Finding {
  const skew = at < before ? at - before : Math.max(0, at - after)
  if (Math.abs(skew) <= mostSkewSeconds) return ok`clock: of ${owner} agrees with this one`
  return problem`clock: of ${owner} is ${Math.abs(skew)} seconds ${skew > 0 ? 'ahead of' : 'behind'} this one
    change  timedatectl set-ntp true   (on both machines)`
}
