import type { OperatorClientMembers } from '../../clients/core-members.ts'
import { keysOf } from '../../clients/keys.ts'
import { rejection } from '../../clients/members.ts'
import type { Config } from '../../config/schema.ts'
import { algorithmNamed, algorithmOf } from '../../domain/key-set.ts'
import type { Client } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import type { ClientProfile, Shortcoming } from '../../feature/deps.ts'
import {
  isAccepted,
  isProfiled,
  method,
  mostCodeSeconds,
  profileMember,
  profileName,
  signedFor,
  signingProfileName,
  signsMessages,
} from './rules.ts'

const signingMember = 'token_endpoint_auth_signing_alg'
const requestMember = 'request_object_signing_alg'
const userInfoMember = 'userinfo_signed_response_alg'
const responseMember = 'authorization_signed_response_alg'

/** The profile as an operator sees it: what a client must have, and what it lacks. */
export const clientProfile: ClientProfile = {
  put: changeOf,
  take: (client) => (client.extra?.[profileMember] === profileName ? takenOff(client) : undefined),
  shortcomings,
}

/** The same, for a client that signs its requests and is sent signed responses. */
export const signingProfile: ClientProfile = {
  put: (client) => ({
    ...changeOf(client),
    [profileMember]: signingProfileName,
    require_signed_request_object: true,
    [responseMember]: isAccepted(client.extra?.[responseMember]) ? client.extra?.[responseMember] : 'ES256',
    response_modes: ['jwt'],
  }),
  // Without them it would be kept from plain requests and responses by no profile.
  take: (client) =>
    signsMessages(client)
      ? {
          ...takenOff(client),
          require_signed_request_object: false,
          [responseMember]: '',
          response_modes: [],
        }
      : undefined,
  // What it shares with the other profile is found there.
  shortcomings: () => [],
}

/**
 * Returns what to change about a client so that it conforms to the profile.
 * @throws {OAuthError} `invalid_client_metadata` for a client that authenticates without a key of its own: it has to be
 * added as another one.
 */
function changeOf(client: Client): OperatorClientMembers {
  const { authenticationMethod, extra = {} } = client
  if (authenticationMethod !== method)
    throw rejection(
      `the client authenticates by ${authenticationMethod}; add another with --auth ${method} --jwks FILE`,
      { rule: 'fapi2-5.3.2.1-client-authentication' },
    )
  if (!hasKeys(client))
    throw rejection('the client has no key of its own (jwks or jwks_uri): it trusts another issuer', {
      rule: 'fapi2-5.3.2.1-client-authentication',
    })
  return {
    pkce: 'required',
    id_token_claims: client.idTokenClaims === 'scope' ? 'scope' : 'none',
    id_token_signed_response_alg: isAccepted(client.idTokenSignedResponseAlg)
      ? client.idTokenSignedResponseAlg
      : 'ES256',
    [profileMember]: profileName,
    ...omitUndefined({
      [signingMember]: canSign(client) ? undefined : 'PS256',
      [requestMember]: extra[requestMember] === 'RS256' ? 'PS256' : undefined,
      [userInfoMember]: extra[userInfoMember] === 'RS256' ? 'ES256' : undefined,
      legacy_audience: extra['legacy_audience'] === true ? false : undefined,
    }),
  }
}

/** What both profiles take off: the ID Tokens of a client have the claims that those of others have. */
function takenOff({ idTokenClaims }: Client): OperatorClientMembers {
  return { [profileMember]: '', ...(idTokenClaims === 'none' && { id_token_claims: undefined }) }
}

function hasKeys({ extra }: Client): boolean {
  return extra?.['jwks'] !== undefined || extra?.['jwks_uri'] !== undefined
}

/** Whether a key of the client signs with an algorithm of the profile; keys that have to be fetched may. */
function canSign({ extra = {} }: Client): boolean {
  const registered = algorithmNamed(extra[signingMember])
  if (registered !== undefined) return isAccepted(registered)
  return (
    extra['jwks'] === undefined ||
    keysOf(extra['jwks']).some((key) => isAccepted(algorithmOf(key, undefined)))
  )
}

const set = (id: string, flag: string) => `lychgate client set ${id} ${flag}`
const another = `lychgate client add --auth ${method} --jwks FILE …   (and remove the old one)`

/** What a client may lack, one for each requirement. */
const lacks: readonly {
  readonly said: string
  readonly expected: string
  readonly isLacking: (client: Client) => boolean
  readonly change: (id: string) => string
}[] = [
  {
    said: 'a public client gets no tokens',
    expected: 'confidential clients, FAPI 2.0 Security Profile §5.3.2.1',
    isLacking: ({ authenticationMethod }) => authenticationMethod === 'none',
    change: () => another,
  },
  {
    said: 'a client with a secret cannot authenticate',
    expected: `${method}, FAPI 2.0 Security Profile §5.3.2.1`,
    isLacking: ({ authenticationMethod }) => ![method, 'none'].includes(authenticationMethod),
    change: () => another,
  },
  {
    said: 'a client without a key of its own cannot authenticate',
    expected: 'jwks or jwks_uri, FAPI 2.0 Security Profile §5.3.2.1',
    isLacking: (client) => client.authenticationMethod === method && !hasKeys(client),
    change: (id) => set(id, '--jwks FILE'),
  },
  {
    said: 'a client signs with RS256, so that it cannot authenticate',
    expected: 'PS256, ES256 or EdDSA, FAPI 2.0 Security Profile §5.4.1',
    isLacking: (client) => client.authenticationMethod === method && hasKeys(client) && !canSign(client),
    change: (id) => set(id, '--token-endpoint-auth-signing-alg PS256'),
  },
  {
    said: 'a client may name endpoints as aud, which is not accepted',
    expected: 'the issuer as aud, FAPI 2.0 Security Profile §5.3.2.1',
    isLacking: ({ extra }) => extra?.['legacy_audience'] === true,
    change: (id) => set(id, '--legacy-audience false'),
  },
  {
    said: 'PKCE is optional for a client, and its requests without PKCE are not accepted',
    expected: 'PKCE with S256, FAPI 2.0 Security Profile §5.3.2.2',
    isLacking: ({ pkceOptional }) => pkceOptional,
    change: (id) => set(id, '--pkce required'),
  },
  {
    said: 'a client has ID Tokens or UserInfo signed with RS256, so that it cannot ask for openid',
    expected: 'ES256 or EdDSA, FAPI 2.0 Security Profile §5.4.1',
    isLacking: (client) =>
      client.grantTypes.includes('authorization_code') && !signedFor(client).every(isAccepted),
    change: (id) => set(id, '--id-token-alg ES256'),
  },
]

/** How many clients that registered themselves are named. */
const mostNamed = 5

/** What clients that registered themselves lack. An operator cannot change them, RFC 7592 §2.2. */
function lackingRegistrations(clients: readonly Client[]): Shortcoming | undefined {
  const ids = clients.filter((client) => lacks.some(({ isLacking }) => isLacking(client))).map(({ id }) => id)
  if (ids.length === 0) return undefined
  const more = ids.length - mostNamed
  return {
    said: 'clients that registered themselves get no tokens',
    expected: `${method} with PS256, ES256 or EdDSA, FAPI 2.0 Security Profile §5.3.2.1 and §5.4.1`,
    found: [...ids.slice(0, mostNamed), ...(more > 0 ? [`and ${more} more`] : [])],
    change: [`lychgate registration token create   (and register again by it, with ${method})`],
  }
}

/** Returns what of the profile a configuration and clients fall short of. */
function shortcomings(config: Config, clients: readonly Client[]): readonly Shortcoming[] {
  const profiled = clients.filter((client) => isProfiled(client, config.profile))
  const registered = profiled.filter(({ origin }) => origin === 'registered')
  const concerned = profiled.filter(({ origin }) => origin !== 'registered')
  const ofRegistrations = lackingRegistrations(registered)
  const { codeSeconds } = config.lifetimes
  const ofSettings: Shortcoming = {
    said: `codes of the profile are valid for ${mostCodeSeconds} seconds, whatever the setting says`,
    expected: `at most ${mostCodeSeconds} seconds, FAPI 2.0 Security Profile §5.3.2.1`,
    found: [String(codeSeconds)],
    setting: ['lifetimes.codeSeconds', String(mostCodeSeconds)],
  }
  const isOn = config.profile === profileName || profiled.length > 0
  return [
    ...(isOn && codeSeconds > mostCodeSeconds ? [ofSettings] : []),
    ...lacks.flatMap(({ said, expected, isLacking, change }) => {
      const found = concerned.filter(isLacking).map(({ id }) => id)
      return found.length === 0 ? [] : [{ said, expected, found, change: [...new Set(found.map(change))] }]
    }),
    ...(ofRegistrations === undefined ? [] : [ofRegistrations]),
  ]
}
