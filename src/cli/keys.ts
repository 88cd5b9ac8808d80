import { type Command, Option } from 'commander'
import type { Config } from '../config/schema.ts'
import { type KeyAlgorithm, type KeyState, keyAlgorithms, stateOf } from '../domain/key-term.ts'
import type { Seconds, StoredKey } from '../domain/model.ts'
import { mintSecret, secretBytes } from '../domain/secret.ts'
import { retireKey, retirementNeeds, rotateKeys, rotationNeeds } from '../keys/rules.ts'
import { deriveSealingKey } from '../keys/seal.ts'
import { keyPolicy } from '../settings/key-policy.ts'
import { systemClock, systemRandom } from '../system.ts'
import { CommandFailed } from './failure.ts'
import { addOperatorFlags, addYesFlag, type DestructiveFlags, type OperatorFlags } from './flags.ts'
import { assertSecret, openKeySources, secretOf, withStore } from './open.ts'
import { confirmOrAbort } from './operator.ts'
import { instant, printColumns, printJson, printResult } from './print.ts'

interface RotateFlags extends OperatorFlags {
  readonly now?: true
  readonly algorithm?: readonly string[]
}

const listHelp = `
States: a key waits, published, until it is active; it signs (or seals codes and tokens) until its successor is
active; it verifies only, until nothing of it can live any more; then it is retired, and forgotten a day later.
With LYCHGATE_SECRET set, it is checked against the keys.
`

const rotateHelp = `
The successor is published first and signs from keys.publishAheadSeconds on; what the old key signed goes on to
verify. A successor that waits already is enough. With --now it signs at once: whoever holds older keys may refuse
its signatures until lifetimes.metadataCacheSeconds are over.

Examples:
  lychgate keys rotate
  lychgate keys rotate --algorithm RS256 ES256 --now
`

const retireHelp = `
For a key that leaked. Everything it signed or sealed ends with it; an active key's successor takes over at once.
Running servers follow within keys.reloadSeconds, other holders of the key set when their copy is old.

Examples:
  lychgate keys retire 3
  lychgate keys retire --yes -- -kids-may-begin-with-a-hyphen
`

const secretHelp = `
32 random bytes for LYCHGATE_SECRET. Any text of 32 characters would do, too, but is stretched at every start, which
takes a tenth of a second: it might be one that can be guessed. Keep it: without it the keys cannot be opened.

Examples:
  (umask 077 && lychgate keys secret > /etc/lychgate/secret)
`

/** Adds `lychgate keys …`: what an operator sees of the key ring, and does to it. */
export function addKeyCommands(program: Command): void {
  const group = program
    .command('keys')
    .description('list, rotate and retire the keys of the server, or make the secret they are encrypted with')
  const list = group.command('list').description('every key, oldest first')
  addOperatorFlags(list, listHelp).action(keysList)
  const rotate = group
    .command('rotate')
    .description('give keys successors; nothing that lives ends')
    .addOption(
      new Option('--algorithm <names...>', 'only these (default: all)').choices(keyAlgorithms.map(nameOf)),
    )
    .option('--now', 'the successor signs at once')
  addOperatorFlags(rotate, rotateHelp).action(keysRotate)
  const retire = group.command('retire <kid>').description('end a key at once, and with it what it signed')
  addOperatorFlags(addYesFlag(retire), retireHelp).action(keysRetire)
  group
    .command('secret')
    .description('print a new secret to encrypt the keys with')
    .addHelpText('after', secretHelp)
    .action(() => void process.stdout.write(`${mintSecret('sealing', systemRandom(secretBytes))}\n`))
}

async function keysList(flags: OperatorFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    const [ring, now] = [await store.list('key'), systemClock()]
    const secret = secretOf(config)
    if (secret !== undefined) await assertSecret(store, await deriveSealingKey(secret))
    if (flags.json) printJson(ring.map((key) => describe(key, ring, now)))
    else printTable(ring, ring, now)
  })
}

async function keysRotate(flags: RotateFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    const sources = await openKeySources(store, config)
    const algorithms = keyAlgorithms.filter((one) => flags.algorithm?.includes(nameOf(one)) ?? true)
    const policy = keyPolicy(config)
    const at = flags.now ? 'once' : 'published'
    const { changeKeys } = await import('../keys/change-keys.ts')
    const ring = await changeKeys(sources, {
      needs: (current, now) => rotationNeeds(current, algorithms, now),
      decide: (current, fresh, now) => rotateKeys(current, { algorithms, at }, fresh, policy, now),
    })
    const now = systemClock()
    const rotated = ring.filter(({ algorithm }) => algorithms.includes(algorithm))
    if (flags.json) return printJson(rotated.map((key) => describe(key, ring, now)))
    printTable(rotated, ring, now)
    process.stdout.write(`\n${follow(config)}\n`)
  })
}

async function keysRetire(kid: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    const sources = await openKeySources(store, config)
    const ring = await store.list('key')
    const key = requireKey(ring.find(({ id }) => id === kid))
    const was = stateOf(key, ring, systemClock())
    if (was === 'retired') throw new CommandFailed('the key is retired already')
    const question = `Retire the key ${kid} (${nameOf(key.algorithm)}, ${was})? It ends ${lossOf(key, was)}.`
    await confirmOrAbort(flags, question, 'nothing was retired')
    const policy = keyPolicy(config)
    const { changeKeys } = await import('../keys/change-keys.ts')
    const done = await changeKeys(sources, {
      needs: (current, now) => retirementNeeds(current, kid, now),
      decide: (current, fresh, now) => retireKey(current, kid, fresh, policy, now),
    })
    if (done === undefined) throw new CommandFailed('another process retired the key meanwhile')
    const { successor, was: ended } = done
    printResult(
      flags,
      { kid, retired: true, was: ended, ...(successor && { successor: successor.id }) },
      { retired: kid, successor: successor?.id, ended: lossOf(key, ended) },
    )
    if (!flags.json) process.stdout.write(`\n${follow(config)}\n`)
  })
}

function requireKey(key: StoredKey | undefined): StoredKey {
  if (key === undefined) throw new CommandFailed('no key has this kid')
  return key
}

function printTable(keys: readonly StoredKey[], ring: readonly StoredKey[], now: Seconds): void {
  if (keys.length === 0) return
  const head = ['kid', 'kind', 'algorithm', 'state', 'created', 'active from', 'retires at']
  const rows = keys.map((key) => [
    key.id,
    key.kind,
    key.algorithm,
    stateOf(key, ring, now),
    instant(key.createdAt),
    instant(key.activeAt),
    key.retiredAt === undefined ? '' : instant(key.retiredAt),
  ])
  printColumns([head, ...rows])
}

/** Everything but the key itself. */
function describe(key: StoredKey, ring: readonly StoredKey[], now: Seconds) {
  return {
    kid: key.id,
    kind: key.kind,
    algorithm: key.algorithm,
    state: stateOf(key, ring, now),
    created_at: key.createdAt,
    active_from: key.activeAt,
    ...(key.retiredAt !== undefined && { retires_at: key.retiredAt }),
  }
}

/** The handle key goes by what it is for. */
function nameOf(algorithm: KeyAlgorithm): string {
  return algorithm === 'HS256' ? 'handle' : algorithm
}

/** How many tokens a key signed is not known: tokens are not stored. */
function lossOf({ kind }: StoredKey, was: KeyState): string {
  if (was === 'waiting') return 'nothing, for it never signed'
  return kind === 'signing'
    ? 'every ID Token and JWT access token it signed'
    : 'every code, access token and refresh token it sealed: people sign in again'
}

function follow({ keys }: Config): string {
  return `Running servers follow within ${keys.reloadSeconds} seconds.`
}
