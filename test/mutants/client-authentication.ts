import type { Fault } from './fault.ts'

const authentication = 'src/domain/client-authentication.ts'
const secret = 'src/specs/rfc6749-authorization/client-secret.ts'

const ends = ['test/clients/operator-client-ends.test.ts']

/** Faults of client authentication, RFC 6749 §2.3. */
export const clientAuthenticationFaults = [
  {
    id: 'client-secret-not-checked',
    rule: 'rfc6749-4.1.3-authenticate-when-included',
    file: secret,
    find: 'if (secretMatches(secret, client?.secretHash)) return',
    replace: "if (secret !== '' && client?.secretHash !== undefined) return",
  },
  {
    id: 'replaced-secret-never-ends',
    file: secret,
    find: 'now >= previous.expiresAt',
    replace: 'now < 0',
    tests: ends,
  },
  {
    id: 'locked-client-authenticates',
    file: authentication,
    find: 'failed === undefined && client.lockedAt === undefined',
    replace: 'failed === undefined',
    tests: ends,
  },
  {
    id: 'locked-client-keeps-its-tokens',
    file: 'src/storage/rows.ts',
    find: 'row.revokedAt ?? row.userLockedAt ?? row.clientLockedAt',
    replace: 'row.revokedAt ?? row.userLockedAt',
    tests: ends,
  },
  {
    id: 'client-id-alone-authenticates',
    rule: 'rfc6749-2.2-client-id-not-credential',
    file: authentication,
    find: 'client !== undefined && isMethod && failed === undefined',
    replace: "client !== undefined && (method.name === 'none' || (isMethod && failed === undefined))",
  },
  {
    id: 'registered-method-not-enforced',
    rule: 'oidc-core-9-registered-method-enforced',
    file: authentication,
    find: 'client !== undefined && isMethod && failed === undefined',
    replace: 'client !== undefined && failed === undefined',
  },
  {
    id: 'unnamed-method-is-basic-alone',
    rule: 'oidc-core-9-registered-method-enforced',
    file: authentication,
    find: '(client.anySecretMethod && method.usesSecret) === true',
    replace: "(client.anySecretMethod && method.name === 'client_secret_basic') === true",
  },
  {
    id: 'unnamed-method-needs-no-secret',
    rule: 'oidc-core-9-registered-method-enforced',
    file: authentication,
    find: 'client !== undefined && isMethod && failed === undefined',
    replace: 'client !== undefined && isMethod && (failed === undefined || client.anySecretMethod === true)',
  },
  {
    id: 'basic-not-form-decoded',
    rule: 'rfc6749-2.3.1-basic-form-decoding',
    file: secret,
    find: "decodeURIComponent(text.replaceAll('+', ' '))",
    replace: "text.replaceAll('+', ' ')",
  },
  {
    id: 'two-methods-at-once',
    rule: 'rfc6749-2.3-one-auth-method',
    file: authentication,
    find: 'method === noAuthentication,',
    replace: 'method !== other,',
  },
  {
    id: 'unasked-401',
    rule: 'rfc6749-5.2-invalid-client-400-or-401',
    file: authentication,
    find: 'status: isUnauthorized ? 401 : 400',
    replace: 'status: 401',
  },
  {
    id: '401-without-basic-challenge',
    rule: 'rfc6749-5.2-invalid-client-header-401',
    file: authentication,
    find: '...(isUnauthorized && { headers: basicChallenge }),',
    replace: '',
  },
  {
    id: 'credentials-read-from-the-query',
    rule: 'rfc6749-2.3.1-secret-not-in-uri',
    file: 'src/http/client-authentication.ts',
    find: 'const sent = parametersOf(request.body)',
    replace: 'const sent = { ...parametersOf(request.query), ...parametersOf(request.body) }',
  },
  {
    id: 'secret-guessing-not-limited',
    rule: 'rfc6749-2.3.1-brute-force',
    file: 'src/specs/rfc6749-authorization/token.ts',
    find: "{ endpoint: 'token', limit: 'token', repeats",
    replace: "{ endpoint: 'token', repeats",
  },
  {
    id: 'plus-stays-plus',
    rule: 'rfc6749-B-form-encoding',
    file: 'src/domain/parameters.ts',
    find: "const spaced = text.replaceAll('+', ' ')",
    replace: 'const spaced = text',
  },
] as const satisfies readonly Fault[]
