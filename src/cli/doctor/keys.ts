import { isRetired, keyAlgorithms, termsOf } from '../../domain/key-term.ts'
import type { Seconds, StoredKey } from '../../domain/model.ts'
import { assertOpen } from '../../keys/change-keys.ts'
import { dueKeys } from '../../keys/rules.ts'
import {
  deriveSealingKey,
  ForeignKeys,
  isDevelopmentKey,
  type ServerKind,
  WrongSecret,
} from '../../keys/seal.ts'
import { keyPolicy } from '../../settings/key-policy.ts'
import { readDevSecret } from '../open.ts'
import { secretOf } from '../open-keys.ts'
import { instant } from '../print.ts'
import { type Finding, ok, problem, setting, unchecked, warning } from './finding.ts'
import type { Setup } from './setup.ts'

/** A key that is not renewed is old after two years, whatever the configuration says. */
const oldSeconds: Seconds = 2 * 365 * 86_400

/** Whether the secret opens the keys of this store, and whether there are those that are needed. */
export async function examineKeys(
  setup: Setup,
  ring: readonly StoredKey[] | undefined,
  now: Seconds,
): Promise<readonly Finding[]> {
  if (ring === undefined) return [unchecked('keys', 'cannot be read from the store as it is')]
  if (ring.length === 0) {
    const change = ['lychgate serve']
    const none = 'there are none yet; the server makes them when it first starts'
    return [warning('keys', none, { expected: keyAlgorithms.join(', '), change })]
  }
  const server = setup.config.mode === 'dev' ? 'development' : 'production'
  const foreign = ring.filter((key) => isDevelopmentKey(key) !== (server === 'development'))
  if (foreign.length > 0) return [foreignKeys(server)]
  return [...(await examineSecret(setup, ring, now)), ...examineTerms(setup, ring, now)]
}

function foreignKeys(server: ServerKind): Finding {
  const { message } = new ForeignKeys(server)
  return problem('keys', message, {
    expected: `keys of a ${server} server`,
    change: ['LYCHGATE_DATA=/var/lib/lychgate'],
  })
}

async function examineSecret(
  { config, origins }: Setup,
  ring: readonly StoredKey[],
  now: Seconds,
): Promise<readonly Finding[]> {
  const secret = secretOf(config)
  if (secret === undefined) return [unchecked('secret', 'none is set, so the keys stay closed')]
  if (config.mode === 'serve' && secret === readDevSecret(config.data)) {
    const said = 'it is the one of the development server in this data folder'
    const change = [
      'lychgate keys secret > /etc/lychgate/secret',
      'LYCHGATE_SECRET_FILE=/etc/lychgate/secret',
    ]
    return [problem('secret', said, { expected: 'one of its own', change })]
  }
  const sealingKey = await deriveSealingKey(secret)
  try {
    assertOpen(ring, sealingKey, now)
  } catch (error) {
    if (!(error instanceof WrongSecret)) throw error
    const wrong = problem(
      'secret',
      'does not open the keys of this store; the server does not start with it',
      {
        expected: 'the secret this store was first used with',
        found: `another one, from ${origins.get('secret')?.name ?? 'the data folder'}`,
        change: ['LYCHGATE_SECRET_FILE=<the file with that secret>', 'secret: <that secret>   (in the file)'],
      },
    )
    return [wrong]
  }
  return [ok('secret', 'opens every key')]
}

function* examineTerms({ config }: Setup, ring: readonly StoredKey[], now: Seconds): Generator<Finding> {
  const policy = keyPolicy(config)
  const active = keyAlgorithms.map((algorithm) => ({ algorithm, ...termsOf(ring, algorithm, now) }))
  const missing = active.filter(({ acting }) => acting === undefined).map(({ algorithm }) => algorithm)
  if (missing.length > 0) {
    yield problem('keys', `there is no active key for ${missing.join(', ')}`, {
      expected: 'an active key for each algorithm',
      found: `${ring.filter((key) => !isRetired(key, now)).length} keys that are not retired`,
      change: ['restart the server: it makes what is missing'],
    })
  }
  const ahead = active.flatMap(({ acting }) => (acting && acting.createdAt > now ? acting : []))
  const due = dueKeys(ring, policy, now).filter(({ algorithm }) => !missing.includes(algorithm))
  const old = active.filter(({ acting }) => acting && now - acting.activeAt > oldSeconds)
  if (ahead.length > 0) {
    yield problem('keys', 'keys were made in the future: the clock of this machine was set back', {
      expected: `made before ${instant(now)}`,
      found: ahead.map(({ id, createdAt }) => `${id}: ${instant(createdAt)}`).join(', '),
      change: ['timedatectl set-ntp true'],
    })
  } else if (due.length > 0) {
    yield warning(
      'keys',
      `${due.map(({ algorithm }) => algorithm).join(', ')} should have a successor by now`,
      {
        expected: `a successor within ${config.keys.reloadSeconds} seconds, made by a running server`,
        found: 'none',
        change: ['lychgate keys rotate'],
      },
    )
  } else if (config.keys.rotationSeconds === 0 && old.length > 0) {
    yield warning('keys', 'are old, and only an operator rotates them', {
      expected: 'a rotation now and then',
      found: 'keys.rotationSeconds is 0',
      change: ['lychgate keys rotate', ...setting('keys.rotationSeconds', '7776000')],
    })
  } else if (missing.length === 0) yield ok('keys', `an active one for each of ${keyAlgorithms.join(', ')}`)
}
