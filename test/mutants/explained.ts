import type { Explanation } from '../../scripts/mutants/generated.ts'

const accessToken = 'src/domain/access-token.ts'
const authorizationRequest = 'src/domain/authorization-request.ts'
const grant = 'src/domain/grant.ts'
const pkce = 'src/domain/pkce.ts'
const refreshToken = 'src/domain/refresh-token.ts'
const dpopProof = 'src/domain/dpop-proof.ts'
const handle = 'src/domain/handle.ts'
const jws = 'src/domain/jws.ts'
const redirectUri = 'src/domain/redirect-uri.ts'
const clientAuthentication = 'src/domain/client-authentication.ts'
const securityProfile = 'src/specs/fapi2-security-profile/rules.ts'
const durations = 'src/domain/durations.ts'
const knownUnits = 'the form that is checked first has only units with a number of seconds'
const keyTerm = 'src/domain/key-term.ts'

const ofNoClaims = 'of no claims, the rest returns none'
const longPast = 'the time of the server is later than the first second of 1970'
const alwaysRotated =
  'a grant with a refresh token was redeemed or rotated, which set rotatedAt and refreshExpiresAt'
const spelling = 'a text that is base64url of its bytes has 43 characters exactly when these are 32'
const inTheMemory = 'the clock is later than 1970, so the first proof begins a set, whatever the start'
const largerBuffer = 'the buffer is larger, and the same part of it is used'
const negativeAlone = 'the sort of V8 asks only whether a comparison is negative'
const language = 'src/domain/language.ts'
const parameters = 'src/domain/parameters.ts'
const secret = 'src/domain/secret.ts'
const strictJson = 'src/domain/strict-json.ts'
const quicker = 'the bytes of a shorter value are counted for nothing: they are not too many'
const sameMatch = 'one regular expression sets both groups, or neither'

/** The generated mutations that are not tried, because their program does the same. */
export const explainedMutations: readonly Explanation[] = [
  {
    file: authorizationRequest,
    where: 'whyClosed',
    operator: 'changed string',
    text: "'' → 'mutant'",
    reason: 'without a closed scope the check passes, and its description is not used',
  },
  {
    file: authorizationRequest,
    where: 'reachOfClaims',
    operator: 'removed early return',
    text: 'if (claims.userinfo.length + claims.idToken.length === 0) return { claims } → nothing',
    reason: ofNoClaims,
  },
  {
    file: authorizationRequest,
    where: 'reachOfClaims',
    operator: 'changed number',
    text: 'claims.userinfo.length + claims.idToken.length === 0 → claims.userinfo.length + claims.idToken.length === (0 - 1)',
    reason: ofNoClaims,
  },
  ...['(0 + 1)', '(0 - 1)'].flatMap((number): Explanation[] => [
    ...['rotatedAt', 'refreshExpiresAt'].map((name) => ({
      file: refreshToken,
      where: 'refreshHandle',
      operator: 'changed number' as const,
      text: `${name} = 0 → ${name} = ${number}`,
      reason: alwaysRotated,
    })),
    {
      file: accessToken,
      where: 'verifyRefreshToken',
      operator: 'changed number',
      text: `refreshExpiresAt: expiresAt = 0 → refreshExpiresAt: expiresAt = ${number}`,
      reason: longPast,
    },
    {
      file: grant,
      where: 'rotateGrant',
      operator: 'changed number',
      text: `grant.refreshExpiresAt ?? 0 → grant.refreshExpiresAt ?? ${number}`,
      reason: longPast,
    },
    {
      file: grant,
      where: 'isRetry',
      operator: 'changed number',
      text: `grant.rotatedAt ?? 0 → grant.rotatedAt ?? ${number}`,
      reason: alwaysRotated,
    },
    {
      file: grant,
      where: 'ends',
      operator: 'changed number',
      text: `grant.seq > 0 ? grant.expiresAt : 0 → grant.seq > 0 ? grant.expiresAt : ${number}`,
      reason: longPast,
    },
  ]),
  {
    file: grant,
    where: 'isRetry',
    operator: 'removed operand',
    text: 'grant.rotatedAt ?? 0 → grant.rotatedAt',
    reason: alwaysRotated,
  },
  {
    file: grant,
    where: 'rotateGrant',
    operator: 'swapped comparison',
    text: 'seq > grant.seq → seq >= grant.seq',
    reason: 'an equal seq was accepted above',
  },
  {
    file: grant,
    where: 'mintGrantId',
    operator: 'changed number',
    text: 'fresh.copy(bytes, 4, 0, 8) → fresh.copy(bytes, 4, 0, (8 + 1))',
    reason: 'there are 8 bytes to copy, and no ninth',
  },
  {
    file: pkce,
    where: 'isCodeChallenge',
    operator: 'swapped logic',
    text: 'text.length === 43 && bytes.length === 32 → (text.length === 43 || bytes.length === 32)',
    reason: spelling,
  },
  ...['text.length === 43', 'bytes.length === 32'].map(
    (operand): Explanation => ({
      file: pkce,
      where: 'isCodeChallenge',
      operator: 'removed operand',
      text: `text.length === 43 && bytes.length === 32 → ${operand}`,
      reason: spelling,
    }),
  ),
  {
    file: redirectUri,
    where: 'isHttpsRedirect',
    operator: 'removed operand',
    text: "match !== null && isPort(match.groups?.['port']) → match !== null",
    reason: 'URL.canParse rejects a port beyond 65535 too',
  },
  {
    file: redirectUri,
    where: 'splitLoopback',
    operator: 'swapped logic',
    text: 'host === undefined || rest === undefined → (host === undefined && rest === undefined)',
    reason: sameMatch,
  },
  ...['host', 'rest'].map(
    (group): Explanation => ({
      file: redirectUri,
      where: 'splitLoopback',
      operator: 'removed operand',
      text: `host === undefined || rest === undefined → ${group} === undefined`,
      reason: sameMatch,
    }),
  ),
  {
    file: clientAuthentication,
    where: 'noAuthentication',
    operator: 'changed string',
    text: "'client_id' → ''",
    reason: 'of this method only whether it has a parameter is read',
  },
  {
    file: clientAuthentication,
    where: 'authenticateClient',
    operator: 'removed operand',
    text: 'client !== undefined && isMethod → isMethod',
    reason: 'an absent client has no method',
  },
  {
    file: dpopProof,
    where: 'noncesBy',
    operator: 'swapped arithmetic',
    text: 'windowOf(now) + step → windowOf(now) - step',
    reason: 'the steps are 1 and -1',
  },
  {
    file: dpopProof,
    where: 'proofMemory',
    operator: 'changed number',
    text: '[new Set<string>(), new Set<string>(), 0] → [new Set<string>(), new Set<string>(), (0 + 1)]',
    reason: inTheMemory,
  },
  {
    file: handle,
    where: 'keyIdOf',
    operator: 'changed number',
    text: 'prefix.length + 4 → prefix.length + (4 + 1)',
    reason: 'three to five characters have the second byte',
  },
  {
    file: dpopProof,
    where: 'proofMemory',
    operator: 'changed number',
    text: '[new Set<string>(), new Set<string>(), 0] → [new Set<string>(), new Set<string>(), (0 - 1)]',
    reason: inTheMemory,
  },
  {
    file: handle,
    where: 'keyIdOf',
    operator: 'changed number',
    text: 'prefix.length + 4 → prefix.length + (4 - 1)',
    reason: 'three to five characters have the second byte',
  },
  {
    file: 'src/domain/check.ts',
    where: 'nameOf',
    operator: 'removed anchor',
    text: '/^(?:oidc-)?[a-z]+(?:\\d+[a-z]*)?-(?:[\\dA-Z][\\d.]*-)?/ → /(?:oidc-)?[a-z]+(?:\\d+[a-z]*)?-(?:[\\dA-Z][\\d.]*-)?/',
    reason: 'the first match is the beginning of every id',
  },
  {
    file: 'src/domain/claims.ts',
    where: 'known',
    operator: 'changed number',
    text: 'names.length === 0 → names.length === (0 - 1)',
    reason: 'it only saves the list of all claims',
  },
  {
    file: jws,
    where: 'longestDer',
    operator: 'changed number',
    text: '2 + 2 * (2 + 33) → (2 + 1) + 2 * (2 + 33)',
    reason: largerBuffer,
  },
  {
    file: jws,
    where: 'longestDer',
    operator: 'changed number',
    text: '2 * (2 + 33) → (2 + 1) * (2 + 33)',
    reason: largerBuffer,
  },
  {
    file: jws,
    where: 'longestDer',
    operator: 'changed number',
    text: '2 + 33 → (2 + 1) + 33',
    reason: largerBuffer,
  },
  {
    file: jws,
    where: 'longestDer',
    operator: 'changed number',
    text: '2 + 33 → 2 + (33 + 1)',
    reason: largerBuffer,
  },
  {
    file: handle,
    where: 'grantTagOf',
    operator: 'removed call',
    text: 'bytes = undefined → nothing',
    reason: 'the tag is verified again, and takes more memory',
  },
  {
    file: handle,
    where: 'moreOf',
    operator: 'removed early return',
    text: 'if (narrowing === undefined && confirmation === undefined) return undefined → nothing',
    reason: 'no lines are an empty text, which adds no bytes',
  },
  {
    file: securityProfile,
    where: 'assertAuthentication',
    operator: 'changed string',
    text: "'' → 'mutant'",
    reason: 'it stands for an absent proof, and neither text is a JWT',
  },
  {
    file: securityProfile,
    where: 'assertRequest',
    operator: 'changed string',
    text: "'' → 'mutant'",
    reason: 'it stands for an absent scope, of which only whether it has openid is read',
  },
  {
    file: durations,
    where: 'parseDuration',
    operator: 'changed string',
    text: "'' → 'mutant'",
    reason: knownUnits,
  },
  ...['(0 + 1)', '(0 - 1)'].map(
    (number): Explanation => ({
      file: durations,
      where: 'parseDuration',
      operator: 'changed number',
      text: `secondsOf[unit] ?? 0 → secondsOf[unit] ?? ${number}`,
      reason: knownUnits,
    }),
  ),
  {
    file: 'src/domain/known-browser.ts',
    where: 'openKnownBrowser',
    operator: 'changed string',
    text: "'' → 'mutant'",
    reason: 'neither the empty text nor this one has the form of a cookie',
  },
  {
    file: keyTerm,
    where: 'inOrder',
    operator: 'swapped comparison',
    text: 'one.id < other.id → one.id <= other.id',
    reason: 'no two keys of a ring have the same id',
  },
  ...[
    ...['(1 + 1)', '(1 - 1)'].map(
      (number) => `one.id < other.id ? 1 : -1 → one.id < other.id ? ${number} : -1`,
    ),
    '-1 → -(1 + 1)',
  ].map(
    (text): Explanation => ({
      file: keyTerm,
      where: 'inOrder',
      operator: 'changed number',
      text,
      reason: negativeAlone,
    }),
  ),
  {
    file: language,
    where: 'parseAcceptLanguage',
    operator: 'changed string',
    text: "'' → 'mutant'",
    reason: 'split returns one text at least, so the range has no other value',
  },
  {
    file: parameters,
    where: 'parseParameters',
    operator: 'changed number',
    text: 'limits.parameters + 1 → limits.parameters + (1 + 1)',
    reason: 'one part too many is an error, and so are two',
  },
  {
    file: parameters,
    where: 'parseParameters',
    operator: 'swapped comparison',
    text: 'value.length * 3 > limits.parameterBytes → value.length * 3 >= limits.parameterBytes',
    reason: quicker,
  },
  {
    file: parameters,
    where: 'parseParameters',
    operator: 'changed number',
    text: 'value.length * 3 → value.length * (3 + 1)',
    reason: quicker,
  },
  {
    file: parameters,
    where: 'parseParameters',
    operator: 'removed operand',
    text: 'value.length * 3 > limits.parameterBytes && Buffer.byteLength(value) > limits.parameterBytes → Buffer.byteLength(value) > limits.parameterBytes',
    reason: quicker,
  },
  {
    file: parameters,
    where: 'decode',
    operator: 'removed early return',
    text: 'if (!/[%+]/.test(text)) return text → nothing',
    reason: 'printable ASCII without % and + is decoded to itself, and has no NUL',
  },
  {
    file: secret,
    where: 'secretMatches',
    operator: 'changed string',
    text: "'' → 'mutant'",
    reason: 'without a stored hash the result is false for any secret',
  },
  {
    file: strictJson,
    where: 'parseStrictJson',
    operator: 'changed string',
    text: "'' → 'mutant'",
    reason: 'what takes the place of a text has no colon, and only colons are counted',
  },
]
