import { hashSecret, secretPrefix } from '../../domain/secret.ts'
import type { Needs, OwnGuardOptions } from '../../feature/deps.ts'
import {
  isPersonalUseDue,
  notePersonalUse,
  personalTokenKind,
  verifyPersonalToken,
} from '../../users/rules/personal-token.ts'

/**
 * Returns what verifies personal tokens at the admin API, and nowhere else. Whether the owner is still an administrator
 * is asked at each call, as for an access token.
 */
export function personalTokenVerifier({
  store,
  clock,
}: Needs<'store' | 'clock'>): NonNullable<OwnGuardOptions['verifyPersonalToken']> {
  const verify = async (text: string) => {
    const now = clock()
    const record = await store.find(personalTokenKind, hashSecret(text))
    const owner = record && (await store.find('user', record.userId))
    const token = verifyPersonalToken(record, owner, now)
    if ('rejected' in token) return token
    const { id, userId: sub, scope } = token
    if (isPersonalUseDue(token, now))
      await store.transact(personalTokenKind, id, (found) => notePersonalUse(found, now))
    return { sub, scope, personalTokenId: id }
  }
  return (text) => (text.startsWith(secretPrefix.personalToken) ? verify(text) : undefined)
}
