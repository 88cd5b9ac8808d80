import type { TokenFacts } from '../../domain/access-token.ts'
import type { Client } from '../../domain/model.ts'
import type { Resources } from '../../domain/resource.ts'

/**
 * Whether this caller may learn about this token, RFC 7662 §4: a client about tokens issued to it, a resource server
 * about access tokens meant for it.
 */
export function mayIntrospect(caller: Client, token: TokenFacts, resources: Resources): boolean {
  if (token.grant.clientId === caller.id) return true
  if (token.kind !== 'access') return false
  const own = caller.introspects.map((identifier) => resources.find(identifier)?.identifier ?? identifier)
  return token.resource.some((identifier) => own.includes(identifier))
}
