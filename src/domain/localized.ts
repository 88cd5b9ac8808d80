import { isTag } from './language.ts'
import type { Client } from './model.ts'
import { omitUndefined } from './omit-undefined.ts'
import type { Resource } from './resource.ts'

/**
 * A member for users in the language of a page (RFC 7591 §2.2): `client_name#fr`, or of a region, `client_name#fr-CA`,
 * else the one without a tag.
 * @param language In lower case.
 */
export function localized(
  members: Readonly<Record<string, unknown>>,
  name: string,
  language: string,
): string | undefined {
  const tagged = Object.keys(members).filter((member) => member.startsWith(`${name}#`))
  const tagOf = (member: string) => member.slice(name.length + 1).toLowerCase()
  const best =
    tagged.find((member) => tagOf(member) === language) ??
    tagged.find((member) => tagOf(member).startsWith(`${language}-`)) ??
    name
  const value = members[best]
  return typeof value === 'string' ? value : undefined
}

/** Whether a member is one of these with a language tag. */
export function isLocalized(member: string, names: readonly string[]): boolean {
  return names.some((name) => member.startsWith(`${name}#`) && isTag(member.slice(name.length + 1)))
}

/** The members of an entry that are one of these with a language tag. */
export function localizedMembers(entry: object, names: readonly string[]): Readonly<Record<string, string>> {
  const members = Object.entries(entry).flatMap(([member, value]) =>
    typeof value === 'string' && isLocalized(member, names) ? [[member, value] as const] : [],
  )
  return Object.fromEntries(members)
}

/** The name and links of a client, in the language of a page, RFC 7591 §2.2. */
export function clientWords(
  { name, localized: tagged, clientUri, policyUri, tosUri }: Client,
  language: string,
): Pick<Client, 'name' | 'clientUri' | 'policyUri' | 'tosUri'> {
  const members = {
    ...tagged,
    client_name: name,
    client_uri: clientUri,
    policy_uri: policyUri,
    tos_uri: tosUri,
  }
  const say = (member: keyof typeof members & string) => localized(members, member, language)
  return omitUndefined({
    name: say('client_name'),
    clientUri: say('client_uri'),
    policyUri: say('policy_uri'),
    tosUri: say('tos_uri'),
  })
}

/** The name of a resource for users, in the language of a page, RFC 9728 §2.1. */
export function resourceName({ name, localized: tagged = {} }: Resource, language: string): string {
  return localized(tagged, 'name', language) ?? name
}
