import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { type AssertionChange, type ClientKey, makeClientKey, signAssertion } from './assertions.ts'
import { freePort } from './free-port.ts'

/** A stand-in for GitHub Actions or a Kubernetes cluster: a server fetches its metadata and keys. */
export interface StandInIssuer {
  readonly issuer: string
  /** What it publishes; a test may change it. */
  readonly state: {
    keys: readonly unknown[]
    metadata: Readonly<Record<string, unknown>>
    status: number
    /** The paths of the requests, in order. */
    readonly requests: string[]
  }
  readonly key: ClientKey
  /** Signs a token about a subject, valid for five minutes, for an audience. */
  sign(about: { sub: string; aud: string; now: number }, change?: AssertionChange, by?: ClientKey): string
}

/** Starts one on loopback, which a development server may fetch from. */
export async function startStandInIssuer(t: {
  teardown(end: () => unknown): unknown
}): Promise<StandInIssuer> {
  const issuer = `http://127.0.0.1:${await freePort()}`
  const key = makeClientKey('RS256', 'first')
  const state: StandInIssuer['state'] = {
    keys: [key.jwk],
    metadata: { issuer, jwks_uri: `${issuer}/keys` },
    status: 200,
    requests: [],
  }
  const server = createServer((request, response) => {
    state.requests.push(request.url ?? '')
    response.writeHead(state.status, { 'content-type': 'application/json', 'cache-control': 'max-age=600' })
    response.end(JSON.stringify(request.url === '/keys' ? { keys: state.keys } : state.metadata))
  })
  await new Promise<void>((resolve) => server.listen(Number(new URL(issuer).port), '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return {
    issuer,
    state,
    key,
    sign: ({ sub, aud, now }, { header, claims, text } = {}, by = key) =>
      signAssertion(
        by,
        { id: sub, issuer: aud, now },
        {
          header: { typ: 'JWT', ...header },
          claims: { iss: issuer, jti: randomUUID(), nbf: now - 60, exp: now + 300, ...claims },
          ...(text !== undefined && { text }),
        },
      ),
  }
}
