import { type Command, Option } from 'commander'
import { authenticationOf, describeClient } from '../clients/describe.ts'
import { lockClient, removeClient, rotateClientSecret, unlockClient } from '../clients/integration.ts'
import { isUnusedSince } from '../clients/use.ts'
import { accept } from '../domain/decision.ts'
import { type Client, type ClientOrigin, clientOrigins, type Seconds } from '../domain/model.ts'
import { knownTo } from '../feature/known-to.ts'
import { declared } from '../features.ts'
import { systemClock, systemRandom } from '../system/system.ts'
import { addClientAccessCommand, addClientClaimsCommand } from './client-access.ts'
import { addClientDocumentCommands } from './client-document.ts'
import { addClientKeyCommands } from './client-key.ts'
import { acceptRemoval, addMetadataFlags, clientAdd, clientSet } from './client-metadata.ts'
import { addClientProfileCommand } from './client-profile.ts'
import { addClientTrustCommands } from './client-trust.ts'
import { requireClient } from './find.ts'
import {
  addOperatorFlags,
  addYesFlag,
  type DestructiveFlags,
  type OperatorFlags,
  parseSpan,
} from './flags.ts'
import { withStore } from './open.ts'
import { confirmOrAbort, operatorContext } from './operator.ts'
import { instant, printJson, printList, printResult } from './print.ts'

const addHelp = `
Prints the secret once. The client sends it by the method that --auth names, and without --auth by
client_secret_basic or client_secret_post. ID Tokens are signed with RS256 unless --id-token-alg names another.

Examples:
  lychgate client add --name 'Course app' --redirect-uri https://app.example.com/callback
  lychgate client add --name 'Nightly import' --grant-type client_credentials --scope courses:read \\
    --auth private_key_jwt --jwks import.pub.pem
  lychgate client add --name 'Course API' --resource https://api.example.com
  lychgate client add --name 'Course app' --redirect-uri https://app.example.com/callback --consent skip \\
    --client-uri https://app.example.com --policy-uri https://app.example.com/privacy --localized 'client_name#fr=Cours'
`

const listHelp = `
The last use is the day on which the client last got a token for a grant, or refreshed one.

Examples:
  lychgate client list
  lychgate client list --origin registered --unused 90d
`

const setHelp = `
Members that are not named stay; a list replaces the previous one, and an empty text removes the member. The change
takes effect with the next request. A client that registered itself cannot be changed here.

Examples:
  lychgate client set client_x1f8… --name 'Course app' --tos-uri https://app.example.com/terms
  lychgate client set client_x1f8… --redirect-uri https://a.example.com/cb --redirect-uri https://b.example.com/cb
  lychgate client set client_x1f8… --localized 'client_name#de=Kurse' --scope ''
`

const rotateHelp = `
With --keep-old the old secret is accepted, too, for that long. Until then 'lychgate client show' has the day on which each of
both was last used. A client has two secrets at most.

Examples:
  lychgate client rotate-secret client_x1f8…
  lychgate client rotate-secret client_x1f8… --keep-old 7d
  lychgate client rotate-secret client_x1f8… --yes --json | jq -r .client_secret > secret
`

const lockHelp = `
A locked client cannot authenticate, and users cannot sign in to it. Unlocking makes tokens valid again that have not expired.

Examples:
  lychgate client lock client_x1f8…
  lychgate client lock client_x1f8… --yes
`

const removeHelp = `
Examples:
  lychgate client remove client_x1f8…
  lychgate client remove client_x1f8… --yes
`

const unusedHelp = `
Removes only clients that registered themselves. The server itself removes those that never got a token
(lifetimes.unusedClientSeconds), or got none for a long time (lifetimes.idleClientSeconds).

Examples:
  lychgate client list --origin registered --unused 180d
  lychgate client remove-unused 180d --yes
`

/** Adds `lychgate client …`: the clients an operator arranges, and a view of those that registered themselves. */
export function addClientCommands(program: Command): void {
  const group = program.command('client').description('add, list, show, change and remove clients')
  const command = (name: string, description: string) => group.command(name).description(description)
  const add = command('add', 'add a client with https callbacks, or a resource server')
  addOperatorFlags(addMetadataFlags(add, ['client_name']), addHelp).action(clientAdd)
  const list = command('list', 'list every client, oldest first, with the days it was added and last used')
    .addOption(new Option('--origin <name>', 'only clients of this origin').choices(clientOrigins))
    .option(
      '--unused <duration>',
      'only clients that were not used for this long: 12h, 30d or 26w',
      parseSpan,
    )
  addOperatorFlags(list, listHelp).action(clientList)
  const show = command('show <client_id>', 'show what is stored about a client; never its secret')
  addOperatorFlags(show, '\nExample:\n  lychgate client show client_x1f8…\n').action(clientShow)
  const set = command('set <client_id>', 'change a client that an operator added')
  addOperatorFlags(acceptRemoval(addMetadataFlags(set)), setHelp).action(clientSet)
  const rotate = command('rotate-secret <client_id>', 'replace the secret and print the new one once').option(
    '--keep-old <duration>',
    'accept the old secret for this long: 12h, 7d or 2w (default: not)',
    parseSpan,
  )
  addOperatorFlags(addYesFlag(rotate), rotateHelp).action(clientRotateSecret)
  addClientKeyCommands(group)
  addClientTrustCommands(group)
  addClientDocumentCommands(group)
  addClientProfileCommand(group)
  addClientAccessCommand(group)
  addClientClaimsCommand(group)
  const lock = command('lock <client_id>', 'lock a client: its tokens are invalid while it is locked')
  addOperatorFlags(addYesFlag(lock), lockHelp).action(clientLock)
  const unlock = command('unlock <client_id>', 'unlock a client')
  addOperatorFlags(unlock, '\nExample:\n  lychgate client unlock client_x1f8…\n').action(clientUnlock)
  const removal = command('remove <client_id>', 'remove a client and its tokens')
  addOperatorFlags(addYesFlag(removal), removeHelp).action(clientRemove)
  const unused = command(
    'remove-unused',
    'remove clients that registered themselves and are not used',
  ).argument('<duration>', 'how long they got no token: 12h, 30d or 26w', parseSpan)
  addOperatorFlags(addYesFlag(unused), unusedHelp).action(clientRemoveUnused)
}

interface ListFlags extends OperatorFlags {
  readonly origin?: ClientOrigin
  readonly unused?: Seconds
}

/** `lychgate client list`: lists every client, or some of them, oldest first. */
async function clientList({ origin, unused, ...flags }: ListFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    const since = unused === undefined ? undefined : systemClock() - unused
    const isWanted = (client: Client) =>
      (origin === undefined || client.origin === origin) &&
      (since === undefined || isUnusedSince(client, since))
    const clients = (await store.list('client')).filter(isWanted)
    printList(flags, clients, (client) => describeClient(client, knownTo(config, declared)), lineOf)
  })
}

function lineOf(client: Client): string[] {
  const { id, origin, issuedAt, usedAt, name = '' } = client
  const used = usedAt <= issuedAt ? 'never used' : `used ${instant(usedAt).slice(0, 10)}`
  const rules = [authenticationOf(client, declared), ...weaknessesOf(client)].join(', ')
  return [id, origin, rules, instant(issuedAt).slice(0, 10), used, name]
}

/** Names what an operator locked or switched off for this client. */
function weaknessesOf({ lockedAt, pkceOptional, consent }: Client): string[] {
  return [
    ...(lockedAt === undefined ? [] : ['locked']),
    ...(pkceOptional ? ['PKCE optional'] : []),
    ...(consent === 'skip' ? ['consent skipped'] : []),
  ]
}

/** `lychgate client show`: shows what is stored about a client; never its secret. */
async function clientShow(clientId: string, flags: OperatorFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    const description = describeClient(
      requireClient(await store.find('client', clientId)),
      knownTo(config, declared),
    )
    printResult(flags, description, description)
  })
}

interface RotateFlags extends DestructiveFlags {
  readonly keepOld?: Seconds
}

/** `lychgate client rotate-secret`: replaces the secret; the old one is accepted as long as --keep-old says. */
async function clientRotateSecret(clientId: string, { keepOld = 0, ...flags }: RotateFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id, name } = requireClient(await store.find('client', clientId))
    const keepUntil = keepOld > 0 ? systemClock() + keepOld : undefined
    const end = keepUntil === undefined ? 'stops working at once' : `works until ${instant(keepUntil)}`
    await confirmOrAbort(
      flags,
      `Replace the secret of ${name ?? id}? The old one ${end}.`,
      'nothing was changed',
    )
    const fresh = systemRandom(32)
    const secret = await store.transact('client', clientId, (client) =>
      rotateClientSecret(client, fresh, operatorContext(), keepUntil),
    )
    const credentials = {
      client_id: clientId,
      client_secret: secret,
      ...(keepUntil !== undefined && { previous_secret_expires_at: keepUntil }),
    }
    printResult(flags, credentials, credentials)
  })
}

/** `lychgate client lock`: locks a client. */
async function clientLock(clientId: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id, name } = requireClient(await store.find('client', clientId))
    const question = `Lock ${name ?? id}? Its tokens are invalid while it is locked.`
    await confirmOrAbort(flags, question, 'nothing was changed')
    const { lockedAt } = await store.transact('client', id, (client) => lockClient(client, operatorContext()))
    printResult(flags, { client_id: id, locked_at: lockedAt }, { locked: id })
  })
}

/** `lychgate client unlock`: unlocks a client. */
async function clientUnlock(clientId: string, flags: OperatorFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id } = requireClient(await store.find('client', clientId))
    await store.transact('client', id, (client) => unlockClient(client, operatorContext()))
    printResult(flags, { client_id: id, locked_at: null }, { unlocked: id })
  })
}

/** `lychgate client remove`: removes a client and every token it has. */
async function clientRemove(clientId: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id, name } = requireClient(await store.find('client', clientId))
    await confirmOrAbort(flags, `Remove ${name ?? id}? All its tokens end.`, 'nothing was removed')
    const context = operatorContext()
    await store.transact('client', id, (client) => removeClient(requireClient(client), context))
    printResult(flags, { client_id: id, removed: true }, { removed: id })
  })
}

/** `lychgate client remove-unused`: removes clients that registered themselves and got no token for this long. */
async function clientRemoveUnused(unused: Seconds, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const context = operatorContext()
    const since = systemClock() - unused
    const isDue = (client: Client) => client.origin === 'registered' && isUnusedSince(client, since)
    const due = (await store.list('client')).filter(isDue)
    if (due.length > 0) {
      const what = due.length === 1 ? 'one client' : `${due.length} clients`
      const question = `Remove ${what} that registered themselves? Their tokens end.`
      await confirmOrAbort(flags, question, 'nothing was removed')
    }
    const removed: string[] = []
    for (const { id } of due) {
      // A client that was used in the meantime stays.
      const isGone = await store.transact('client', id, (client) =>
        client !== undefined && isDue(client) ? removeClient(client, context) : accept(false),
      )
      if (isGone) removed.push(id)
    }
    if (flags.json) printJson({ removed })
    else process.stdout.write(`removed ${removed.length}\n`)
  })
}
