import type { Config } from '../../config/schema.ts'
import { ok, problem, type Setup, setting, unchecked, warning } from '../../doctor/finding.ts'
import { examineDisk, examineTerms } from '../../doctor/inside.ts'
import type { Finding } from '../../domain/finding.ts'
import type { Seconds, StoredKey } from '../../domain/model.ts'
import { assertOpen } from '../../keys/change-keys.ts'
import { keyPolicy } from '../../keys/key-policy.ts'
import { deriveSealingKey, ForeignKeys, isDevelopmentKey, WrongSecret } from '../../keys/seal.ts'
import { keysDuring } from '../../keys/sealing-keys.ts'
import { storeUrl } from '../../settings/load.ts'
import { examineStore } from '../../storage/open.ts'
import type { StoreFacts } from '../../storage/store.ts'
import { hasAdministrator } from '../../users/administrators.ts'
import { readDevSecret, secretOf } from '../open.ts'
import { administratorCommands, needsAdministrator } from '../operator.ts'

/** Every response that changes something waits for one commit. */
const slowCommitMilliseconds = 200
/** Lifetimes count in seconds, and clients allow little. */
const mostSkewSeconds = 5
const exampleStore = setting('store', 'sqlite:/var/lib/lychgate/lychgate.db')

const schemaFindings: Readonly<Record<Exclude<StoreFacts['schema'], 'missing'>, Finding>> = {
  current: ok`schema: is the one of this version`,
  ahead: ok`schema: a newer version added to it, and this one serves with it`,
  older: warning`schema: is that of an older version; the server brings it up to date when it starts
    change  make a backup, then restart the server with this version`,
  newer: problem`schema: a newer version of Lychgate made this database; this one does not open it
    change  start the newer version, or put the backup from before the upgrade in its place`,
  unfinished: problem`schema: a copy into this database has not ended; no server starts with it
    change  lychgate store copy --pause --to ...   (of the store that is copied)`,
  moved: problem`schema: the contents of this database were moved to another one; no server writes to this one
    change  name the other one, or take the move back: lychgate store resume`,
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
    const { group } = setup.config.admin
    const facts = await examineStore(url, (read) => hasAdministrator(group, read))
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
  const store = url.startsWith('sqlite:') ? url : 'the PostgreSQL database of the option store'
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
  for (const { said, expected, found, remedy } of facts.advice ?? []) {
    yield warning`database: ${said}
      expected  ${expected}
      found  ${found}
      change  ${remedy}`
  }
  yield schemaFindings[facts.schema]
  yield* judgeContents(facts, config)
}

function* judgeContents(
  { commitMilliseconds, population, isAdministered }: StoreFacts,
  config: Config,
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
  // A development server makes its users, and needs no administrator.
  if (config.mode !== 'serve' || population === undefined) return
  const { isEmpty, seeded } = population
  if (seeded.length > 0) {
    yield problem`users: the store has users of the development server, whose passwords are public
      found  ${seeded}
      change  ${seeded.map((name) => `lychgate user delete ${name}`)}`
  }
  if (!needsAdministrator(config)) return
  if (isAdministered) yield ok`administrators: there is one who can sign in`
  else if (isEmpty) {
    yield warning`administrators: there are no users yet; the link that the server prints creates the first one
      change  lychgate serve`
  } else {
    yield warning`administrators: no user is one, or the only one cannot sign in
      expected  a user in the group ${config.admin.group}, with a password or a passkey
      change  ${administratorCommands(config)}`
  }
}

/** Returns findings about the secret and the keys: whether it opens them, and whether one is missing or due. */
export async function examineKeys(
  setup: Setup,
  { keys: ring, secretChange }: Pick<StoreFacts, 'keys' | 'secretChange'>,
  now: Seconds,
): Promise<readonly Finding[]> {
  if (ring === undefined) return [unchecked`keys: cannot be read from this store`]
  if (ring.length === 0) {
    const none = warning`keys: there are none yet; the server creates them when it first starts
      expected  ${keyPolicy(setup.config).algorithms}
      change  lychgate serve`
    return [none]
  }
  const server = setup.config.mode === 'dev' ? 'development' : 'production'
  if (ring.some((key) => isDevelopmentKey(key) !== (server === 'development'))) {
    const foreign = problem`keys: ${new ForeignKeys(server).message}
      change  LYCHGATE_DATA=/var/lib/lychgate`
    return [foreign]
  }
  return [
    await examineSecret(setup, ring, secretChange, now),
    ...(secretChange === undefined ? [] : [unfinished]),
    ...examineTerms(setup, ring, now),
  ]
}

const unfinished = warning`secret: a change of it has begun and not ended; until then both secrets open the store
  expected  every server with the new secret, and the end of the change
  change  lychgate keys reseal --new-secret-file FILE`

async function examineSecret(
  { config, origins }: Setup,
  ring: readonly StoredKey[],
  change: StoreFacts['secretChange'],
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
    assertOpen(ring, keysDuring(change, sealingKey).opening, now)
    return ok`secret: opens every key`
  } catch (error) {
    if (!(error instanceof WrongSecret)) throw error
    return problem`secret: does not open the keys of this store; the server does not start with it
      expected  the secret this store was last used with
      found  another one, from ${origins.get('secret')?.name ?? 'the data folder'}
      change  LYCHGATE_SECRET_FILE=<the file with that secret>
      change  secret: <that secret>   (in the file)`
  }
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
