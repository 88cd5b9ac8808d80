import type { JsonObject } from '../clients/members.ts'
import { check } from '../domain/check.ts'
import { isObject } from '../domain/is-object.ts'
import { isDeeperThan } from '../domain/strict-json.ts'

/**
 * A request body that is a JSON object, RFC 7591 §3.1, and not nested deeper than allowed.
 * @param depth How many objects and arrays may stand inside each other, the body itself included.
 * @throws {OAuthError} `invalid_client_metadata`
 */
export function requireJsonObject(body: unknown, depth: number): JsonObject {
  check(isObject(body), 'rfc7591-3-post-json', 'invalid_client_metadata', 'the body must be a JSON object', {
    passed: 'the body is a JSON object',
  })
  check(
    !isDeeperThan(depth, body),
    'rfc7591-3-post-json',
    'invalid_client_metadata',
    `the body is nested deeper than ${depth} levels (limits.jsonDepth)`,
    { passed: 'the body is not nested too deep' },
  )
  return body
}
