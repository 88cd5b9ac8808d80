import { type HandleKeys, type HandleKind, handlePrefix, openHandle } from '../../domain/handle.ts'
import { endingOf, grantIdOfJwt } from '../../domain/jwt-access-token.ts'
import { objectOf } from '../json-body.ts'
import type { TokenSight } from './flow.ts'
import { fingerprint } from './redact.ts'

/** A token on the wire, and the id by which a single access token is revoked. */
export interface SeenToken extends TokenSight {
  readonly tokenId?: string
}

const prefixes = Object.values(handlePrefix).join('|')
const anyToken = new RegExp(`\\b(?:${prefixes})[\\w-]+|\\beyJ[\\w-]+\\.[\\w-]+\\.[\\w-]*`, 'g')
const kinds: readonly HandleKind[] = ['code', 'refresh', 'access']

/** Finds the codes, tokens and ID Tokens of this server in these texts, each once. */
export function tokensIn(keys: HandleKeys, ...texts: readonly string[]): readonly SeenToken[] {
  const tokens = new Map<string, SeenToken>()
  for (const text of texts) {
    for (const [token] of text.matchAll(anyToken)) {
      const seen = token.startsWith('eyJ') ? readJwt(token) : readHandle(keys, token)
      if (seen !== undefined) tokens.set(seen.fingerprint, seen)
    }
  }
  return [...tokens.values()]
}

function readHandle(keys: HandleKeys, token: string): SeenToken | undefined {
  const handle = openHandle(keys, token, ...kinds)
  if (handle === undefined) return undefined
  const { kind, grantId, seq, issuedAt, expiresAt, narrowing, tokenId } = handle
  return {
    kind,
    fingerprint: fingerprint(token),
    grantId,
    seq,
    issuedAt,
    expiresAt,
    tokenId,
    ...(narrowing && { scope: narrowing.scope }),
  }
}

/** Reads a JWT without verifying it. */
function readJwt(token: string): SeenToken | undefined {
  const [header, claims] = token
    .split('.', 2)
    .map((part) => objectOf(Buffer.from(part, 'base64url').toString()))
  if (header === undefined || claims === undefined) return undefined
  const { iat, exp } = claims
  const grantId = grantIdOfJwt(claims)
  const isAccessToken = header['typ'] === 'at+jwt' && grantId !== undefined
  return {
    ...(isAccessToken ? { ...endingOf(claims), kind: 'access', grantId } : { kind: 'id' }),
    fingerprint: fingerprint(token),
    ...(typeof iat === 'number' && { issuedAt: iat }),
    ...(typeof exp === 'number' && { expiresAt: exp }),
    jwt: { header, claims },
  }
}
