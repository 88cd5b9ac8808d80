import { type Alter, inJson, set } from './changes.ts'
import { signsTheRequestByHmac, signsUserInTwice, usesTheRequestUri } from './criteria.ts'
import { type Profile, profilesOf } from './profile.ts'

/**
 * What concerns clients that push or sign their requests (RFC 9126, RFC 9101), or have users sign in again (RFC
 * 9470).
 */
export const requestClients: readonly Profile[] = profilesOf(usesTheRequestUri, {
  'pushed-expires-at-once': {
    ledger: 'rfc9126-2.2-created',
    title: 'expires_in of a pushed request is 0',
    sound: 'discards the response: expires_in is a positive integer, RFC 9126 §2.2',
    alter: inJson('pushed_authorization_request', set({ expires_in: 0 })),
  },
  'request-object-hmac-only': {
    clause: 'RFC 8725 §3.1',
    ledger: 'rfc9101-10.5-metadata',
    title: 'the metadata offers only HMAC and no signature for request objects',
    sound:
      'stops, or signs with the algorithm of its key; it never uses a key as the secret of an HMAC, RFC 8725 §3.1',
    fooledWhen: signsTheRequestByHmac,
    alter: inJson('metadata', set({ request_object_signing_alg_values_supported: ['HS256', 'none'] })),
  },
  'step-up-endless': {
    clause: 'RFC 9470 §4',
    ledger: 'rfc9470-3-challenge',
    title: 'the API demands a more recent sign-in for every token',
    sound: 'has the user sign in once for it, and gives up if the new token is rejected for the same reason',
    fooledWhen: signsUserInTwice,
    alter: demandSignIn(),
  },
})

function demandSignIn(): Alter {
  return ({ step, reply }) => {
    if (step.place !== 'api' || step.status !== 200) return undefined
    const error = 'insufficient_user_authentication'
    reply.code(401).header('content-type', 'application/json; charset=utf-8')
    reply.header('www-authenticate', `Bearer error="${error}", max_age="60"`)
    return JSON.stringify({ error })
  }
}
