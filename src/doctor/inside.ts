import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Config } from '../config/schema.ts'
import type { Finding } from '../domain/finding.ts'
import { isRetired, termsOf } from '../domain/key-term.ts'
import type { Seconds, StoredKey } from '../domain/model.ts'
import { keyPolicy } from '../keys/key-policy.ts'
import { dueKeys } from '../keys/rules.ts'
import { storeUrl } from '../settings/load.ts'
import { isoInstant } from '../system/system.ts'
import { ok, problem, type Setup, setting, warning } from './finding.ts'
import { examineFiles, examineSettings } from './settings.ts'

const leastFreeMegabytes = 64
const fewFreeMegabytes = 1024
/** A key without automatic rotation is old after two years. */
const oldSeconds: Seconds = 2 * 365 * 86_400
/** The types by which statfs names file systems of other machines, whose locks SQLite cannot rely on. */
const networkFileSystems: Readonly<Record<number, string>> = {
  26985: 'NFS',
  4283649346: 'CIFS',
  4266872130: 'SMB',
}
const memory = 'sqlite::memory:'

/**
 * Yields what a running server finds out about itself without a connection and without reading its database. That the
 * settings are valid, the secret opens the keys and the issuer is reached is known by then.
 */
export function* examineInside(config: Config, ring: readonly StoredKey[], now: Seconds): Generator<Finding> {
  const setup: Setup = { config, file: undefined, origins: new Map(), environment: {}, isContainer: false }
  yield* examineSettings(setup)
  yield* examineFiles(setup)
  yield* examineDisk(storeUrl(config))
  yield* examineTerms(setup, ring, now)
}

/** Yields findings about the disk of a SQLite database. */
export function* examineDisk(url: string): Generator<Finding> {
  if (!url.startsWith('sqlite:') || url === memory) return
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

/** Yields findings about which keys there are, and how old they are. */
export function* examineTerms(
  { config }: Pick<Setup, 'config'>,
  ring: readonly StoredKey[],
  now: Seconds,
): Generator<Finding> {
  const policy = keyPolicy(config)
  const terms = policy.algorithms.map((algorithm) => ({ algorithm, ...termsOf(ring, algorithm, now) }))
  const missing = terms.flatMap(({ algorithm, acting }) => (acting === undefined ? algorithm : []))
  if (missing.length > 0) {
    yield problem`keys: there is no active key for ${missing}
      expected  an active key for each algorithm
      found  ${ring.filter((key) => !isRetired(key, now)).length} keys that are not retired
      change  restart the server: it creates what is missing`
  }
  const active = terms.flatMap(({ acting }) => acting ?? [])
  const ahead = active.filter(({ createdAt }) => createdAt > now)
  const due = dueKeys(ring, policy, now).flatMap(({ algorithm }) =>
    missing.includes(algorithm) ? [] : algorithm,
  )
  if (ahead.length > 0) {
    yield problem`keys: were created in the future: the clock of this machine was set back
      expected  created before ${isoInstant(now)}
      found  ${ahead.map(({ id, createdAt }) => `${id}: ${isoInstant(createdAt)}`)}
      change  timedatectl set-ntp true`
  } else if (due.length > 0) {
    yield warning`keys: ${due} should have a successor by now, created by a running server
      change  lychgate keys rotate`
  } else if (config.keys.rotationSeconds === 0 && active.some((key) => now - key.activeAt > oldSeconds)) {
    yield warning`keys: are old, and keys.rotationSeconds is 0, so that only an operator rotates them
      change  lychgate keys rotate
      change  ${setting('keys.rotationSeconds', '7776000')}`
  } else if (missing.length === 0) yield ok`keys: an active one for each of ${policy.algorithms}`
}
