import { type Command, Option } from 'commander'
import { addMetadataFlags } from './client/flags.ts'
import { addYesFlag } from './confirm-or-abort.ts'
import { parseSpan } from './durations.ts'
import { addOperatorFlags } from './open.ts'

const addHelp = `
Its secret is shown once. Without --auth it may send the secret by
client_secret_basic or client_secret_post, and with --auth by that method only; ID Tokens are signed with RS256.

Examples:
  lychgate client add --name 'Course app' --redirect-uri https://app.example.com/callback
  lychgate client add --name 'Course API' --resource https://api.example.com
  lychgate client add --name 'Course app' --redirect-uri https://app.example.com/callback --consent skip \\
    --client-uri https://app.example.com --policy-uri https://app.example.com/privacy --localized 'client_name#fr=Cours'
`

const listHelp = `
The last use is told to the day: when it last got a token for an approval, or renewed one.

Examples:
  lychgate client list
  lychgate client list --origin registered --unused 90d
`

const setHelp = `
What is not named stays; a list that is named replaces the one before, an empty text takes the member away. It
counts from the next request on. A client that registered itself changes itself and cannot be set.

Examples:
  lychgate client set client_x1f8… --name 'Course app' --tos-uri https://app.example.com/terms
  lychgate client set client_x1f8… --redirect-uri https://a.example.com/cb --redirect-uri https://b.example.com/cb
  lychgate client set client_x1f8… --localized 'client_name#de=Kurse' --scope ''
`

const rotateHelp = `
Examples:
  lychgate client rotate-secret client_x1f8…
  lychgate client rotate-secret client_x1f8… --yes --json | jq -r .client_secret > secret
`

const removeHelp = `
Examples:
  lychgate client remove client_x1f8…
  lychgate client remove client_x1f8… --yes
`

const unusedHelp = `
Only those that registered themselves; integrations and resource servers stay. The server itself removes those that
never got a token (lifetimes.unusedClientSeconds), or none for very long (lifetimes.idleClientSeconds).

Examples:
  lychgate client list --origin registered --unused 180d
  lychgate client remove-unused 180d --yes
`

/** Adds `lychgate client …`: the clients an operator arranges, and a view of those that registered themselves. */
export function addClientCommands(program: Command): void {
  const group = program.command('client').description('add, list, show, change and remove clients')
  const add = group
    .command('add')
    .description('add a client with https callbacks, or a resource server')
    .requiredOption('--name <text>', 'what people know it as')
  addOperatorFlags(addMetadataFlags(add), addHelp).action(async (flags) =>
    (await import('./client/add.ts')).clientAdd(flags),
  )
  const list = group
    .command('list')
    .description('every client, oldest first, with the day it came and the day of its last use')
    .addOption(
      new Option('--origin <name>', 'only these').choices(['registered', 'integration', 'resource-server']),
    )
    .option('--unused <duration>', 'only those without a use for so long: 12h, 30d or 26w', parseSpan)
  addOperatorFlags(list, listHelp).action(async (flags) =>
    (await import('./client/list.ts')).clientList(flags),
  )
  const show = group
    .command('show <client_id>')
    .description('what is stored about a client; never its secret')
  addOperatorFlags(show, '\nExample:\n  lychgate client show client_x1f8…\n').action(async (id, flags) =>
    (await import('./client/show.ts')).clientShow(id, flags),
  )
  const set = group
    .command('set <client_id>')
    .description('change what an operator said about a client')
    .option('--name <text>', 'what people know it as')
  addOperatorFlags(addMetadataFlags(set), setHelp).action(async (id, flags) =>
    (await import('./client/set.ts')).clientSet(id, flags),
  )
  const rotate = group
    .command('rotate-secret <client_id>')
    .description('a new secret, shown once; the old one is dead at once')
  addOperatorFlags(addYesFlag(rotate), rotateHelp).action(async (id, flags) =>
    (await import('./client/rotate-secret.ts')).clientRotateSecret(id, flags),
  )
  const remove = group.command('remove <client_id>').description('remove a client; its tokens die with it')
  addOperatorFlags(addYesFlag(remove), removeHelp).action(async (id, flags) =>
    (await import('./client/remove.ts')).clientRemove(id, flags),
  )
  const unused = group
    .command('remove-unused')
    .argument('<duration>', 'without a token for so long: 12h, 30d or 26w', parseSpan)
    .description('remove clients that registered themselves and are not used')
  addOperatorFlags(addYesFlag(unused), unusedHelp).action(async (span, flags) =>
    (await import('./client/remove.ts')).clientRemoveUnused(span, flags),
  )
}
