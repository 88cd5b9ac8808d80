import { type Command, Option } from 'commander'
import type { Config } from '../config/schema.ts'
import { type KeyAlgorithm, type KeyState, keyAlgorithms, stateOf } from '../domain/key-term.ts'
import type { Seconds, StoredKey } from '../domain/model.ts'
import { mintSecret, secretBytes } from '../domain/secret.ts'
import { keyPolicy } from '../keys/key-policy.ts'
import { describeKey, retireKey, retirementNeeds, rotateKeys, rotationNeeds } from '../keys/rules.ts'
import { deriveSealingKey } from '../keys/seal.ts'
import { systemClock, systemRandom } from '../system/system.ts'
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
States: a new key is published and waiting until it is active. It signs (or seals codes and tokens) until its successor
is active. It verifies until everything it signed or sealed has expired. Then it is retired, and deleted a day later.
If LYCHGATE_SECRET is set, it is checked against the keys.
`

const rotateHelp = `
The successor is published first, and signs after keys.publishAheadSeconds. Signatures of the old key stay valid. No
key is added if a successor is waiting already. With --now the successor signs at once: clients that cached the older
keys may reject its signatures for lifetimes.metadataCacheSeconds.

Examples:
  lychgate keys rotate
  lychgate keys rotate --algorithm RS256 ES256 --now
`

const retireHelp = `
For a key that leaked. Everything it signed or sealed becomes invalid; an active key gets a successor at once. Running
servers reload the keys within keys.reloadSeconds, clients when their cached copy expires.

Examples:
  lychgate keys retire 3
  lychgate keys retire --yes -- -kids-may-begin-with-a-hyphen
`

const secretHelp = `
Prints 32 random bytes for LYCHGATE_SECRET. Any text of 32 characters works as well, but has to be stretched at every
start, which takes a tenth of a second. Keep the secret: without it the keys cannot be opened.

Examples:
  (umask 077 && lychgate keys secret > /etc/lychgate/secret)
`

/** Adds `lychgate keys …`: the keys of the server. */
export function addKeyCommands(program: Command): void {
  const group = program
    .command('keys')
    .description('list, rotate and retire the keys of the server, or make the secret they are encrypted with')
  const list = group.command('list').description('list every key, oldest first')
  addOperatorFlags(list, listHelp).action(keysList)
  const rotate = group
    .command('rotate')
    .description('add a successor for each key; tokens stay valid')
    .addOption(
      new Option('--algorithm <names...>', 'only keys of these algorithms (default: all)').choices(
        keyAlgorithms.map(nameOf),
      ),
    )
    .option('--now', 'let the successor sign at once')
  addOperatorFlags(rotate, rotateHelp).action(keysRotate)
  const retire = group
    .command('retire <kid>')
    .description('retire a key at once, which invalidates what it signed')
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
    if (flags.json) printJson(ring.map((key) => describeKey(key, ring, now)))
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
    if (flags.json) return printJson(rotated.map((key) => describeKey(key, ring, now)))
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
    if (done === undefined) throw new CommandFailed('another process has retired the key')
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

/** Names the handle key by its purpose. */
function nameOf(algorithm: KeyAlgorithm): string {
  return algorithm === 'HS256' ? 'handle' : algorithm
}

/** Describes what ends with a key. Tokens are not stored, so their number is unknown. */
function lossOf({ kind }: StoredKey, was: KeyState): string {
  if (was === 'waiting') return 'nothing, because it never signed'
  return kind === 'signing'
    ? 'every ID Token and JWT access token it signed'
    : 'every code, access token and refresh token it sealed: users have to sign in again'
}

function follow({ keys }: Config): string {
  return `Running servers reload the keys within ${keys.reloadSeconds} seconds.`
}
