import { createHash, randomUUID } from 'node:crypto'
import type { AssertionChange, ClientKey } from './assertions.ts'
import { signJws } from './assertions.ts'
import { type Fields, form, type Issuer, type TestClient } from './flow.ts'

export const tokenPath = '/api/oauth/token'

/** The request that a proof is for. */
export interface Proven {
  readonly method?: string
  readonly url: string
  readonly now: number
  readonly nonce?: string | undefined
  /** The access token that is sent with it. */
  readonly token?: string | undefined
}

/** Signs a DPoP proof, RFC 9449 §4.2. */
export function signProof(key: ClientKey, proven: Proven, change: AssertionChange = {}): string {
  const { method = 'POST', url, now, nonce, token } = proven
  const { kid: _, ...jwk } = key.jwk
  return signJws(
    key,
    { typ: 'dpop+jwt', alg: key.alg, jwk, ...change.header },
    change.text ?? {
      jti: randomUUID(),
      htm: method,
      htu: url,
      iat: now,
      nonce,
      ...(token !== undefined && { ath: createHash('sha256').update(token).digest('base64url') }),
      ...change.claims,
    },
  )
}

/** The thumbprint of an EC key, RFC 7638 §3. */
export function thumbprintOf({ jwk: { crv, kty, x, y } }: ClientKey): string {
  return createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url')
}

/** A form of a public or confidential client with DPoP headers. */
export function postProven(
  server: Issuer,
  { id, secret }: TestClient,
  path: string,
  fields: Fields,
  ...proofs: readonly string[]
): Promise<Response> {
  const headers = new Headers()
  for (const proof of proofs) headers.append('dpop', proof)
  const own = { client_id: id, ...(secret !== undefined && { client_secret: secret }) }
  return fetch(server.issuer + path, { method: 'POST', body: form({ ...own, ...fields }), headers })
}
