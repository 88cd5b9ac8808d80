import { type Command, Option } from 'commander'
import type { ClientMetadataMember } from '../../clients/feature-member.ts'
import type { IntegrationRequest } from '../../clients/integration.ts'
import type { JsonObject } from '../../clients/members.ts'
import { clientAuthenticationMethods } from '../../domain/model.ts'
import { clientMembers } from '../../features.ts'
import { WrongUsage } from '../failure.ts'
import type { LocationFlags } from '../open.ts'

/** What an operator says about a client on the command line; `add` and `set` have the same names for it. */
export interface MetadataFlags extends LocationFlags {
  readonly json?: true
  readonly name?: string
  readonly redirectUri?: string[]
  readonly postLogoutRedirectUri?: string[]
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

/** Adds those flags, and one for each member of client metadata that a feature adds. */
export function addMetadataFlags(command: Command): Command {
  for (const [name, member] of Object.entries(clientMembers)) command.addOption(flagOf(name, member))
  return command
    .option('--redirect-uri <uri>', 'https, or loopback; may be repeated', collect)
    .option('--post-logout-redirect-uri <uri>', 'where a logout may lead; may be repeated', collect)
    .addOption(
      new Option('--auth <method>', 'how it authenticates (default: a secret, by basic or post)').choices(
        clientAuthenticationMethods.toReversed(),
      ),
    )
    .addOption(
      new Option('--pkce <rule>', 'optional is for confidential clients only').choices([
        'required',
        'optional',
      ]),
    )
    .addOption(
      new Option(
        '--consent <rule>',
        'ask always, for new scopes only, or never (default: remember; always for public loopback clients)',
      ).choices(['always', 'remember', 'skip']),
    )
    .option('--scope <names>', 'the most it may ask for, separated by spaces (default: everything)')
    .addOption(
      new Option('--id-token-alg <name>', 'signs its ID Tokens').choices(['RS256', 'ES256', 'EdDSA']),
    )
    .option('--resource <uri>', 'a resource server: whose tokens it may introspect; may be repeated', collect)
    .option('--client-uri <url>', 'its website, shown when people are asked')
    .option('--policy-uri <url>', 'its privacy policy, shown as well')
    .option('--tos-uri <url>', 'its terms of service, shown as well')
    .option('--logo-uri <url>', 'its logo, for those who read the registration; never fetched')
    .option('--contact <text>', 'who is responsible for it; may be repeated', collect)
    .option('--localized <member#tag=text>', 'such as client_name#fr=Cours; may be repeated', collect)
}

/** The members of RFC 7591 §2 for users that these flags name; an empty one takes the member away. */
export function descriptionOf(flags: MetadataFlags): JsonObject {
  const said = {
    client_uri: flags.clientUri,
    logo_uri: flags.logoUri,
    policy_uri: flags.policyUri,
    tos_uri: flags.tosUri,
    contacts: flags.contact?.filter((contact) => contact !== ''),
  }
  const named = Object.entries(said).filter(([, value]) => value !== undefined)
  const added = Object.entries(clientMembers).flatMap(([name, member]) => {
    const value = new Map(Object.entries(flags)).get(flagOf(name, member).attributeName())
    return value === undefined ? [] : [[name, member.schema['type'] === 'boolean' ? value === 'true' : value]]
  })
  return Object.fromEntries([...named, ...added, ...(flags.localized ?? []).map(readLocalized)])
}

/** `require_auth_time` as `--require-auth-time true`. */
function flagOf(name: string, { schema }: ClientMetadataMember): Option {
  const flag = new Option(`--${name.replaceAll('_', '-')} <value>`, schema.description)
  return schema['type'] === 'boolean' ? flag.choices(['true', 'false']) : flag
}

const localizable = ['client_name', 'client_uri', 'logo_uri', 'policy_uri', 'tos_uri']

function readLocalized(text: string): readonly [string, string] {
  const [, member = '', tag = '', value = ''] = /^(\w+)#([\w-]+)=(.*)$/su.exec(text) ?? []
  if (localizable.includes(member) && isLanguageTag(tag)) return [`${member}#${tag}`, value]
  throw new WrongUsage(
    `--localized: must be MEMBER#TAG=TEXT, with a member of ${localizable.join(', ')} and a language tag such as fr`,
  )
}

function isLanguageTag(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag).length === 1
  } catch {
    return false
  }
}

function collect(value: string, before: string[] = []): string[] {
  return [...before, value]
}
