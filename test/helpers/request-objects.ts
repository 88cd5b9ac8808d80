import { type AssertionChange, type ClientKey, signAssertion } from './assertions.ts'
import { authorizationUrl, type Fields, type TestClient } from './flow.ts'
import type { TestNode } from './server.ts'

/** What a test changes about a request object; undefined leaves a member out. */
export type RequestChange = Pick<AssertionChange, 'header' | 'text'> & {
  readonly claims?: Readonly<Record<string, unknown>>
}

/** Signs the authorization request of a client, RFC 9101 §4: valid for a minute, with every usual parameter. */
export function signRequest(
  key: ClientKey,
  client: TestClient,
  server: Pick<TestNode, 'issuer'> & { now(): number },
  { header, claims, text }: RequestChange = {},
): string {
  const usual = Object.fromEntries(new URL(authorizationUrl(server, client)).searchParams)
  const now = server.now()
  const whole = { iss: client.id, aud: server.issuer, exp: now + 60, nbf: now, iat: now, ...usual, ...claims }
  return signAssertion(
    key,
    { id: client.id, issuer: server.issuer, now },
    { header: { typ: 'oauth-authz-req+jwt', ...header }, text: text ?? JSON.stringify(whole) },
  )
}

/** The URL of an authorization request with `client_id` and these parameters alone. */
export function bareUrl(server: Pick<TestNode, 'issuer'>, client: TestClient, fields: Fields): string {
  const query = new URLSearchParams({ client_id: client.id })
  for (const [name, value] of Object.entries(fields)) {
    query.delete(name)
    for (const each of [value ?? []].flat()) query.append(name, each)
  }
  return `${server.issuer}/oauth/authorize?${query}`
}
