import { type Command, Option } from 'commander'
import type { Config } from '../config/schema.ts'
import { type KeyAlgorithm, keyAlgorithms } from '../domain/key-term.ts'
import { mintSecret, secretBytes } from '../domain/secret.ts'
import type { describeKey } from '../keys/rules.ts'
import { deriveSealingKey } from '../keys/seal.ts'
import { systemRandom } from '../system/system.ts'
import { CommandFailed, unlessMissing } from './failure.ts'
import { addOperatorFlags, addYesFlag, type DestructiveFlags, type OperatorFlags } from './flags.ts'
import { addResealCommand } from './keys-reseal.ts'
import { assertSecret, openConfiguredKeys, secretOf, withStore } from './open.ts'
import { type Operator, operatorOn } from './operate.ts'
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
    .description(
      'list, rotate and retire the keys of the server, or make or change the secret they are encrypted with',
    )
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
  addResealCommand(group)
  group
    .command('secret')
    .description('print a new secret to encrypt the keys with')
    .addHelpText('after', secretHelp)
    .action(() => void process.stdout.write(`${mintSecret('sealing', systemRandom(secretBytes))}\n`))
}

/** Loaded late: `--help` needs none of it. The secret of the keys is on this machine. */
const operations = () => import('../admin/operations/keys.ts')

async function keysList(flags: OperatorFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    const secret = secretOf(config)
    if (secret !== undefined) await assertSecret(store, await deriveSealingKey(secret))
    const ring = await keysOf(operatorOn(store, config))
    if (flags.json) printJson(ring)
    else printTable(ring)
  })
}

async function keysRotate(flags: RotateFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    const algorithms = keyAlgorithms.filter((one) => flags.algorithm?.includes(nameOf(one)) ?? true)
    const { perform } = operatorOn(store, config)
    const body = { algorithms, now: flags.now === true }
    const { items } = await perform((await operations()).rotateServerKeys, {}, body)
    const rotated = items as readonly ShownKey[] // what the operation returns
    if (flags.json) return printJson(rotated)
    printTable(rotated)
    process.stdout.write(`\n${follow(config)}\n`)
  })
}

async function keysRetire(kid: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    await openConfiguredKeys(store, config)
    const operator = operatorOn(store, config)
    const key = (await keysOf(operator)).find((one) => one.kid === kid)
    if (key === undefined) throw new CommandFailed('no key has this kid')
    const { algorithm, state: was } = key
    if (was === 'retired') throw new CommandFailed('the key is retired already')
    const question = `Retire the key ${kid} (${nameOf(algorithm)}, ${was})? It ends ${lossOf(key)}.`
    await confirmOrAbort(flags, question, 'nothing was retired')
    const gone = 'another process has retired the key'
    await unlessMissing(operator.perform((await operations()).retireServerKey, { kid }), gone)
    const isHeir = (one: ShownKey) => one.algorithm === algorithm && one.state === 'active'
    const successor = was === 'active' ? (await keysOf(operator)).find(isHeir) : undefined
    printResult(
      flags,
      { kid, retired: true, was, ...(successor && { successor: successor.kid }) },
      { retired: kid, successor: successor?.kid, ended: lossOf(key) },
    )
    if (!flags.json) process.stdout.write(`\n${follow(config)}\n`)
  })
}

type ShownKey = ReturnType<typeof describeKey>

async function keysOf({ perform }: Operator): Promise<readonly ShownKey[]> {
  const { items } = await perform((await operations()).listKeys, {})
  return items as readonly ShownKey[] // what the operation returns
}

function printTable(keys: readonly ShownKey[]): void {
  if (keys.length === 0) return
  const head = ['kid', 'kind', 'algorithm', 'state', 'created', 'active from', 'retires at']
  const rows = keys.map((key) => [
    key.kid,
    key.kind,
    key.algorithm,
    key.state,
    instant(key.created_at),
    instant(key.active_from),
    key.retires_at === undefined ? '' : instant(key.retires_at),
  ])
  printColumns([head, ...rows])
}

/** Names the handle key by its purpose. */
function nameOf(algorithm: KeyAlgorithm): string {
  return algorithm === 'HS256' ? 'handle' : algorithm
}

/** Describes what ends with a key. Tokens are not stored, so their number is unknown. */
function lossOf({ kind, state }: ShownKey): string {
  if (state === 'waiting') return 'nothing, because it never signed'
  return kind === 'signing'
    ? 'every ID Token and JWT access token it signed'
    : 'every code, access token and refresh token it sealed: users have to sign in again'
}

function follow({ keys }: Config): string {
  return `Running servers reload the keys within ${keys.reloadSeconds} seconds.`
}
