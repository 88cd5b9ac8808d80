import { asksForTokens, asksWithoutS256, goesOnHere } from './criteria.ts'
import { inJson, type Lie, type Profile, without } from './lie.ts'

/**
 * This computer, by a name that is http, arrives here, and is no loopback name a client would make an exception for: the
 * IPv4-mapped form of 127.0.0.1.
 */
const mappedLoopback = '[::ffff:7f00:1]'

/** Lies in what is read before anybody is asked: metadata, resource metadata, challenges. */
export const documents: readonly Profile[] = [
  {
    id: 'metadata-other-issuer',
    title: 'the metadata is that of another issuer',
    clause: 'RFC 8414 §3.3',
    ledger: 'rfc8414-3.3-issuer-identical',
    sound: 'does not use it: issuer is not the identifier it requested the document for, RFC 8414 §3.3',
    fooledWhen: goesOnHere,
    lie: inJson('metadata', (members) => ({ ...members, issuer: 'https://issuer.example' })),
  },
  {
    id: 'metadata-issuer-with-slash',
    title: 'the issuer in the metadata ends with a slash, unlike the requested issuer',
    clause: 'RFC 8414 §3.3',
    ledger: 'rfc8414-3.3-issuer-identical',
    sound: 'compares the two character by character, RFC 8414 §4',
    fooledWhen: goesOnHere,
    lie: inJson('metadata', (members) => ({ ...members, issuer: `${members['issuer']}/` })),
  },
  {
    id: 'metadata-without-s256',
    title: 'the metadata offers PKCE with plain only',
    clause: 'RFC 8414 §2',
    ledger: 'rfc8414-2-code-challenge-methods',
    sound: 'stops, or uses S256 anyway; it does not fall back to plain or to no PKCE, RFC 9700 §2.1.1',
    fooledWhen: asksWithoutS256,
    lie: inJson('metadata', (members) => ({ ...members, code_challenge_methods_supported: ['plain'] })),
  },
  {
    id: 'metadata-http-endpoint',
    title: 'the token endpoint is http at an address that is not a loopback name',
    clause: 'RFC 6749 §3.2',
    ledger: 'oidc-disc-3-token-endpoint',
    sound: 'sends no code over http, except to localhost, 127.0.0.1 and [::1]',
    fooledWhen: asksForTokens,
    lie: inJson('metadata', (members) => {
      const endpoint = new URL(String(members['token_endpoint']))
      return {
        ...members,
        token_endpoint: `http://${mappedLoopback}:${endpoint.port || 80}${endpoint.pathname}`,
      }
    }),
  },
  {
    id: 'metadata-without-token-endpoint',
    title: 'the metadata has no token endpoint',
    clause: 'RFC 8414 §2',
    ledger: 'rfc8414-2-token-endpoint',
    sound: 'does not guess one',
    fooledWhen: asksForTokens,
    lie: inJson('metadata', (members) => without(members, 'token_endpoint')),
  },
  {
    id: 'resource-metadata-other-resource',
    title: 'the protected resource metadata is that of another resource',
    clause: 'RFC 9728 §3.3',
    ledger: 'rfc9728-3.3-resource-identical',
    sound: 'does not use it: resource is not the one it requested the document for, RFC 9728 §3.3',
    fooledWhen: goesOnHere,
    lie: inJson('resource-metadata', (members) => ({ ...members, resource: 'https://api.example' })),
  },
  {
    id: 'challenge-foreign-metadata',
    title: 'the challenge of UserInfo and the API points to the metadata of another resource',
    clause: 'RFC 9728 §5.1',
    ledger: 'rfc9728-3.3-resource-matches-request',
    sound: 'does not use it: resource is not the URL it called, RFC 9728 §3.3',
    fooledWhen: goesOnHere,
    lie: foreignMetadata(),
  },
]

const elsewhere = '/elsewhere'

/** The challenge leads there; who fetches the document has been lied to. */
function foreignMetadata(): Lie {
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
