import { readFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import type { DeclaredClientMember } from '../clients/core-members.ts'
import type { JsonObject } from '../clients/members.ts'
import { localizableOf, readTagged } from '../clients/read-members.ts'
import { choicesOf, isTextMember, readTyped } from '../clients/typed-members.ts'
import { KeySetFault } from '../domain/key-set.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import type { Declared } from '../feature/deps.ts'
import { declared } from '../features.ts'
import { changesClients, clientOperations, configuredOf, ofClient, printed } from './client-operations.ts'
import { membersOfNew, type RecipeFlags, settingsText } from './client-recipe.ts'
import { WrongUsage } from './failure.ts'
import { collect } from './flags.ts'
import { type Json, withOperator } from './operate.ts'
import { printResult } from './print.ts'

/** The flags of `add` and `set`: one for each member that an operator sets, and these. */
interface MetadataFlags extends RecipeFlags {
  readonly localized?: string[]
}

const settable = Object.fromEntries(
  Object.entries(declared.clientMetadata).filter(([, { isDerived }]) => !isDerived),
)

/** Adds the flags of client metadata. @param required The members without which there is no client. */
export function addMetadataFlags(command: Command, required: readonly string[] = []): Command {
  return addMemberFlags(command, settable, required).option(
    '--localized <member#tag=text>',
    'a translated member, such as client_name#fr=Cours; may be repeated',
    collect,
  )
}

/** Lets an empty text remove the member of a flag that has choices. */
export function acceptRemoval(command: Command): Command {
  for (const option of command.options) {
    const { parseArg, argChoices, variadic } = option
    if (argChoices === undefined || parseArg === undefined) continue
    option.argParser((text: string, before: unknown) => {
      if (text === '') return variadic ? [] : ''
      return parseArg(text, before)
    })
  }
  return command
}

/** Adds a flag for each of these members. */
export function addMemberFlags(
  command: Command,
  members: Declared['clientMetadata'],
  required: readonly string[] = [],
): Command {
  for (const [name, member] of Object.entries(members))
    command.addOption(flagOf(name, member).makeOptionMandatory(required.includes(name)))
  return command
}

/** Returns the values of those flags, by the names of the members. */
export function readMemberFlags(flags: object, members: Declared['clientMetadata']): JsonObject {
  const values = new Map(Object.entries(flags))
  const named = Object.entries(members).flatMap(([name, member]) => {
    const value = values.get(flagOf(name, member).attributeName())
    return value === undefined ? [] : [[name, readFlagValue(member, value)]]
  })
  return Object.fromEntries(named)
}

/** `lychgate client add`: adds a client with https callbacks, or a resource server; its secret is shown once. */
export async function clientAdd(flags: MetadataFlags): Promise<void> {
  const { members, recipe } = await membersOfNew(flags, omitUndefined(membersOf(flags)))
  await withOperator(flags, changesClients, async ({ perform, config }) => {
    const { create } = await clientOperations()
    const client = printed(await perform(create, {}, withName(members)))
    const { client_id, client_secret, client_name, redirect_uris, introspects } = client
    printResult(flags, client, {
      client_id,
      ...omitUndefined({ client_secret }),
      client_name,
      redirect_uris,
      introspects,
      token_endpoint_auth_method: authenticationOf(client),
    })
    if (flags.json) return
    const issuer = config?.issuer ?? flags.server ?? ''
    if (recipe !== undefined) process.stdout.write(settingsText(recipe, issuer, flags, client))
    if (client_secret !== undefined)
      process.stdout.write('\nSave the secret now: it is stored as a hash and never shown again.\n')
  })
}

/** `lychgate client set`: changes metadata of a client that an operator added; what is not named stays. */
export async function clientSet(clientId: string, flags: MetadataFlags): Promise<void> {
  const change = membersOf(flags)
  if (Object.keys(change).length === 0)
    throw new WrongUsage('nothing to change; name at least one flag, see --help')
  await withOperator(flags, changesClients, async ({ edit }) => {
    const { read, replace } = await clientOperations()
    // What is left out gets its default back.
    const client = await ofClient(
      edit(read, replace, { client_id: clientId }, (found) =>
        withName({ ...configuredOf(found), ...change }),
      ),
    )
    const description = printed(client)
    printResult(flags, description, description)
  })
}

/** Without a name there is no client; the decision says so, and not the schema of a request. */
function withName(members: object): object {
  return { client_name: '', ...omitUndefined(members) }
}

/** Names how a client authenticates. */
export function authenticationOf({
  token_endpoint_auth_methods_accepted: accepted,
  token_endpoint_auth_method: method,
}: Json): string {
  return Array.isArray(accepted) ? accepted.join(' or ') : String(method)
}

/** Returns the members that these flags name; an empty one is undefined: it gets its default back. */
function membersOf(flags: MetadataFlags): JsonObject {
  const localized = (flags.localized ?? []).map(readLocalized)
  return { ...readMemberFlags(flags, settable), ...Object.fromEntries(localized) }
}

/** Reads what a flag says about a member. */
function readFlagValue(member: DeclaredClientMember, said: string | readonly string[]): unknown {
  if (typeof said !== 'string') {
    const texts = said.filter((one) => one !== '')
    return texts.length > 0 ? texts : undefined
  }
  if (said === '' || member.readFile === undefined) return readTyped(member, said)
  try {
    return readTyped(member, readFileSync(said, 'utf8'))
  } catch (error) {
    throw new WrongUsage(error instanceof KeySetFault ? `${said} ${error.message}` : `${said} cannot be read`)
  }
}

/** Describes a member as a flag: `require_auth_time` is `--require-auth-time true`. */
function flagOf(name: string, member: DeclaredClientMember): Option {
  const isList = isTextMember(member)
  const value = member.readFile !== undefined ? 'file' : isList ? 'values...' : 'value'
  const { description = '' } = member.schema
  const option = new Option(member.flag ?? `--${name.replaceAll('_', '-')} <${value}>`, description)
  const choices = choicesOf(member, declared)
  if (choices !== undefined) return option.choices(choices)
  if (!isList || option.variadic) return option
  option.description += ' May be repeated.'
  return option.argParser(collect)
}

function readLocalized(text: string): readonly [string, string] {
  const tagged = readTagged(text, declared.clientMetadata)
  if (tagged !== undefined) return tagged
  const localizable = localizableOf(declared.clientMetadata)
  throw new WrongUsage(
    `--localized: must be MEMBER#TAG=TEXT, with a member of ${localizable.join(', ')} and a language tag such as fr`,
  )
}
