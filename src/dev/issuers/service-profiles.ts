import { type Alter, inJson, inTokens, remove, set } from './changes.ts'
import {
  demandedAudience,
  obeysTheAudience,
  signsByHmac,
  usesTheRefreshToken,
  usesTheTokens,
} from './criteria.ts'
import { type Profile, profilesOf } from './profile.ts'

/**
 * What concerns clients without a user (RFC 6749 §4.4), and clients that sign instead of sending a secret (RFC 7523).
 */
export const serviceClients: readonly Profile[] = profilesOf(usesTheTokens, {
  'service-refresh-token': {
    ledger: 'rfc6749-4.4.3-no-refresh-token',
    title: 'the response to client credentials has a refresh token',
    sound: 'ignores it, and requests the next token with its own credentials, RFC 6749 §4.4.3',
    fooledWhen: usesTheRefreshToken,
    alter: inTokens(
      'client_credentials',
      set({ refresh_token: 'a refresh token that does not belong here' }),
    ),
  },
  'service-token-type-missing': {
    clause: 'RFC 6749 §7.1',
    ledger: 'rfc6749-5.1-success-shape',
    title: 'token_type is missing from the response to client credentials',
    sound: 'does not use a token of an unknown type, RFC 6749 §7.1',
    alter: inTokens('client_credentials', remove('token_type')),
  },
  'service-without-access-token': {
    clause: 'RFC 6749 §4.4.3',
    ledger: 'rfc6749-4.4.3-access-token-response',
    title: 'the response to client credentials has an id_token in place of the access token',
    sound: 'finds no access token, and does not call the API with anything else, RFC 6749 §5.1',
    fooledWhen: {
      text: 'it calls UserInfo or the API anyway',
      isMet: (_wrong, { place }) => place === 'api' || place === 'userinfo',
    },
    alter: inTokens('client_credentials', ({ access_token: token, ...others }) => ({
      ...others,
      id_token: token,
    })),
  },
  'assertion-hmac-only': {
    clause: 'RFC 8725 §3.1',
    ledger: 'rfc8414-2-auth-signing-algs',
    title: 'the metadata offers only HMAC algorithms for the assertions of clients',
    sound:
      'stops, or signs with the algorithm of its key; it never uses a key as the secret of an HMAC, RFC 8725 §3.1',
    fooledWhen: signsByHmac,
    alter: inJson('metadata', set({ token_endpoint_auth_signing_alg_values_supported: ['HS256', 'none'] })),
  },
  'assertion-other-audience': {
    clause: 'RFC 7523 §3',
    ledger: 'rfc7523bis-4-aud-sole-value',
    title: 'the token endpoint rejects the assertion, and demands one for another server',
    sound: 'signs for the issuer that it discovered alone, whatever an error says, RFC 7523 §3',
    fooledWhen: obeysTheAudience,
    alter: demandOtherAudience(),
  },
})

function demandOtherAudience(): Alter {
  return ({ step, reply }) => {
    const { assertionAudience: audience } = step.sent
    if (step.place !== 'token' || audience === undefined || audience.includes(demandedAudience))
      return undefined
    reply.code(400).header('content-type', 'application/json; charset=utf-8')
    return JSON.stringify({
      error: 'invalid_client',
      error_description: `aud must be ${demandedAudience}`,
    })
  }
}
