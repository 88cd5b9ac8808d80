import type { Client, SigningAlgorithm } from '../domain/model.ts'
import { type ClientDeclarations, type JsonObject, rejection } from './members.ts'

/** What is read of the metadata of a client: members that have no default may be absent. */
export type ReadMembers = Pick<
  Client,
  'contacts' | 'localized' | 'idTokenSignedResponseAlg' | 'requireAuthTime'
> &
  Partial<Client>

/**
 * Reads the declared members of a client, by their names on the wire. Those that depend on others are left out.
 * @throws {OAuthError} `invalid_client_metadata`
 */
export function readMembers(
  members: JsonObject,
  declared: Pick<ClientDeclarations, 'clientMetadata' | 'responseModes' | 'withoutPasskeys'>,
  offered?: readonly SigningAlgorithm[],
): ReadMembers {
  const { clientMetadata } = declared
  const client: Record<string, unknown> = { localized: readLocalized(members, clientMetadata) }
  const extra: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(clientMetadata)) {
    const value = member.read?.(members, name, offered, declared)
    if (value !== undefined) (member.property === undefined ? extra : client)[member.property ?? name] = value
  }
  // `as`: each member is declared with its property, and the core's are always among them.
  return { ...client, ...(Object.keys(extra).length > 0 && { extra }) } as ReadMembers
}

/** Names the members that may have a language tag, RFC 7591 §2.2. */
export function localizableOf(clientMetadata: ClientDeclarations['clientMetadata']): readonly string[] {
  return Object.entries(clientMetadata).flatMap(([name, { localizable }]) => (localizable ? name : []))
}

/** Reads a member with a language tag as it is typed, `client_name#fr=Cours`. */
export function readTagged(
  text: string,
  clientMetadata: ClientDeclarations['clientMetadata'],
): readonly [name: string, value: string] | undefined {
  const [, member = '', tag = '', value = ''] = /^(\w+)#([\w-]+)=(.*)$/su.exec(text) ?? []
  if (!localizableOf(clientMetadata).includes(member) || !isLanguageTag(tag)) return undefined
  return [`${member}#${tag}`, value]
}

const mostLocalized = 20
/** RFC 5646 §4.4.1: every tag in use is shorter. */
const longestLanguageTag = 35

function readLocalized(
  members: JsonObject,
  clientMetadata: ClientDeclarations['clientMetadata'],
): Readonly<Record<string, string>> {
  const localized: [string, string][] = []
  for (const name of Object.keys(members)) {
    const [plain = '', tag, ...rest] = name.split('#')
    const member = Object.hasOwn(clientMetadata, plain) ? clientMetadata[plain] : undefined
    if (!member?.localizable || tag === undefined || rest.length > 0 || !isLanguageTag(tag)) continue
    const text = member.read?.(members, name)
    if (typeof text === 'string') localized.push([name, text])
  }
  if (localized.length <= mostLocalized) return Object.fromEntries(localized)
  throw rejection(`more than ${mostLocalized} members have a language tag`, {
    rule: 'rfc7591-2.2-language-tags',
  })
}

/** Returns whether `tag` is a language tag (BCP 47) and not too long. */
function isLanguageTag(tag: string): boolean {
  try {
    return tag.length <= longestLanguageTag && Intl.getCanonicalLocales(tag).length === 1
  } catch {
    return false
  }
}
