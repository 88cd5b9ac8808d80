import type { DeclaredClientMember, OperatorClientMembers } from '../../clients/core-members.ts'
import { configuredOf } from '../../clients/describe.ts'
import { rejection } from '../../clients/members.ts'
import { localizableOf, readTagged } from '../../clients/read-members.ts'
import { choicesOf, isTextMember, readTyped, writeTyped } from '../../clients/typed-members.ts'
import { KeySetFault } from '../../domain/key-set.ts'
import { isLocalized } from '../../domain/localized.ts'
import type { Client } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { every, type Parameters, single } from '../../domain/parameters.ts'
import type { Declared } from '../../feature/deps.ts'
import { msg } from '../../pages/i18n/i18n.ts'

/** What an app is, as an administrator chooses it. Each has its own fields. */
export const clientKinds = ['web', 'native', 'machine', 'device', 'api'] as const
export type ClientKind = (typeof clientKinds)[number]

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'
const clientCredentials = 'client_credentials'

/** Returns the kinds that this server can add: some need a grant type of a feature. */
export function offeredKinds({ grantTypes }: Pick<Declared, 'grantTypes'>): readonly ClientKind[] {
  const needed: Partial<Record<ClientKind, string>> = { machine: clientCredentials, device: deviceGrant }
  return clientKinds.filter((kind) => needed[kind] === undefined || Object.hasOwn(grantTypes, needed[kind]))
}

/** Returns which of the kinds a client is. */
export function kindOf({ origin, grantTypes, authenticationMethod }: Client): ClientKind {
  if (origin === 'resource-server') return 'api'
  if (grantTypes.includes(clientCredentials)) return 'machine'
  if (grantTypes.includes(deviceGrant)) return 'device'
  return authenticationMethod === 'none' ? 'native' : 'web'
}

/** What a kind is, as the client model says it: the explanation of each choice is on its page. */
const fixed: Readonly<Record<ClientKind, OperatorClientMembers>> = {
  web: {},
  native: { token_endpoint_auth_method: 'none' },
  machine: { grant_types: [clientCredentials] },
  device: { token_endpoint_auth_method: 'none', grant_types: [deviceGrant, 'refresh_token'] },
  api: {},
}

/** The members with a field made for them, and their labels. The others are in a list. */
const labels = {
  client_name: msg('admin.name'),
  redirect_uris: msg('admin.client.redirects'),
  post_logout_redirect_uris: msg('admin.client.postLogout'),
  pkce: msg('admin.client.pkce'),
  consent: msg('admin.client.consent'),
  scope: msg('admin.client.scope'),
  resources: msg('admin.client.resources'),
  client_uri: msg('consent.website'),
  policy_uri: msg('consent.privacy'),
  tos_uri: msg('consent.terms'),
}
type Labelled = keyof typeof labels

/** The members that have their own fields, which this kind of client does not. */
const without: Readonly<Record<ClientKind, readonly string[]>> = {
  web: ['resources'],
  native: ['pkce', 'resources'],
  machine: atBrowser(),
  device: [...atBrowser(), 'resources'],
  api: [...atBrowser(), 'scope'],
}

function atBrowser(): readonly Labelled[] {
  return [
    'redirect_uris',
    'post_logout_redirect_uris',
    'pkce',
    'consent',
    'client_uri',
    'policy_uri',
    'tos_uri',
  ]
}

/** The members that another page changes. */
const elsewhere: readonly string[] = ['allowed_groups']

const fieldNames: Readonly<Record<string, string>> = { client_name: 'name', resources: 'resource' }
const fieldOf = (member: string) => fieldNames[member] ?? member

/** The fields that are several check boxes. */
const boxes: readonly string[] = ['scope', 'resources']
export const repeatedClientFields = boxes.map(fieldOf)

/** The field for members with a language tag, one in a line: `client_name#de=Kurse`. */
const taggedField = 'localized'

/** A field by which a form says that it has the list of the other members. */
const listMark = 'listed'

/** The members of the form, as they were typed. */
export type TypedClient = Readonly<Record<string, string | readonly string[]>>

/** A member in the list of those without a field made for them. */
export interface ListedMember {
  readonly name: string
  readonly description: string
  readonly choices?: readonly string[]
  readonly isLong: boolean
}

/** The form of a client, with a field for every member that an operator sets. */
export function clientForm(declared: Declared) {
  const listed = Object.entries(declared.clientMetadata).filter(
    ([name, { isDerived }]) => !isDerived && !Object.hasOwn(labels, name) && !elsewhere.includes(name),
  )
  const localizable = localizableOf(declared.clientMetadata)
  const members = [...Object.keys(labels), ...listed.map(([name]) => name), taggedField]
  const textsOf = (text: string) => text.split(/\s+/).filter((line) => line !== '')
  const typedValue = (name: string, typed: string | readonly string[] = ''): unknown => {
    if (name === 'scope') return [typed].flat().join(' ')
    if (typeof typed !== 'string') return typed
    const member = declared.clientMetadata[name]
    if (member === undefined || typed === '') return undefined
    if (isTextMember(member)) return linesOf(name, typed)
    try {
      return readTyped(member, typed)
    } catch (error) {
      throw rejection(`${name} ${error instanceof KeySetFault ? error.message : 'cannot be read'}`)
    }
  }
  const linesOf = (name: string, text: string) =>
    Object.hasOwn(labels, name) ? textsOf(text) : text.split('\n').flatMap((line) => line.trim() || [])
  const taggedOf = (configured: object) =>
    Object.entries(configured).filter(([name]) => isLocalized(name, localizable))
  const readTaggedLine = (line: string) => {
    const tagged = readTagged(line, declared.clientMetadata)
    if (tagged !== undefined) return tagged
    throw rejection(`${taggedField} must have lines such as client_name#de=Kurse: ${localizable.join(', ')}`)
  }
  /** Returns the members with a language tag; those that the form does not have any more end. */
  const changeOfTagged = (typed: TypedClient[string] | undefined, before: object) => {
    if (typeof typed !== 'string') return {}
    const ending = taggedOf(before).map(([name]) => [name, ''])
    return Object.fromEntries([...ending, ...linesOf(taggedField, typed).map(readTaggedLine)])
  }
  /** Returns what the form changes about a client of a kind: what the form of the kind does not have stays. */
  const changeOf = (kind: ClientKind, typed: TypedClient, before: object = {}): OperatorClientMembers => ({
    ...Object.fromEntries(
      members
        .filter((name) => name in typed && name !== taggedField && !without[kind].includes(name))
        .map((name) => [name, typedValue(name, typed[name])]),
    ),
    ...changeOfTagged(typed[taggedField], before),
  })
  const readMember = (form: Parameters, name: string) =>
    boxes.includes(name) ? every(form, fieldOf(name)) : (single(form, fieldOf(name)) ?? '').trim()
  /** Reads the form. A sender that does not know the list leaves its members as they are. */
  const read = (form: Parameters): TypedClient => {
    const sent = single(form, listMark) === undefined ? Object.keys(labels) : members
    return Object.fromEntries(sent.map((name) => [name, readMember(form, name)]))
  }
  /** Returns what the form shows about the metadata of a client. */
  const typedOf = (configured: OperatorClientMembers): TypedClient => {
    const typed = members.map((name) => [name, writeTyped(configured[name])])
    const { scope = '', resources = [] } = configured
    const tagged = taggedOf(configured).map(([name, value]) => `${name}=${value}`)
    return {
      ...Object.fromEntries(typed),
      scope: textsOf(scope),
      resources,
      [taggedField]: tagged.join('\n'),
    }
  }
  const formOf = (client: Client) => typedOf(configuredOf(client))
  // What is read from a file could be a private key, by mistake.
  const isKept = ([, { readFile }]: (typeof listed)[number]) => readFile === undefined
  const unkept = listed.filter((one) => !isKept(one)).map(([name]) => name)
  return {
    /** The fields with their labels. None is for a secret. */
    fields: {
      ...Object.fromEntries(Object.entries(labels).map(([name, label]) => [fieldOf(name), label])),
      ...Object.fromEntries(listed.filter(isKept).map(([name]) => [name, name])),
      [taggedField]: taggedField,
      [listMark]: undefined,
    },
    listed: [
      ...listed.map(([name, member]) => listedOf(name, member, declared)),
      { name: taggedField, isLong: true, description: taggedHelp(localizable) },
    ],
    changeOf,
    read,
    typedOf,
    formOf,
    /** Returns what a form shows that comes back for a correction, or after a sign-in. */
    typedAgain(client: Client, form: Parameters): TypedClient {
      const [shown, typed] = [formOf(client), read(form)]
      const isGone = (name: string) =>
        typed[name] === undefined || (typed[name] === '' && unkept.includes(name))
      return Object.fromEntries(members.map((name) => [name, (isGone(name) ? shown : typed)[name] ?? '']))
    },
    /** Returns what a new client of a kind is. */
    requestFor: (kind: ClientKind, typed: TypedClient): OperatorClientMembers => ({
      ...fixed[kind],
      ...omitUndefined(changeOf(kind, typed)),
    }),
  }
}

function taggedHelp(localizable: readonly string[]): string {
  return `Texts in other languages (RFC 7591 §2.2), one in a line, such as client_name#de=Kurse: ${localizable.join(', ')}.`
}

function listedOf(name: string, member: DeclaredClientMember, declared: Declared): ListedMember {
  const { type, description = '' } = member.schema
  const choices = isTextMember(member) ? undefined : choicesOf(member, declared)
  return { name, description, isLong: ['array', 'object'].includes(type), ...(choices && { choices }) }
}
