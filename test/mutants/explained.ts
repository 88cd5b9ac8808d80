import type { Explanation } from '../../scripts/mutants/generated.ts'

const accessToken = 'src/domain/access-token.ts'
const authorizationRequest = 'src/domain/authorization-request.ts'
const grant = 'src/domain/grant.ts'
const pkce = 'src/domain/pkce.ts'
const refreshToken = 'src/domain/refresh-token.ts'
const redirectUri = 'src/domain/redirect-uri.ts'
const clientAuthentication = 'src/domain/client-authentication.ts'

const ofNoClaims = 'of no claims, the rest returns none'
const longPast = 'the time of the server is later than the first second of 1970'
const alwaysRotated =
  'a grant with a refresh token was redeemed or rotated, which set rotatedAt and refreshExpiresAt'
const spelling = 'a text that is base64url of its bytes has 43 characters exactly when these are 32'
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
]
