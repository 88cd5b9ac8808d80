import { type Alter, inCallback, inJson, remove, replace, set } from './changes.ts'
import {
  asksForTokens,
  asksWithoutS256,
  goesOnHere,
  namesADocument,
  never,
  redeemsTheCode,
} from './criteria.ts'
import { deviceClients } from './device-profiles.ts'
import { keyClients } from './key-profiles.ts'
import { logoutTokens } from './logout-profiles.ts'
import { type Profile, profilesOf } from './profile.ts'
import { requestClients } from './request-profiles.ts'
import { serviceClients } from './service-profiles.ts'
import { idTokens, tokenResponses } from './token-profiles.ts'

const withSlash = (issuer: unknown) => `${issuer}/`

/**
 * The correct issuer: a client that fails here fails for another reason, and being rejected elsewhere proves nothing.
 */
const reference = profilesOf(never, {
  reference: {
    clause: '–',
    title: 'nothing is wrong: every client must succeed',
    sound: 'gets a token, and calls UserInfo or the API with it',
  },
})

/** What a client reads first is wrong: metadata, resource metadata, challenges. */
const documents = profilesOf(goesOnHere, {
  'metadata-other-issuer': {
    ledger: 'rfc8414-3.3-issuer-identical',
    title: 'the metadata is that of another issuer',
    sound: 'does not use it: issuer is not the identifier it requested the document for, RFC 8414 §3.3',
    alter: inJson('metadata', set({ issuer: 'https://issuer.example' })),
  },
  'metadata-issuer-with-slash': {
    ledger: 'rfc8414-3.3-issuer-identical',
    title: 'the issuer in the metadata ends with a slash, unlike the requested issuer',
    sound: 'compares the two character by character, RFC 8414 §4',
    alter: inJson('metadata', replace('issuer', withSlash)),
  },
  'metadata-without-s256': {
    ledger: 'rfc8414-2-code-challenge-methods',
    title: 'the metadata offers PKCE with plain only',
    sound: 'stops, or uses S256 anyway; it does not fall back to plain or to no PKCE, RFC 9700 §2.1.1',
    fooledWhen: asksWithoutS256,
    alter: inJson('metadata', set({ code_challenge_methods_supported: ['plain'] })),
  },
  'metadata-http-endpoint': {
    clause: 'RFC 6749 §3.2',
    ledger: 'oidc-disc-3-token-endpoint',
    title: 'the token endpoint is http at an address that is not a loopback name',
    sound: 'sends no code over http, except to localhost, 127.0.0.1 and [::1]',
    fooledWhen: asksForTokens,
    alter: inJson('metadata', replace('token_endpoint', atMappedLoopback)),
  },
  'metadata-without-token-endpoint': {
    ledger: 'rfc8414-2-token-endpoint',
    title: 'the metadata has no token endpoint',
    sound: 'does not guess one',
    fooledWhen: asksForTokens,
    alter: inJson('metadata', remove('token_endpoint')),
  },
  'metadata-without-documents': {
    ledger: 'cimd-5-advertise',
    title: 'the metadata does not say that a client_id can be the URL of a document',
    sound: 'registers, or uses a client_id that it was given, OAuth Client ID Metadata Document §5',
    fooledWhen: namesADocument,
    alter: inJson('metadata', remove('client_id_metadata_document_supported')),
  },
  'resource-metadata-other-resource': {
    ledger: 'rfc9728-3.3-resource-identical',
    title: 'the protected resource metadata is that of another resource',
    sound: 'does not use it: resource is not the one it requested the document for, RFC 9728 §3.3',
    alter: inJson('resource-metadata', set({ resource: 'https://api.example' })),
  },
  'challenge-foreign-metadata': {
    clause: 'RFC 9728 §5.1',
    ledger: 'rfc9728-3.3-resource-matches-request',
    title: 'the challenge of UserInfo and the API points to the metadata of another resource',
    sound: 'does not use it: resource is not the URL it called, RFC 9728 §3.3',
    alter: foreignMetadata(),
  },
})

/** The authorization response is wrong: a sound client discards it, and the code with it. */
const authorizationResponses = profilesOf(redeemsTheCode, {
  'iss-missing': {
    ledger: 'rfc9207-2-iss-on-success',
    title: 'iss is missing from the authorization response, though the metadata promises it',
    sound: 'rejects a response without iss if the metadata promises one, RFC 9207 §2.4',
    alter: inCallback(remove('iss')),
  },
  'iss-wrong': {
    ledger: 'rfc9207-2-iss-value',
    title: 'iss in the authorization response is another issuer',
    sound: 'compares iss with the issuer of its request, RFC 9207 §2.4',
    alter: inCallback(set({ iss: 'https://issuer.example' })),
  },
  'iss-with-slash': {
    ledger: 'rfc9207-2.3-identical-to-metadata',
    title: 'iss in the authorization response ends with a slash, unlike the issuer',
    sound: 'compares the two character by character, RFC 9207 §2.4',
    alter: inCallback(replace('iss', withSlash)),
  },
  'state-missing': {
    ledger: 'rfc6749-4.1.2-state-exact',
    title: 'state is dropped from the authorization response',
    sound: 'rejects a response without the state it sent, RFC 6749 §10.12',
    alter: inCallback(remove('state')),
  },
  'state-changed': {
    ledger: 'rfc6749-4.1.2-state-exact',
    title: 'state in the authorization response has another value',
    sound: 'rejects a response with another state than it sent, RFC 6749 §10.12',
    alter: inCallback(replace('state', (state) => `${state}0`)),
  },
  'code-in-fragment': {
    ledger: 'rfc6749-4.1.2-code-in-query',
    title: 'the authorization response is in the fragment instead of the query',
    sound: 'finds no code, and ends the flow; it does not look for one in the fragment',
    alter: codeInFragment(),
  },
  'code-twice': {
    ledger: 'rfc6749-3.1-no-duplicate-response-params',
    title: 'the authorization response has two different codes',
    sound: 'rejects a response that repeats a parameter',
    alter: inCallback(replace('code', (code) => [code, similarTo(String(code))])),
  },
  'code-and-error': {
    clause: 'RFC 6749 §4.1.2.1',
    title: 'the authorization response has an error and a code',
    sound: 'treats a response with an error as an error, whatever else it contains',
    alter: inCallback(set({ error: 'access_denied' })),
  },
})

/** Every misbehaving issuer, after the one that behaves. */
export const profiles: readonly Profile[] = [
  ...reference,
  ...documents,
  ...authorizationResponses,
  ...idTokens,
  ...tokenResponses,
  ...serviceClients,
  ...keyClients,
  ...requestClients,
  ...deviceClients,
  ...logoutTokens,
]

/**
 * The same endpoint over http at the IPv4-mapped form of 127.0.0.1, which leads to this computer and is no loopback
 * name that a client would make an exception for.
 */
function atMappedLoopback(endpoint: unknown): string {
  const { port, pathname } = new URL(String(endpoint))
  return `http://[::ffff:7f00:1]:${port || 80}${pathname}`
}

/** Challenges point to a false document, which counts as a wrong response once it is fetched. */
function foreignMetadata(): Alter {
  const elsewhere = '/elsewhere'
  return ({ step, reply, issuer }) => {
    const challenge = reply.getHeader('www-authenticate')
    if (typeof challenge === 'string') {
      reply.header('www-authenticate', challenge.replace(/(resource_metadata="[^"]*)/, `$1${elsewhere}`))
    }
    if (step.place !== 'resource-metadata' || !step.path.endsWith(elsewhere)) return undefined
    reply.code(200).header('content-type', 'application/json; charset=utf-8')
    const resource = 'https://api.example'
    return JSON.stringify({ resource, authorization_servers: [issuer], bearer_methods_supported: ['header'] })
  }
}

function codeInFragment(): Alter {
  return ({ step, body, reply }) => {
    const location = reply.getHeader('location')
    if (step.gave.codes.length === 0 || typeof location !== 'string') return undefined
    reply.header('location', location.replace('?', '#'))
    return body
  }
}

/** Another code of the same form. */
function similarTo(code: string): string {
  const last = code.at(-1) === 'A' ? 'B' : 'A'
  return code.slice(0, -1) + last
}
