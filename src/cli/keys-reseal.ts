import { setTimeout } from 'node:timers/promises'
import type { Command } from 'commander'
import { ConfigError, readSecret } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import { exampleSecret } from '../config/schema.ts'
import { type SecretChange, secretChangeKey, secretChangeKind } from '../domain/secret-change.ts'
import { assertOpen } from '../keys/change-keys.ts'
import { deriveSealingKey } from '../keys/seal.ts'
import { openBefore } from '../keys/sealing-keys.ts'
import type { Store } from '../storage/store.ts'
import { systemClock, systemRandom } from '../system/system.ts'
import { CommandFailed, TryAgain } from './failure.ts'
import { addOperatorFlags, type OperatorFlags } from './flags.ts'
import { requireSecret, withStore } from './open.ts'
import { operatorContext } from './operator.ts'
import { printJson } from './print.ts'

interface ResealFlags extends OperatorFlags {
  readonly newSecretFile: string
  readonly stopped?: true
}

const help = `
Changes the secret that everything stored is sealed with: keys of the server, and secrets of one-time codes. Run it with
the current secret (LYCHGATE_SECRET_FILE). Then both secrets open the store: start every server with the new one, one after
the other, and run the same command again. It ends the change once no server has loaded its keys with the old secret
for twice keys.reloadSeconds. A change that was interrupted goes on where it was, and both secrets count until it ends.
With --stopped, while no server runs, one run does both.

It does not help where the store and its secret leaked together: who has both has the keys. Then retire them as well
(lychgate keys retire). A copy of the store from before still opens with the old secret.

Examples:
  (umask 077 && lychgate keys secret > /etc/lychgate/secret.new)
  lychgate keys reseal --new-secret-file /etc/lychgate/secret.new
`

/** Adds `lychgate keys reseal`. */
export function addResealCommand(group: Command): void {
  const command = group
    .command('reseal')
    .description('change the secret that the keys are sealed with')
    .requiredOption('--new-secret-file <file>', 'the file with the new secret')
    .option('--stopped', 'no server runs: begin and end in one run')
  addOperatorFlags(command, help).action(keysReseal)
}

async function keysReseal(flags: ResealFlags): Promise<void> {
  const secret = newSecretIn(flags.newSecretFile)
  await withStore(flags, async (store, config) => {
    const after = await deriveSealingKey(secret)
    const begun = await store.find(secretChangeKind, secretChangeKey)
    if (begun === undefined && (await isSealedWith(store, after)))
      return tell(flags, { state: 'done' }, 'The keys are sealed with this secret already.')
    const change = begun ?? (await begin(store, config, after))
    if (openBefore(change, after) === undefined)
      throw new CommandFailed(
        '--new-secret-file: another one was named when this change began; end that change first, with its file',
      )
    if (begun === undefined && !flags.stopped) {
      return tell(flags, { state: 'begun', begun_at: change.begunAt }, nextStep(config))
    }
    await end(store, config, { change, after, flags })
  })
}

/** @throws {ConfigError} unless it is one that a server takes. */
function newSecretIn(file: string): string {
  const secret = readSecret(file, '--new-secret-file')
  if (secret.length < 32) throw new ConfigError(`--new-secret-file: ${file} must have at least 32 characters`)
  if (secret === exampleSecret) throw new ConfigError('--new-secret-file: is the one of the example')
  return secret
}

async function isSealedWith(store: Store, key: Buffer): Promise<boolean> {
  const ring = await store.list('key')
  try {
    assertOpen(ring, [key], systemClock())
    return ring.length > 0
  } catch {
    return false
  }
}

async function begin(store: Store, config: Config, after: Buffer): Promise<SecretChange> {
  const before = await deriveSealingKey(await requireSecret(store, config))
  assertOpen(await store.list('key'), [before], systemClock())
  return (await rules()).beginChange(await sources(store), before, after, operatorContext())
}

interface Ending {
  readonly change: SecretChange
  readonly after: Buffer
  readonly flags: ResealFlags
}

async function end(store: Store, { keys }: Config, { change, after, flags }: Ending): Promise<void> {
  const { mayRunUntil, sealWithAfter, sealWithBoth } = await rules()
  const resealing = await sources(store)
  if (change.endingAt === undefined) {
    const seconds = mayRunUntil(change, keys.reloadSeconds) - systemClock()
    if (seconds > 0 && !flags.stopped) throw new TryAgain(notYet(change, seconds))
    await sealWithBoth(resealing, change, after, systemClock())
    progress('everything is sealed with both secrets')
  }
  // Servers seal with the old key until they have loaded their keys again.
  const { endingAt = systemClock() } = (await store.find(secretChangeKind, secretChangeKey)) ?? {}
  const pause = endingAt + keys.reloadSeconds + 1 - systemClock()
  if (pause > 0 && !flags.stopped) {
    progress(`servers stop using the old secret within ${pause} seconds`)
    await setTimeout(pause * 1000)
  }
  const { keys: count, secrets, unopened } = await sealWithAfter(resealing, change, after, operatorContext())
  const left = unopened === 0 ? '' : ` ${unopened} were opened by neither secret, and stay as they are.`
  tell(
    flags,
    { state: 'done', keys: count, secrets, unopened },
    `${count} keys and ${secrets} secrets of one-time codes are sealed with the new secret alone.${left}
The old secret opens nothing here. Copies of the store from before still open with it. If both may have leaked,
retire the keys, too: lychgate keys retire`,
  )
}

function nextStep({ keys }: Config): string {
  return `Both secrets open this store now. Start every server with the new one, one after the other.
Then run this again: it ends the change once no server has used the old secret for ${2 * keys.reloadSeconds} seconds.`
}

function notYet({ beforeSeenAt }: SecretChange, seconds: number): string {
  return beforeSeenAt === undefined
    ? `the change has just begun; start every server with the new secret, and run this again in ${seconds} seconds`
    : `a server used the old secret ${systemClock() - beforeSeenAt} seconds ago; start it with the new one, and run this again in ${seconds} seconds`
}

function tell(flags: OperatorFlags, json: object, text: string): void {
  if (flags.json) printJson(json)
  else process.stdout.write(`${text}\n`)
}

function progress(line: string): void {
  process.stderr.write(`lychgate: ${line}\n`)
}

/** Loaded late: `--help` needs none of it. */
const rules = () => import('../keys/reseal.ts')

async function sources(store: Store) {
  const { sealedKinds } = await import('../users/sealed-kinds.ts')
  return { store, random: systemRandom, kinds: sealedKinds }
}
