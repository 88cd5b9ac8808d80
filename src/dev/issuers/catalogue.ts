import { authorizationResponses } from './authorization-responses.ts'
import { never } from './criteria.ts'
import { documents } from './documents.ts'
import { idTokens } from './id-tokens.ts'
import type { Profile } from './lie.ts'
import { tokenResponses } from './token-responses.ts'

/** The issuer that does not lie: who fails here fails for another reason, and being rejected elsewhere proves nothing. */
const reference: Profile = {
  id: 'reference',
  title: 'nothing is wrong: every client must succeed',
  clause: '–',
  sound: 'gets a token, and calls UserInfo or the API with it',
  fooledWhen: never,
}

/** Every misbehaving issuer, the one that behaves first. */
export const profiles: readonly Profile[] = [
  reference,
  ...documents,
  ...authorizationResponses,
  ...idTokens,
  ...tokenResponses,
]

/** The profile of this id. */
export function profileOf(id: string): Profile | undefined {
  return profiles.find((profile) => profile.id === id)
}
