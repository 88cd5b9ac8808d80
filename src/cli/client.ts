import { type Command, Option } from 'commander'
import { type ClientOrigin, clientOrigins, type Seconds } from '../domain/model.ts'
import { systemClock } from '../system/system.ts'
import { addClientAccessCommand, addClientClaimsCommand } from './client-access.ts'
import { addClientDocumentCommands } from './client-document.ts'
import { addClientKeyCommands } from './client-key.ts'
import { acceptRemoval, addMetadataFlags, authenticationOf, clientAdd, clientSet } from './client-metadata.ts'
import {
  changesClients,
  clientOperations,
  nameOf,
  ofClient,
  printed,
  readClient,
  readsClients,
} from './client-operations.ts'
import { addClientProfileCommand } from './client-profile.ts'
import { addRecipeFlags } from './client-recipe.ts'
import { lastRejection, linesOf } from './client-rejection.ts'
import { addClientTrustCommands } from './client-trust.ts'
import { codeOf } from './failure.ts'
import { addAnywhereFlags, type ServerFlags } from './files/open-target.ts'
import { addYesFlag, type DestructiveFlags, parseSpan } from './flags.ts'
import { type Json, type Operator, withOperator } from './operate.ts'
import { confirmOrAbort } from './operator.ts'
import { instant, printJson, printList, printResult } from './print.ts'

const addHelp = `
Prints the secret once. The client sends it by the method that --auth names, and without --auth by
client_secret_basic or client_secret_post. ID Tokens are signed with RS256 unless --id-token-alg names another.

Examples:
  lychgate client add --for immich --url https://photos.example.com
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
  lychgate client delete client_x1f8…
  lychgate client delete client_x1f8… --yes
`

const unusedHelp = `
Deletes only self-registered clients. The server itself deletes the ones that never got a token
(lifetimes.unusedClientSeconds), or got none for a long time (lifetimes.idleClientSeconds).

Examples:
  lychgate client list --origin registered --unused 180d
  lychgate client delete-unused 180d --yes
`

/** Adds `lychgate client …`: clients that an operator adds, and a view of self-registered ones. */
export function addClientCommands(program: Command): void {
  const group = program.command('client').description('add, list, show, change and delete clients')
  const command = (name: string, description: string) => group.command(name).description(description)
  const add = command('add', 'add a client with https callbacks, or a resource server')
  addAnywhereFlags(addRecipeFlags(addMetadataFlags(add)), addHelp).action(clientAdd)
  const list = command('list', 'list every client, oldest first, with the days it was added and last used')
    .addOption(new Option('--origin <name>', 'only clients of this origin').choices(clientOrigins))
    .option(
      '--unused <duration>',
      'only clients that were not used for this long: 12h, 30d or 26w',
      parseSpan,
    )
  addAnywhereFlags(list, listHelp).action(clientList)
  const show = command('show <client_id>', 'show what is stored about a client; never its secret')
  addAnywhereFlags(show, '\nExample:\n  lychgate client show client_x1f8…\n').action(clientShow)
  const set = command('set <client_id>', 'change a client that an operator added')
  addAnywhereFlags(acceptRemoval(addMetadataFlags(set)), setHelp).action(clientSet)
  const rotate = command('rotate-secret <client_id>', 'replace the secret and print the new one once').option(
    '--keep-old <duration>',
    'accept the old secret for this long: 12h, 7d or 2w (default: not)',
    parseSpan,
  )
  addAnywhereFlags(addYesFlag(rotate), rotateHelp).action(clientRotateSecret)
  addClientKeyCommands(group)
  addClientTrustCommands(group)
  addClientDocumentCommands(group)
  addClientProfileCommand(group)
  addClientAccessCommand(group)
  addClientClaimsCommand(group)
  const lock = command('lock <client_id>', 'lock a client: its tokens are invalid while it is locked')
  addAnywhereFlags(addYesFlag(lock), lockHelp).action(clientLock)
  const unlock = command('unlock <client_id>', 'unlock a client')
  addAnywhereFlags(unlock, '\nExample:\n  lychgate client unlock client_x1f8…\n').action(clientUnlock)
  const removal = command('delete <client_id>', 'delete a client and its tokens').alias('remove')
  addAnywhereFlags(addYesFlag(removal), removeHelp).action(clientRemove)
  const unused = command('delete-unused', 'delete self-registered clients that are not used')
    .alias('remove-unused')
    .argument('<duration>', 'how long they got no token: 12h, 30d or 26w', parseSpan)
  addAnywhereFlags(addYesFlag(unused), unusedHelp).action(clientRemoveUnused)
}

interface ListFlags extends ServerFlags {
  readonly origin?: ClientOrigin
  readonly unused?: Seconds
}

/** `lychgate client list`: lists every client, or some of them, oldest first. */
async function clientList({ origin, unused, ...flags }: ListFlags): Promise<void> {
  await withOperator(flags, readsClients, async (operator) => {
    const since = unused === undefined ? undefined : systemClock() - unused
    const clients = await listClients(operator, since, origin)
    printList(flags, clients, printed, lineOf)
  })
}

/** Returns the clients of an origin that got no token since then, and existed before. */
async function listClients({ list }: Operator, since: Seconds | undefined, origin?: ClientOrigin) {
  const clients = await list((await clientOperations()).list, {}, { ...(origin && { origin }) })
  return since === undefined ? clients : clients.filter((client) => usedAt(client) < since)
}

/** When it last got a token, or was added if it got none. */
function usedAt({ client_id_issued_at: added, last_used_at: used = added }: Json): Seconds {
  return Number(used)
}

const originTexts: Readonly<Record<string, string>> = {
  integration: 'added by an operator',
  registered: 'self-registered',
  'resource-server': 'API',
} satisfies Record<ClientOrigin, string>

function lineOf(client: Json): string[] {
  const { client_id, origin, client_id_issued_at: added, last_used_at: used, client_name = '' } = client
  const day = (at: unknown) => instant(Number(at)).slice(0, 10)
  const rules = [authenticationOf(client), ...weaknessesOf(client)].join(', ')
  const use = used === undefined ? 'never used' : `used ${day(used)}`
  return [`${client_id}`, originTexts[`${origin}`] ?? '', rules, day(added), use, `${client_name}`]
}

/** Names what an operator locked or switched off for this client. */
function weaknessesOf({ locked_at: lockedAt, pkce, pkce_learned_at: learnedAt, consent }: Json): string[] {
  return [
    ...(lockedAt === undefined ? [] : ['locked']),
    ...(pkce === 'optional' || (pkce === 'auto' && learnedAt === undefined) ? [`PKCE ${pkce}`] : []),
    ...(consent === 'skip' ? ['consent skipped'] : []),
  ]
}

/** `lychgate client show`: shows what is stored about a client; never its secret. */
async function clientShow(clientId: string, flags: ServerFlags): Promise<void> {
  await withOperator(flags, readsClients, async (operator) => {
    const description = printed(await readClient(operator, clientId))
    const rejection = await lastRejection(operator, clientId)
    const last = rejection && { last_rejection: rejection }
    printResult(flags, { ...description, ...last }, { ...description, ...linesOf(rejection) })
  })
}

type ActFlags = ServerFlags & DestructiveFlags

/** `lychgate client rotate-secret`: replaces the secret; the old one is accepted as long as --keep-old says. */
async function clientRotateSecret(
  clientId: string,
  { keepOld = 0, ...flags }: ActFlags & { readonly keepOld?: Seconds },
): Promise<void> {
  await withOperator(flags, changesClients, async (operator) => {
    const name = nameOf(await readClient(operator, clientId))
    const end = keepOld > 0 ? `works until ${instant(systemClock() + keepOld)}` : 'stops working at once'
    const question = `Replace the secret of ${name}? The old one ${end}.`
    await confirmOrAbort(flags, question, 'nothing was changed')
    const { rotate } = await clientOperations()
    const { client_id, client_secret, ...until } = await ofClient(
      operator.perform(rotate, { client_id: clientId }, { keep_old_seconds: keepOld }),
    )
    const credentials = { client_id, client_secret, ...until }
    printResult(flags, credentials, credentials)
  })
}

/** `lychgate client lock`: locks a client. */
async function clientLock(clientId: string, flags: ActFlags): Promise<void> {
  await withOperator(flags, changesClients, async (operator) => {
    const name = nameOf(await readClient(operator, clientId))
    const question = `Lock ${name}? Its tokens are invalid while it is locked.`
    await confirmOrAbort(flags, question, 'nothing was changed')
    const { lock } = await clientOperations()
    const { client_id, locked_at } = await ofClient(operator.perform(lock, { client_id: clientId }))
    printResult(flags, { client_id, locked_at }, { locked: client_id })
  })
}

/** `lychgate client unlock`: unlocks a client. */
async function clientUnlock(clientId: string, flags: ServerFlags): Promise<void> {
  await withOperator(flags, changesClients, async ({ perform }) => {
    const { unlock } = await clientOperations()
    const { client_id } = await ofClient(perform(unlock, { client_id: clientId }))
    printResult(flags, { client_id, locked_at: null }, { unlocked: client_id })
  })
}

/** `lychgate client delete`: deletes a client and every token it has. */
async function clientRemove(clientId: string, flags: ActFlags): Promise<void> {
  await withOperator(flags, changesClients, async (operator) => {
    const client = await readClient(operator, clientId)
    await confirmOrAbort(flags, `Delete ${nameOf(client)}? All its tokens end.`, 'nothing was deleted')
    const { remove } = await clientOperations()
    await ofClient(operator.perform(remove, { client_id: clientId }))
    printResult(flags, { client_id: clientId, removed: true }, { removed: clientId })
  })
}

/** `lychgate client delete-unused`: removes self-registered clients that got no token for this long. */
async function clientRemoveUnused(unused: Seconds, flags: ActFlags): Promise<void> {
  await withOperator(flags, changesClients, async (operator) => {
    const since = systemClock() - unused
    const due = await listClients(operator, since, 'registered')
    if (due.length > 0) {
      const what = due.length === 1 ? 'one client' : `${due.length} clients`
      const question = `Delete ${what} that registered themselves? Their tokens end.`
      await confirmOrAbort(flags, question, 'nothing was deleted')
    }
    const { remove } = await clientOperations()
    const removed: string[] = []
    for (const client of due) {
      const client_id = String(client['client_id'])
      try {
        await operator.perform(remove, { client_id }, undefined, { unused_since: `${since}` })
        removed.push(client_id)
      } catch (error) {
        // A client that was used in the meantime stays.
        if (!['conflict', 'not_found'].includes(codeOf(error) ?? '')) throw error
      }
    }
    if (flags.json) printJson({ removed })
    else process.stdout.write(`removed ${removed.length}\n`)
  })
}
