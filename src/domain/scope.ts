import { check } from './check.ts'
import type { Scope } from './model.ts'

/** Whether a text has the syntax of a scope, RFC 6749 §3.3; spaces more than needed are tolerated. */
export function isScope(text: string): boolean {
  return /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/.test(text)
}

/**
 * Reads a scope, RFC 6749 §3.3 and OpenID Connect Core §14: names in the order given, repetition removed, nothing
 * when there is no name.
 * @throws {OAuthError} `invalid_scope`
 */
export function parseScope(text: string): Scope {
  check(
    isScope(text),
    'rfc6749-3.3-scope-syntax',
    'invalid_scope',
    'scope has a character that no scope name may have',
    { passed: 'scope has a valid syntax' },
  )
  return [...new Set(text.split(' ').filter((name) => name !== ''))]
}

/** The wire form of a scope, RFC 6749 §3.3. */
export function formatScope(scope: Scope): string {
  return scope.join(' ')
}

/** The names of `scope` that `allowed` has, in the order of `scope`, RFC 6749 §3.3. */
export function narrowScope(scope: Scope, allowed: Scope): Scope {
  return scope.filter((name) => allowed.includes(name))
}
