import { redeemsTheCode } from './criteria.ts'
import { inCallback, type Lie, type Profile } from './lie.ts'

/** Lies in the authorization response: a sound client throws it away, and the code with it. */
export const authorizationResponses: readonly Profile[] = [
  {
    id: 'iss-missing',
    title: 'iss is missing from the authorization response, though the metadata promises it',
    clause: 'RFC 9207 §2',
    ledger: 'rfc9207-2-iss-on-success',
    sound: 'rejects a response without iss if the metadata promises one, RFC 9207 §2.4',
    lie: inCallback((parameters) => parameters.delete('iss')),
  },
  {
    id: 'iss-wrong',
    title: 'iss in the authorization response is another issuer',
    clause: 'RFC 9207 §2',
    ledger: 'rfc9207-2-iss-value',
    sound: 'compares iss with the issuer of its request, RFC 9207 §2.4',
    lie: inCallback((parameters) => parameters.set('iss', 'https://issuer.example')),
  },
  {
    id: 'iss-with-slash',
    title: 'iss in the authorization response ends with a slash, unlike the issuer',
    clause: 'RFC 9207 §2.3',
    ledger: 'rfc9207-2.3-identical-to-metadata',
    sound: 'compares the two character by character, RFC 9207 §2.4',
    lie: inCallback((parameters, issuer) => parameters.set('iss', `${issuer}/`)),
  },
  {
    id: 'state-missing',
    title: 'state is dropped from the authorization response',
    clause: 'RFC 6749 §4.1.2',
    ledger: 'rfc6749-4.1.2-state-exact',
    sound: 'rejects a response without the state it sent, RFC 6749 §10.12',
    lie: inCallback((parameters) => parameters.delete('state')),
  },
  {
    id: 'state-changed',
    title: 'state in the authorization response has another value',
    clause: 'RFC 6749 §4.1.2',
    ledger: 'rfc6749-4.1.2-state-exact',
    sound: 'rejects a response with another state than it sent, RFC 6749 §10.12',
    lie: inCallback((parameters) => {
      const state = parameters.get('state')
      if (state !== null) parameters.set('state', `${state}0`)
    }),
  },
  {
    id: 'code-in-fragment',
    title: 'the authorization response is in the fragment instead of the query',
    clause: 'RFC 6749 §4.1.2',
    ledger: 'rfc6749-4.1.2-code-in-query',
    sound: 'finds no code, and ends the flow; it does not look for one in the fragment',
    lie: codeInFragment(),
  },
  {
    id: 'code-twice',
    title: 'the authorization response has two different codes',
    clause: 'RFC 6749 §3.1',
    ledger: 'rfc6749-3.1-no-duplicate-response-params',
    sound: 'rejects a response that repeats a parameter',
    lie: inCallback((parameters) => parameters.append('code', another(parameters.get('code') ?? ''))),
  },
  {
    id: 'code-and-error',
    title: 'the authorization response has an error and a code',
    clause: 'RFC 6749 §4.1.2.1',
    sound: 'treats a response with an error as an error, whatever else it contains',
    lie: inCallback((parameters) => parameters.set('error', 'access_denied')),
  },
].map((profile) => ({ ...profile, fooledWhen: redeemsTheCode }))

function codeInFragment(): Lie {
  return ({ step, body, reply }) => {
    const location = reply.getHeader('location')
    if (step.gave.codes.length === 0 || typeof location !== 'string') return undefined
    reply.header('location', location.replace('?', '#'))
    return body
  }
}

/** A text of the same form. */
function another(code: string): string {
  const last = code.at(-1) === 'A' ? 'B' : 'A'
  return code.slice(0, -1) + last
}
