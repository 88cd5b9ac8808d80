import { check } from './check.ts'
import type { RecordReads, Write } from './decision.ts'
import type { Client, Seconds } from './model.ts'

const rule = 'rfc9700-2.1.1-confidential-recommended'
const why = 'the client must use PKCE, and the authorization request of this code had no code_challenge'
const none: readonly Write[] = []

/**
 * Returns what the exchange of a code teaches about a client with `pkce: auto`. Once a `code_verifier` of it was
 * verified, PKCE is required (RFC 9700 §2.1.1), also for codes that were requested without it before. An authorization
 * request teaches nothing, because anyone can send one in the client's name.
 * @param isVerified Whether a `code_verifier` was verified; otherwise the authorization request had no challenge.
 * @throws {OAuthError} `invalid_grant` if PKCE was left out and is required now.
 */
export function learnFromExchange(
  { id: clientId, pkceOptional, pkceAutoSince }: Client,
  isVerified: boolean,
  now: Seconds,
): readonly Write[] {
  if (!isVerified)
    check(pkceOptional, rule, 'invalid_grant', why, { passed: 'the client may leave PKCE out' })
  if (pkceAutoSince === undefined || !pkceOptional) return none
  if (isVerified) return [{ op: 'learnPkce', clientId, at: now }]
  // Another exchange may have been verified since the client was read.
  const condition = {
    rule,
    why,
    *holds(read: RecordReads) {
      return (yield* read.find('client', clientId))?.pkceOptional === true
    },
  }
  return [{ op: 'require', condition }]
}

/** Names the rule about PKCE of a client, as operators set it. */
export function pkceRuleOf({ pkceOptional, pkceAutoSince }: Client): 'required' | 'optional' | 'auto' {
  if (pkceAutoSince !== undefined) return 'auto'
  return pkceOptional ? 'optional' : 'required'
}
