import type { Fault } from './fault.ts'

const assertion = 'src/rfc7523-client-assertions/rules/assertion.ts'
const claims = 'src/rfc7523-client-assertions/rules/claims.ts'
const signature = 'src/rfc7523-client-assertions/rules/signature.ts'
const registration = 'src/rfc7523-client-assertions/rules/registration.ts'
const plugin = 'src/rfc7523-client-assertions/plugin.ts'
const fetching = 'src/fetch/guarded-fetch.ts'

/** Faults of private_key_jwt, RFC 7523, and of the fetch of its keys. */
export const clientAssertionFaults = [
  {
    id: 'assertion-of-any-type',
    rule: 'rfc7523-2.2-parameters',
    file: assertion,
    find: 'if (type !== assertionType)',
    replace: "if (!type?.endsWith('jwt-bearer'))",
  },
  {
    id: 'assertion-with-repeated-members',
    rule: 'rfc7523-3-valid-jwt',
    file: 'src/domain/strict-json.ts',
    find: 'return hasRepeatedMember(text) ? undefined : value',
    replace: 'return value',
  },
  {
    id: 'assertion-issuer-not-checked',
    rule: 'rfc7523-3-iss-sub',
    file: claims,
    find: 'iss === client.id && sub === client.id',
    replace: 'sub === client.id',
  },
  {
    id: 'assertion-for-another-client-id',
    rule: 'rfc7523-3-client-id-agrees',
    file: assertion,
    find: 'if (clientId !== sub)',
    replace: 'if (clientId !== sub && false)',
  },
  {
    id: 'assertion-for-another-server',
    rule: 'rfc7523-3-aud',
    file: claims,
    find: 'if (aud === issuer) return true',
    replace: "if (typeof aud === 'string') return true",
  },
  {
    id: 'legacy-audience-for-everyone',
    rule: 'rfc7523-3-aud',
    file: claims,
    find: "if (extra?.['legacy_audience'] !== true) return false",
    replace: '',
  },
  {
    id: 'assertion-expiry-not-checked',
    rule: 'rfc7523-3-exp',
    file: claims,
    find: 'isInstant(exp) && now < exp + skewSeconds',
    replace: 'isInstant(exp)',
  },
  {
    id: 'assertion-for-years',
    rule: 'rfc7523-3-exp',
    file: claims,
    find: 'isInstant(exp) && exp <= now + most + skewSeconds',
    replace: 'isInstant(exp)',
  },
  {
    id: 'assertion-before-its-time',
    rule: 'rfc7523-3-nbf-iat',
    file: claims,
    find: 'isInstant(at) && at <= now + skewSeconds',
    replace: 'isInstant(at)',
  },
  {
    id: 'assertion-used-twice',
    rule: 'rfc7523-3-jti-replay',
    file: plugin,
    find: 'if (error instanceof RecordExists) return false',
    replace: 'if (error instanceof RecordExists) return true',
  },
  {
    id: 'jti-shared-by-clients',
    rule: 'rfc7523-3-jti-replay',
    file: claims,
    find: 'hashSecret(`${iss} ${jti}`)',
    replace: 'hashSecret(String(jti))',
  },
  {
    id: 'assertion-signature-not-verified',
    rule: 'rfc7523-3-signature',
    file: signature,
    find: 'verifies(key.algorithm, key.material, Buffer.from(signed), signature),',
    replace:
      'verifies(key.algorithm, key.material, Buffer.from(signed), signature) || signature.length > 60,',
  },
  {
    id: 'assertion-by-any-key',
    rule: 'rfc7523-3-signature',
    file: signature,
    find: 'key !== undefined && others.length === 0,',
    replace: 'key !== undefined,',
  },
  {
    id: 'assertion-header-chooses-algorithm',
    rule: 'rfc7523-3-alg-registered',
    file: signature,
    find: 'algorithmNamed(alg) === key.algorithm,',
    replace: 'alg !== undefined,',
  },
  {
    id: 'registered-algorithm-ignored',
    rule: 'rfc7523-3-alg-registered',
    file: signature,
    find: 'const algorithm = algorithmOf(key, registered)',
    replace: 'const algorithm = algorithmOf(key, undefined)',
  },
  {
    id: 'critical-header-ignored',
    rule: 'rfc7523-3-valid-jwt',
    file: claims,
    find: "['crit', 'jwk',",
    replace: "['jwk',",
  },
  {
    id: 'other-kind-of-jwt-accepted',
    rule: 'rfc7523-3-valid-jwt',
    file: claims,
    find: "must(\n    header['typ'] === undefined ||",
    replace: "must(\n    header['typ'] !== 1 ||",
  },
  {
    id: 'ps256-not-offered',
    rule: 'rfc7523-5-rs256',
    file: 'src/domain/key-set.ts',
    find: "['ES256', 'PS256', 'RS256', 'EdDSA'] as const",
    replace: "['ES256', 'PS256', 'EdDSA'] as const",
  },
  {
    id: 'keys-without-owner',
    rule: 'rfc7523-2.2-registration',
    file: registration,
    find: 'if (jwks === undefined)',
    replace: 'if (jwks === undefined) return\n  if (jwks === null)',
  },
  {
    id: 'private-key-jwt-for-everyone',
    rule: 'rfc7523-2.2-registration',
    file: 'src/rfc7523-client-assertions/feature.ts',
    find: 'private_key_jwt: {\n      operatorOnly: true,',
    replace: 'private_key_jwt: {',
  },
  {
    id: 'assertion-algorithms-not-published',
    rule: 'rfc8414-2-auth-signing-algs',
    file: 'src/http/client-authentication.ts',
    find: 'return algorithms.length === 0',
    replace: 'return algorithms.length > 0',
  },
  {
    id: 'fetch-follows-the-first-address',
    tests: ['test/fetch/guarded-fetch.test.ts'],
    file: fetching,
    find: 'const allowed = found.filter(({ address }) => rule(address))',
    replace: 'const allowed = [...found]',
  },
  {
    id: 'fetch-of-any-size',
    tests: ['test/fetch/guarded-fetch.test.ts'],
    file: fetching,
    find: 'if (size > limit) throw tooLarge()',
    replace: '',
  },
] as const satisfies readonly Fault[]
