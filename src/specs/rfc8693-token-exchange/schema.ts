import { Type } from '@sinclair/typebox'
import { repeatable } from '../../feature/feature.ts'

/** The grant type, RFC 8693 §2.1. */
export const tokenExchange = 'urn:ietf:params:oauth:grant-type:token-exchange'
/** The one kind of token that is taken and given, RFC 8693 §3. */
export const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'

const text = (description: string) =>
  Type.Optional(Type.String({ description: `token-exchange: ${description}` }))

/** The parameters of the request, RFC 8693 §2.1; `scope` and `resource` are those of every token request. */
export const parameters = {
  subject_token: text('an access token of this server that the client received or was issued.'),
  subject_token_type: text(accessTokenType),
  requested_token_type: text(`${accessTokenType}, or nothing.`),
  actor_token: text('not accepted: the actor is the client that authenticates.'),
  actor_token_type: text('not accepted.'),
}

/** The other parameter that names the target, in addition to `resource`, RFC 8693 §2.1. */
export const tokenParameters = {
  audience: repeatable('token-exchange: the APIs the token is for, by their resource identifiers.'),
}

/** A party that acts for the user, with the one that did before it, RFC 8693 §4.1. */
export const actorClaim = Type.Unsafe<Actor>({
  type: 'object',
  description: 'The client that acts for the user, and in it the one before, RFC 8693 §4.1.',
  additionalProperties: true,
  properties: { sub: { type: 'string' } },
})

/** A client that acts, by its id. */
export interface Actor {
  readonly sub: string
  readonly act?: Actor
}

/** The client that may exchange the token, RFC 8693 §4.4. */
export const mayActClaim = Type.Object(
  { sub: Type.String() },
  { description: 'The client that may exchange the token, RFC 8693 §4.4.' },
)
