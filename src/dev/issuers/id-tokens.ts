import { keepsTheAccess, usesAnyToken, usesTheTokens } from './criteria.ts'
import { inJson, inTokens, type Members, type Profile, without } from './lie.ts'
import {
  inClaims,
  inIdToken,
  signedByPublicKey,
  signedByStranger,
  swappedKeys,
  unsigned,
  wronglySigned,
} from './sign.ts'

const elsewhere = 'https://issuer.example'
const somebodyElse = 'person_somebody_else'
/** Another client than the one that asks. */
const otherClient = 'client_somebody_else'

/** What is wrong about the signature of the first ID Token. */
const signatures: readonly Profile[] = [
  {
    id: 'id-token-bad-signature',
    title: 'the signature of the ID Token does not verify',
    clause: 'OpenID Connect Core §2',
    ledger: 'oidc-core-2-signed',
    sound: 'verifies it with the keys at jwks_uri, OpenID Connect Core §3.1.3.7 (6)',
    lie: inIdToken(wronglySigned),
  },
  {
    id: 'id-token-alg-none',
    title: 'the ID Token is not signed: alg is none',
    clause: 'OpenID Connect Core §2',
    ledger: 'oidc-core-2-signed',
    sound:
      'accepts only the algorithm it registered, RS256 by default, and never takes it from the token, OpenID Connect Core §3.1.3.7 (7)',
    lie: inIdToken(unsigned),
  },
  {
    id: 'id-token-unknown-kid',
    title: 'the ID Token is signed by a key that is not at jwks_uri',
    clause: 'OpenID Connect Core §10.1',
    ledger: 'oidc-core-10.1-published-key',
    sound:
      'fetches the keys again, and rejects the token if the kid is still missing, OpenID Connect Core §10.1.1',
    lie: inIdToken((jws) => signedByStranger(jws, 'nobody-knows-this-key')),
  },
  {
    id: 'id-token-hmac-with-public-key',
    title: 'the ID Token is signed with HMAC, with the public key as the secret',
    clause: 'OpenID Connect Core §10.1',
    ledger: 'oidc-core-10.1-no-symmetric-public',
    sound: 'accepts only the algorithm it registered, and never uses the key with another one, RFC 8725 §3.1',
    lie: inIdToken((jws, { keys }) => signedByPublicKey(jws, keys)),
  },
].map((profile) => ({ ...profile, fooledWhen: usesTheTokens }))

/** What is wrong about the claims of the first ID Token; its signature is right. */
const claims: readonly Profile[] = [
  {
    id: 'id-token-wrong-iss',
    title: 'iss in the ID Token is another issuer',
    clause: 'OpenID Connect Core §2',
    ledger: 'oidc-core-2-iss',
    sound: 'compares iss with the issuer it discovered, OpenID Connect Core §3.1.3.7 (2)',
    lie: inClaims((found) => ({ ...found, iss: elsewhere })),
  },
  {
    id: 'id-token-wrong-aud',
    title: 'aud in the ID Token is another client',
    clause: 'OpenID Connect Core §2',
    ledger: 'oidc-core-2-aud',
    sound: 'rejects an aud without its own client_id, OpenID Connect Core §3.1.3.7 (3)',
    lie: inClaims((found) => ({ ...found, aud: otherClient })),
  },
  {
    id: 'id-token-second-aud',
    title: 'aud in the ID Token contains a second, untrusted client',
    clause: 'OpenID Connect Core §2',
    ledger: 'oidc-core-2-aud',
    sound: 'rejects audiences it does not trust, OpenID Connect Core §3.1.3.7 (3)',
    lie: inClaims((found) => ({ ...found, aud: [found['aud'], otherClient] })),
  },
  {
    id: 'id-token-wrong-azp',
    title: 'azp in the ID Token is another client',
    clause: 'OpenID Connect Core §2',
    ledger: 'oidc-core-2-azp',
    sound: 'compares azp, if present, with its own client_id, OpenID Connect Core §3.1.3.7 (5)',
    lie: inClaims((found) => ({ ...found, azp: otherClient })),
  },
  {
    id: 'id-token-wrong-nonce',
    title: 'nonce in the ID Token is another value',
    clause: 'OpenID Connect Core §2',
    ledger: 'oidc-core-2-nonce',
    sound: 'compares nonce with the one it sent, OpenID Connect Core §3.1.3.7 (11)',
    lie: inClaims((found) => ('nonce' in found ? { ...found, nonce: `${found['nonce']}0` } : undefined)),
  },
  {
    id: 'id-token-without-nonce',
    title: 'the nonce that was sent is missing from the ID Token',
    clause: 'OpenID Connect Core §2',
    ledger: 'oidc-core-2-nonce',
    sound: 'rejects an ID Token without the nonce it sent, OpenID Connect Core §3.1.3.7 (11)',
    lie: inClaims((found) => without(found, 'nonce')),
  },
  {
    id: 'id-token-expired',
    title: 'the ID Token expired an hour ago',
    clause: 'OpenID Connect Core §2',
    ledger: 'oidc-core-2-exp-iat',
    sound:
      'compares exp with the current time, with a tolerance of a few minutes at most, OpenID Connect Core §3.1.3.7 (9)',
    lie: inClaims(({ iat, ...found }) => ({ ...found, iat, exp: Number(iat) - 3600 })),
  },
  {
    id: 'id-token-without-exp',
    title: 'exp is missing from the ID Token',
    clause: 'OpenID Connect Core §2',
    ledger: 'oidc-core-2-exp-iat',
    sound: 'rejects an ID Token without a required claim',
    lie: inClaims((found) => without(found, 'exp')),
  },
  {
    id: 'id-token-without-sub',
    title: 'sub is missing from the ID Token',
    clause: 'OpenID Connect Core §2',
    ledger: 'oidc-core-2-sub',
    sound: 'rejects an ID Token without a required claim',
    lie: inClaims((found) => without(found, 'sub')),
  },
  {
    id: 'id-token-wrong-at-hash',
    title: 'at_hash in the ID Token belongs to another access token',
    clause: 'OpenID Connect Core §3.1.3.6',
    ledger: 'oidc-core-3.1.3.6-at-hash',
    sound:
      'may compare it with the access token, OpenID Connect Core §3.1.3.8; a client that does not is fooled here, but breaks no rule',
    lie: inClaims((found) => ({ ...found, at_hash: Buffer.alloc(16, 1).toString('base64url') })),
  },
  {
    id: 'id-token-missing',
    title: 'openid was granted, and there is no ID Token',
    clause: 'OpenID Connect Core §3.1.3.3',
    ledger: 'oidc-core-3.1.3.3-id-token-returned',
    sound: 'signs no user in without an ID Token',
    lie: inTokens('authorization_code', (members) => without(members, 'id_token')),
  },
].map((profile) => ({ ...profile, fooledWhen: usesTheTokens }))

const about = (sub: unknown) => (members: Members) => ({ ...members, sub })

/** ID Tokens with a false subject or issuer, and false keys for them. */
export const idTokens: readonly Profile[] = [
  ...signatures,
  ...claims,
  {
    id: 'keys-swapped',
    title: 'after the token response the keys change, but not their kid',
    clause: 'OpenID Connect Core §10.1.1',
    ledger: 'oidc-core-10.1.1-rotation',
    sound: 'rejects the ID Token, which no longer verifies, instead of skipping the check',
    fooledWhen: usesAnyToken,
    lie: inJson('jwks', (members, { conduct }) =>
      conduct.has(({ place, gave }) => place === 'token' && gave.accessToken !== undefined)
        ? swappedKeys(members)
        : undefined,
    ),
  },
  {
    id: 'userinfo-other-sub',
    title: 'UserInfo is about another user',
    clause: 'OpenID Connect Core §5.3.2',
    ledger: 'oidc-core-5.3.2-sub-always',
    sound:
      'compares sub with that of the ID Token, and ignores the response if they differ, OpenID Connect Core §5.3.2',
    fooledWhen: keepsTheAccess,
    lie: inJson('userinfo', about(somebodyElse)),
  },
  {
    id: 'userinfo-without-sub',
    title: 'sub is missing from UserInfo',
    clause: 'OpenID Connect Core §5.3.2',
    ledger: 'oidc-core-5.3.2-sub-always',
    sound: 'ignores a response that does not identify its user',
    fooledWhen: keepsTheAccess,
    lie: inJson('userinfo', (members) => without(members, 'sub')),
  },
]
