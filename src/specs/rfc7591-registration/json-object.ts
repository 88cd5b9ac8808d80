import type { JsonObject } from '../../clients/members.ts'
import { check } from '../../domain/check.ts'
import { isObject } from '../../domain/is-object.ts'

/**
 * A request body that is a JSON object, RFC 7591 §3.1.
 * @throws {OAuthError} `invalid_client_metadata`
 */
export function requireJsonObject(body: unknown): JsonObject {
  check(isObject(body), 'rfc7591-3-post-json', 'invalid_client_metadata', 'the body must be a JSON object', {
    passed: 'the body is a JSON object',
  })
  return body
}
