import { isObject } from '../domain/is-object.ts'
import { NotApplicable, NotTestable, type Seen } from './observation.ts'
import type { Wire } from './wire.ts'

/** A metadata document of the server, as it came. */
export interface Document {
  readonly seen: Seen
  readonly members: Readonly<Record<string, unknown>>
}

/** What the server publishes about itself. */
export interface Server {
  readonly issuer: string
  /** RFC 8414. */
  readonly oauth: Document | undefined
  /** OpenID Connect Discovery. */
  readonly openid: Document | undefined
  /** The members of both; those of the protocol that was asked first for count where they differ. */
  readonly metadata: Readonly<Record<string, unknown>>
  /** Returns a member that lists values; undefined if it is absent. */
  readonly list: (member: string) => readonly string[] | undefined
  readonly supports: (member: string, value: string) => boolean
  /**
   * @throws {NotApplicable} if the metadata does not have it.
   */
  readonly endpoint: (name: EndpointName) => string
}

export const endpointNames = [
  'authorization_endpoint',
  'token_endpoint',
  'registration_endpoint',
  'revocation_endpoint',
  'introspection_endpoint',
  'userinfo_endpoint',
  'pushed_authorization_request_endpoint',
  'device_authorization_endpoint',
  'end_session_endpoint',
  'jwks_uri',
] as const
export type EndpointName = (typeof endpointNames)[number]

/**
 * Reads the metadata of an issuer at its two places: RFC 8414 §3 inserts the name before the path, OpenID Connect
 * Discovery §4 appends it.
 * @throws {NotTestable} if there is none.
 */
export async function discover(issuer: string, wire: Wire): Promise<Server> {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  const oauth = await documentAt(`${origin}/.well-known/oauth-authorization-server${path}`, wire)
  const openid = await documentAt(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, wire)
  if (oauth === undefined && openid === undefined)
    throw new NotTestable(
      `${issuer} has no metadata: neither oauth-authorization-server nor openid-configuration`,
    )
  return describe(issuer, oauth, openid)
}

function describe(issuer: string, oauth?: Document, openid?: Document): Server {
  const metadata = { ...openid?.members, ...oauth?.members }
  const list = (member: string) => {
    const value = metadata[member]
    return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : undefined
  }
  return {
    issuer,
    oauth,
    openid,
    metadata,
    list,
    supports: (member, value) => list(member)?.includes(value) ?? false,
    endpoint(name) {
      const value = metadata[name]
      if (typeof value !== 'string') throw new NotApplicable(`the metadata has no ${name}`)
      return value
    },
  }
}

async function documentAt(url: string, wire: Wire): Promise<Document | undefined> {
  const seen = await wire.send({ url, headers: { accept: 'application/json' } })
  const members = membersOf(seen)
  return seen.status === 200 && members !== undefined ? { seen, members } : undefined
}

/** The members of a JSON object in the body; undefined if it is none. */
export function membersOf({ body }: Pick<Seen, 'body'>): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
