import { readFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import type { DeclaredClientMember, IntegrationMembers } from '../clients/core-members.ts'
import { authenticationOf, describeClient } from '../clients/describe.ts'
import { addIntegration, changeIntegration } from '../clients/integration.ts'
import type { JsonObject } from '../clients/members.ts'
import { isLanguageTag, localizableOf } from '../clients/read-members.ts'
import { choicesOf, isTextMember, readTyped } from '../clients/typed-members.ts'
import { KeySetFault } from '../domain/key-set.ts'
import type { Declared } from '../feature/deps.ts'
import { knownTo } from '../feature/known-to.ts'
import { declared } from '../features.ts'
import { systemRandom } from '../system/system.ts'
import { CommandFailed, WrongUsage } from './failure.ts'
import { collect, type OperatorFlags } from './flags.ts'
import { withStore } from './open.ts'
import { operatorContext } from './operator.ts'
import { printResult } from './print.ts'

/** The flags of `add` and `set`: one for each member that an operator sets, and these. */
interface MetadataFlags extends OperatorFlags {
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
  await withStore(flags, async (store, config) => {
    const fresh = { id: systemRandom(16), secret: systemRandom(32) }
    const known = knownTo(config, declared)
    const { client, secret, writes } = addIntegration(membersOf(flags), known, fresh, operatorContext())
    await store.write(...writes).catch(subjectTaken)
    const credentials = { client_id: client.id, ...(secret !== undefined && { client_secret: secret }) }
    printResult(
      flags,
      { ...describeClient(client, known), ...credentials },
      {
        ...credentials,
        client_name: client.name,
        redirect_uris: client.redirectUris,
        introspects: client.introspects,
        token_endpoint_auth_method: authenticationOf(client, declared),
      },
    )
    if (secret !== undefined && !flags.json)
      process.stdout.write('\nSave the secret now: it is stored as a hash and never shown again.\n')
  })
}

/** `lychgate client set`: changes metadata of a client that an operator added; what is not named stays. */
export async function clientSet(clientId: string, flags: MetadataFlags): Promise<void> {
  const change = membersOf(flags)
  if (Object.keys(change).length === 0)
    throw new WrongUsage('nothing to change; name at least one flag, see --help')
  await withStore(flags, async (store, config) => {
    const client = await store
      .transact('client', clientId, (found) =>
        changeIntegration(found, change, knownTo(config, declared), operatorContext()),
      )
      .catch(subjectTaken)
    const description = describeClient(client, knownTo(config, declared))
    printResult(flags, description, description)
  })
}

/** Explains what two clients cannot both have. Compared by name, because its module loads a database driver. */
export function subjectTaken(error: Error): never {
  if (error.name !== 'RecordExists') throw error
  throw new CommandFailed(
    'another client trusts this issuer, subject and audience; an audience of its own tells them apart',
  )
}

/** Returns the members that these flags name; an empty one is undefined: it gets its default back. */
function membersOf(flags: MetadataFlags): IntegrationMembers {
  const localized = (flags.localized ?? []).map(readLocalized)
  // `as`: flagOf has a choice for each member that has one, and readFlagValue the type of its schema.
  return { ...readMemberFlags(flags, settable), ...Object.fromEntries(localized) } as IntegrationMembers
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
  const [, member = '', tag = '', value = ''] = /^(\w+)#([\w-]+)=(.*)$/su.exec(text) ?? []
  const localizable = localizableOf(declared.clientMetadata)
  if (localizable.includes(member) && isLanguageTag(tag)) return [`${member}#${tag}`, value]
  throw new WrongUsage(
    `--localized: must be MEMBER#TAG=TEXT, with a member of ${localizable.join(', ')} and a language tag such as fr`,
  )
}
