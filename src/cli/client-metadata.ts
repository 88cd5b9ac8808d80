import { readFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { authenticationOf, describeClient } from '../clients/describe.ts'
import { addIntegration, changeIntegration } from '../clients/integration.ts'
import type { DeclaredClientMember } from '../clients/integration-members.ts'
import { integrationDefaults } from '../clients/integration-members.ts'
import type { IntegrationChange, IntegrationRequest } from '../clients/integration-request.ts'
import type { JsonObject } from '../clients/members.ts'
import { isLanguageTag, localizableMembers } from '../clients/metadata.ts'
import { auditEvent } from '../domain/audit.ts'
import { KeySetFault } from '../domain/key-set.ts'
import { signingAlgorithms } from '../domain/key-term.ts'
import { consentRules } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import { parseScope } from '../domain/scope.ts'
import type { Declared } from '../feature/deps.ts'
import { knownTo } from '../feature/known-to.ts'
import { declared } from '../features.ts'
import { systemClock, systemRandom } from '../system/system.ts'
import { CommandFailed, WrongUsage } from './failure.ts'
import { collect, type OperatorFlags } from './flags.ts'
import { withStore } from './open.ts'
import { operatorContext } from './operator.ts'
import { printResult } from './print.ts'

/** The flags of `add` and `set`. */
interface MetadataFlags extends OperatorFlags {
  readonly name?: string
  readonly redirectUri?: string[]
  readonly postLogoutRedirectUri?: string[]
  readonly grantType?: string[]
  readonly auth?: IntegrationRequest['authenticationMethod']
  readonly pkce?: IntegrationRequest['pkce']
  readonly consent?: IntegrationRequest['consent']
  readonly scope?: string
  readonly idTokenAlg?: IntegrationRequest['idTokenSignedResponseAlg']
  readonly resource?: string[]
  readonly clientUri?: string
  readonly logoUri?: string
  readonly policyUri?: string
  readonly tosUri?: string
  readonly contact?: string[]
  readonly localized?: string[]
}

/** Adds the flags of client metadata, including the members that features declare. */
export function addMetadataFlags(command: Command): Command {
  const choice = (flags: string, description: string, values: readonly string[]) =>
    new Option(flags, description).choices(values)
  return addMemberFlags(command, declared.clientMetadata)
    .option('--redirect-uri <uri>', 'an https or loopback redirect URI; may be repeated', collect)
    .option(
      '--post-logout-redirect-uri <uri>',
      'an allowed redirect URI after logout; may be repeated',
      collect,
    )
    .addOption(
      choice(
        '--auth <method>',
        'how the client authenticates (default: a secret, by basic or post)',
        Object.keys(declared.clientAuthentication).reverse(),
      ),
    )
    .addOption(
      choice(
        '--grant-type <names...>',
        'the allowed grant types (default: authorization_code and refresh_token)',
        Object.keys(declared.grantTypes),
      ),
    )
    .addOption(
      choice('--pkce <rule>', 'whether PKCE is required; optional for confidential clients only', [
        'required',
        'optional',
      ]),
    )
    .addOption(
      choice(
        '--consent <rule>',
        'ask the user always, for new scopes only, or never (default: remember; always for public loopback clients)',
        consentRules,
      ),
    )
    .option('--scope <names>', 'the scopes it may request, separated by spaces (default: all)')
    .addOption(choice('--id-token-alg <name>', 'the algorithm that signs its ID Tokens', signingAlgorithms))
    .option(
      '--resource <uri>',
      'an API: whose tokens a resource server may introspect, or for which client_credentials gets tokens; may be repeated',
      collect,
    )
    .option('--client-uri <url>', 'its website, shown on the consent page')
    .option('--policy-uri <url>', 'its privacy policy, shown on the consent page')
    .option('--tos-uri <url>', 'its terms of service, shown on the consent page')
    .option(
      '--logo-uri <url>',
      'its logo, a PNG, JPEG or WebP image of 64 KiB at most, shown on the consent page',
    )
    .option('--contact <text>', 'a contact of the client, such as an email address; may be repeated', collect)
    .option(
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
export function addMemberFlags(command: Command, members: Declared['clientMetadata']): Command {
  for (const [name, member] of Object.entries(members)) command.addOption(flagOf(name, member))
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
export async function clientAdd(flags: MetadataFlags & { readonly name: string }): Promise<void> {
  await withStore(flags, async (store, config) => {
    const fresh = { id: systemRandom(16), secret: systemRandom(32) }
    const request = {
      ...integrationDefaults,
      ...omitUndefined(changeOf(flags)),
      name: flags.name,
    }
    const { client, secret, writes } = addIntegration(
      request,
      knownTo(config, declared),
      fresh,
      systemClock(),
    )
    const event = auditEvent('client-added', operatorContext(), { clientId: client.id, name: flags.name })
    await store.write(...writes, event).catch(subjectTaken)
    const credentials = { client_id: client.id, ...(secret !== undefined && { client_secret: secret }) }
    printResult(
      flags,
      { ...describeClient(client, knownTo(config, declared)), ...credentials },
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
  const change = changeOf(flags)
  if (Object.keys(omitUndefined(change)).length === 0)
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

function changeOf(flags: MetadataFlags): IntegrationChange {
  const description = descriptionOf(flags)
  const removed: (keyof IntegrationRequest)[] = []
  const chosen = <T extends { readonly length: number }>(
    name: keyof IntegrationRequest,
    value: T | undefined,
  ) => {
    if (value?.length !== 0) return value
    removed.push(name)
    return undefined
  }
  const choices = {
    authenticationMethod: chosen('authenticationMethod', flags.auth),
    grantTypes: chosen('grantTypes', flags.grantType),
    pkce: chosen('pkce', flags.pkce),
    consent: chosen('consent', flags.consent),
    idTokenSignedResponseAlg: chosen('idTokenSignedResponseAlg', flags.idTokenAlg),
  }
  return {
    name: flags.name,
    redirectUris: flags.redirectUri?.filter((uri) => uri !== ''),
    postLogoutRedirectUris: flags.postLogoutRedirectUri?.filter((uri) => uri !== ''),
    ...choices,
    scope: flags.scope === undefined ? undefined : parseScope(flags.scope),
    resources: flags.resource?.filter((uri) => uri !== ''),
    description: Object.keys(description).length === 0 ? undefined : description,
    ...(removed.length > 0 && { removed }),
  }
}

/** Returns the members of RFC 7591 §2 for users that these flags name; an empty one removes the member. */
function descriptionOf(flags: MetadataFlags): JsonObject {
  const named = omitUndefined({
    client_uri: flags.clientUri,
    logo_uri: flags.logoUri,
    policy_uri: flags.policyUri,
    tos_uri: flags.tosUri,
    contacts: flags.contact?.filter((contact) => contact !== ''),
  })
  const localized = (flags.localized ?? []).map(readLocalized)
  return { ...named, ...readMemberFlags(flags, declared.clientMetadata), ...Object.fromEntries(localized) }
}

/** Reads what a flag says about the member of a feature; an empty file name removes it. */
function readFlagValue(member: DeclaredClientMember, text: string | readonly string[]): unknown {
  if (typeof text !== 'string') return text.filter((one) => one !== '')
  const { schema, readFile } = member
  if (text === '') return schema['type'] === 'boolean' ? undefined : text
  if (readFile === undefined) return schema['type'] === 'boolean' ? text === 'true' : text
  try {
    return readFile(readFileSync(text, 'utf8'))
  } catch (error) {
    throw new WrongUsage(error instanceof KeySetFault ? `${text} ${error.message}` : `${text} cannot be read`)
  }
}

/** Describes the member of a feature as a flag: `require_auth_time` is `--require-auth-time true`. */
function flagOf(name: string, { schema, readFile }: DeclaredClientMember): Option {
  const value = readFile !== undefined ? 'file' : isTextList(schema) ? 'values...' : 'value'
  const flag = new Option(`--${name.replaceAll('_', '-')} <${value}>`, schema.description)
  return schema['type'] === 'boolean' ? flag.choices(['true', 'false']) : flag
}

function isTextList(schema: DeclaredClientMember['schema']): boolean {
  return schema['type'] === 'array' && schema['items']?.type === 'string'
}

function readLocalized(text: string): readonly [string, string] {
  const [, member = '', tag = '', value = ''] = /^(\w+)#([\w-]+)=(.*)$/su.exec(text) ?? []
  if (localizableMembers.includes(member) && isLanguageTag(tag)) return [`${member}#${tag}`, value]
  throw new WrongUsage(
    `--localized: must be MEMBER#TAG=TEXT, with a member of ${localizableMembers.join(', ')} and a language tag such as fr`,
  )
}
