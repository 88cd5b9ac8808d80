import { userInfo } from '../domain/claims.ts'
import type { Client, Scope, Seconds, User } from '../domain/model.ts'
import type { Needs } from '../feature/deps.ts'
import type { Seams } from '../feature/seams.ts'

/** A user who uses a protected host. */
export interface HostUser {
  readonly user: User
  readonly client: Client
  readonly scope: Scope
  /** The grant; for an access token, its grant. */
  readonly grantId: string
  readonly authenticatedAt: Seconds
  readonly methods: readonly string[]
}

/** The headers of every response that lets a request pass: the proxy puts all of them in place of those of the request. */
export type IdentityHeaders = Readonly<Record<(typeof headerNames)[number], string>>

export const headerNames = [
  'remote-user',
  'remote-email',
  'remote-name',
  'remote-groups',
  'x-lychgate-assertion',
] as const

/** Those of a request without a user. */
export const noIdentity = Object.fromEntries(headerNames.map((name) => [name, ''])) as IdentityHeaders // all of them

/** The type of an assertion; no token, and nothing else that this server accepts, has it. */
export const assertionType = 'lychgate-assertion+jwt'
const assertionSeconds: Seconds = 120
/** An assertion is sent again for so long: an app gets one that is valid for a minute. */
const reusedSeconds: Seconds = 60
const mostKept = 10_000

/**
 * Returns what says who a user is, by the scopes that were granted. An assertion is signed once a minute for a grant and
 * host, unless what it says has changed.
 */
export function identities(
  seams: Pick<Seams, 'userClaims' | 'grantedClaims'>,
  { service, keys, clock }: Needs<'service' | 'keys' | 'clock'>,
): (of: HostUser) => Promise<IdentityHeaders> {
  const lastOf = new Map<
    string,
    { readonly at: Seconds; readonly text: string; readonly headers: IdentityHeaders }
  >()

  const claimsOf = async ({ user, client, scope, authenticatedAt, methods }: HostUser) => {
    const requested = { userinfo: [], idToken: [] }
    const use = {
      target: 'userinfo',
      userId: user.id,
      clientId: client.id,
      client,
      scope,
      requested,
    } as const
    const granting = seams.grantedClaims.collect(use)
    const claims = seams.userClaims.collect(user) ?? {}
    const all = {
      ...(granting && (await granting)),
      ...userInfo({ id: user.id, claims }, scope, requested, service.scopeClaims),
    }
    const { sub, name, email, email_verified: isVerified, groups = [] } = all
    return {
      sub,
      preferred_username: user.username,
      ...(typeof name === 'string' && { name }),
      // An app takes it for proven, so it is.
      ...(isVerified === true && { email }),
      groups,
      auth_time: authenticatedAt,
      amr: methods,
    }
  }

  return async (of) => {
    const claims = await claimsOf(of)
    const [now, key, text] = [clock(), `${of.client.id} ${of.grantId}`, JSON.stringify(claims)]
    const last = lastOf.get(key)
    if (last?.text === text && now >= last.at && now - last.at < reusedSeconds) return last.headers
    const times = { iat: now, exp: now + assertionSeconds }
    const all = { iss: service.issuer, aud: of.client.id, ...claims, ...times }
    const algorithm = keys.usable(of.client.idTokenSignedResponseAlg)
    const headers = {
      'remote-user': headerText(of.user.username),
      'remote-email': headerText(claims.email),
      'remote-name': headerText(claims.name),
      'remote-groups': headerText(Array.isArray(claims.groups) ? claims.groups.join(',') : ''),
      'x-lychgate-assertion': await keys.sign(algorithm, assertionType, all),
    }
    if (lastOf.size >= mostKept) lastOf.clear()
    lastOf.set(key, { at: now, text, headers })
    return headers
  }
}

/** Returns the UTF-8 bytes of a text, as Node sends the characters of a header; without control characters. */
function headerText(value: unknown): string {
  const text = typeof value === 'string' ? value.replaceAll(/\p{Cc}/gu, '') : ''
  return Buffer.from(text).toString('latin1')
}
