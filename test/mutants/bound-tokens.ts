import type { Fault } from './fault.ts'

const proof = 'src/domain/dpop-proof.ts'
const guard = 'src/guard/guard.ts'
const rules = 'src/specs/rfc9449-dpop/rules.ts'
const plugin = 'src/specs/rfc9449-dpop/plugin.ts'
const issue = 'src/specs/rfc6749-authorization/issue-tokens.ts'
const grantTypes = 'src/specs/rfc6749-authorization/grant-types.ts'
const twoNodes = ['test/storage/two-nodes.test.ts']
const tests = ['test/conformance/rfc9449-dpop.test.ts']
const scheme = 'src/domain/bearer.ts'
const registration = ['test/conformance/rfc9449-registration.test.ts']
const api = ['test/conformance/rfc9449-resource-server.test.ts']

/** Faults of tokens that are bound to a key, RFC 9449. */
export const boundTokenFaults = [
  {
    id: 'proof-first-of-several',
    tests,
    file: proof,
    find: "fields.length === 1 && !field.includes(',')",
    replace: "fields.length >= 1 && !field.includes(',')",
  },
  {
    id: 'proof-not-stored-with-the-refresh',
    tests: twoNodes,
    file: grantTypes,
    find: 'withWrites(decide(grant), write)',
    replace: 'decide(grant)',
  },
  {
    id: 'proof-unused-by-a-rejected-refresh',
    tests: twoNodes,
    file: grantTypes,
    find: 'return reject(error, write)',
    replace: 'return reject(error)',
  },
  {
    id: 'proof-of-another-type',
    tests,
    file: proof,
    find: "typ === 'dpop+jwt'",
    replace: "typ === 'dpop+jwt' || typ === 'JWT'",
  },
  {
    id: 'proof-with-a-private-key',
    tests,
    file: proof,
    find: '!hasPrivatePart(jwk)',
    replace: '!hasPrivatePart(jwk) || true',
  },
  {
    id: 'proof-by-rs256',
    tests,
    file: proof,
    find: "['ES256', 'PS256', 'EdDSA', 'Ed25519']",
    replace: "['ES256', 'PS256', 'RS256', 'EdDSA', 'Ed25519']",
  },
  {
    id: 'proof-not-verified',
    tests,
    file: proof,
    find: 'verifies(algorithm, object, Buffer.from(jws.signed), jws.signature)',
    replace: 'object !== undefined && verifies !== undefined',
  },
  {
    id: 'proof-for-any-method',
    tests,
    file: proof,
    find: 'htm === method',
    replace: 'htm.toUpperCase() === method || htm !== method',
  },
  {
    id: 'proof-for-any-path',
    tests,
    file: proof,
    find: 'normal === normalizedUrl(other)',
    replace: 'normalizedUrl(other)?.startsWith(normal.slice(0, 12)) === true',
  },
  {
    id: 'proof-url-with-the-host-header',
    tests,
    file: plugin,
    find: 'url: origin + path',
    replace: 'url: `http://${request.host}${path}`',
  },
  {
    id: 'proof-url-as-text',
    tests,
    file: proof,
    find: 'URL.parse(decoded)?.href : undefined',
    replace: 'bare : undefined',
  },
  {
    id: 'proof-of-an-hour-ago',
    tests,
    file: proof,
    find: 'const mostSeconds = 60',
    replace: 'const mostSeconds = 3600',
  },
  {
    id: 'proof-of-tomorrow',
    tests,
    file: proof,
    find: 'iat <= now + skewSeconds && ',
    replace: '',
  },
  {
    id: 'proof-without-jti',
    tests,
    file: proof,
    find: "typeof jti === 'string' && jti !== '' && jti.length <= longestJti",
    replace: 'String(jti).length <= longestJti',
  },
  {
    id: 'proof-used-twice',
    tests,
    file: plugin,
    find: 'if (withNonce) return\n      const used',
    replace: 'if (withNonce || proof.jkt) return\n      const used',
  },
  {
    id: 'proof-known-to-one-process-only',
    tests: ['test/nodes/dpop.test.ts', 'test/process/kill.test.ts'],
    file: plugin,
    find: 'assertFirst(await insertOnce(store, write))',
    replace: 'assertFirst(true)',
  },
  {
    id: 'jti-of-another-second-used-twice',
    tests,
    file: plugin,
    find: 'if (!isNewHere(used, clock())) assertFirst(false)',
    replace: 'isNewHere(used, clock())',
  },
  {
    id: 'proof-forgotten-while-it-is-accepted',
    tests: ['test/domain/dpop-proof.test.ts'],
    file: proof,
    find: 'recent.has(id) || earlier.has(id)',
    replace: 'recent.has(id)',
  },
  {
    id: 'proof-used-twice-at-another-api',
    tests: api,
    file: 'src/guard/dpop.ts',
    find: 'await (remember?.(use) ?? isNewHere(use, now))',
    replace: 'await (remember?.(use) ?? use.expiresAt > now)',
  },
  {
    id: 'proof-of-another-token',
    tests: api,
    file: proof,
    find: 'ath === expected',
    replace: "typeof ath === 'string' && ath.length === expected.length",
  },
  {
    id: 'proof-by-another-key',
    tests: api,
    file: proof,
    find: 'isSameKey(confirmation, { jkt })',
    replace: 'isSameKey(confirmation, { jkt }) || true',
  },
  {
    id: 'bound-token-under-bearer',
    tests: api,
    file: scheme,
    find: 'if (scheme === undefined || confirmation === undefined) return scheme === confirmation',
    replace:
      'if (scheme === undefined) return true\n  if (confirmation === undefined) return scheme === confirmation',
  },
  {
    id: 'bearer-token-under-dpop',
    tests: api,
    file: scheme,
    find: 'if (scheme === undefined || confirmation === undefined) return scheme === confirmation',
    replace:
      'if (confirmation === undefined) return true\n  if (scheme === undefined) return scheme === confirmation',
  },
  {
    id: 'any-nonce-accepted',
    tests,
    file: proof,
    find: 'nonces.accepts(nonce, now)',
    replace: "typeof nonce === 'string' && nonce !== ''",
  },
  {
    id: 'nonce-accepted-for-minutes',
    tests,
    file: proof,
    find: '[-1, 1].some(',
    replace: '[-4, -3, -2, -1, 1].some(',
  },
  {
    id: 'nonce-not-given-on-success',
    tests,
    file: plugin,
    find: "      if (withNonce) reply.header('dpop-nonce', nonces.current(now))\n",
    replace: '',
  },
  {
    id: 'refresh-token-of-a-public-client-not-bound',
    tests,
    file: issue,
    find: "client.authenticationMethod === 'none' ? confirmation : undefined",
    replace: 'undefined',
  },
  {
    id: 'refresh-token-of-a-confidential-client-bound',
    tests,
    file: issue,
    find: "client.authenticationMethod === 'none' ? confirmation : undefined",
    replace: 'confirmation',
  },
  {
    id: 'bound-code-by-any-key',
    tests,
    file: rules,
    find: 'isSameKey(bound, used)',
    replace: "isSameKey(bound, used) || (kind === 'code' && used !== undefined)",
  },
  {
    id: 'bound-code-without-a-proof',
    tests,
    file: rules,
    find: 'isSameKey(bound, used)',
    replace: 'isSameKey(bound, used) || used === undefined',
  },
  {
    id: 'push-by-another-key',
    tests,
    file: rules,
    find: 'proven === undefined || proven === sent',
    replace: 'true',
  },
  {
    id: 'push-not-bound-by-its-proof',
    tests,
    file: plugin,
    find: 'return extraOfProof(proof)',
    replace: 'return extraOfProof(proof) && {}',
  },
  {
    id: 'client-for-bound-tokens-without-a-proof',
    tests,
    file: rules,
    find: "extra?.['dpop_bound_access_tokens'] !== true",
    replace: "extra?.['dpop_bound_access_tokens'] !== 'true'",
  },
  {
    id: 'bound-token-told-as-bearer',
    tests,
    file: 'src/domain/confirmation.ts',
    find: "return found?.[1].tokenType ?? 'N_A'",
    replace: "return found === undefined ? 'N_A' : 'Bearer'",
  },
  {
    id: 'bound-registration-token-under-bearer',
    tests: registration,
    file: 'src/specs/rfc7591-registration/rules.ts',
    find: 'if (!isUnderItsScheme(scheme, client?.registrationKey))',
    replace: 'if (scheme !== undefined && !isUnderItsScheme(scheme, client?.registrationKey))',
  },
  {
    id: 'registration-without-its-key',
    tests: registration,
    file: 'src/specs/rfc7591-registration/client-configuration.ts',
    find: 'if (scheme !== undefined && confirmation !== undefined)',
    replace: 'if (scheme !== undefined && confirmation === undefined)',
  },
  {
    id: 'key-of-a-registration-lost-by-an-update',
    tests: registration,
    file: 'src/clients/members.ts',
    find: '      registrationKey,\n    }),',
    replace: '    }),',
  },
  {
    id: 'initial-token-under-dpop-without-a-proof',
    tests: registration,
    file: 'src/specs/rfc7591-registration/plugin.ts',
    find: 'assertProven(sent, confirmation)',
    replace: '',
  },
  {
    id: 'no-challenge-for-bound-tokens',
    tests: ['test/conformance/oidc-userinfo.test.ts'],
    file: guard,
    find: '...schemes.map((scheme) => bearerChallenge({ scheme })),',
    replace: '',
  },
  {
    id: 'jwt-without-cnf',
    tests,
    file: 'src/domain/jwt-access-token.ts',
    find: '...(confirmation !== undefined && { cnf: confirmation }),',
    replace: '',
  },
] as const satisfies readonly Fault[]
