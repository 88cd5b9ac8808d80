import type { Config } from '../../config/schema.ts'
import { stateOf, termsOf } from '../../domain/key-term.ts'
import type { Seconds, StoredKey } from '../../domain/model.ts'
import type { Resource } from '../../domain/resource.ts'
import type { Text } from '../../domain/text.ts'
import { msg } from '../../pages/i18n/i18n.ts'

/** What the loss depends on in addition to the keys. */
export interface Issued {
  readonly lifetimes: Config['lifetimes']
  readonly reloadSeconds: Seconds
  readonly resources: readonly Pick<Resource, 'tokenFormat' | 'accessTokenSeconds'>[]
  /** The grants that are in use, if they were counted. */
  readonly activeGrants?: number
}

/** Describes what ends with a key. Tokens are not stored: until when the last of them would be valid is known. */
export function lossOf(
  key: StoredKey,
  ring: readonly StoredKey[],
  now: Seconds,
  issued: Issued,
): readonly Text[] {
  const state = stateOf(key, ring, now)
  if (state === 'retired') return [msg('admin.done.gone')]
  if (state === 'waiting') return [msg('admin.keys.retire.waiting')]
  const isActive = state === 'active'
  const { terms } = termsOf(ring, key.algorithm, now)
  const lastUsedAt = isActive ? now : (terms[terms.indexOf(key) + 1]?.activeAt ?? now)
  const successor = msg('admin.keys.retire.successor', { reload: { duration: issued.reloadSeconds } })
  const lost = key.kind === 'signing' ? signedLoss : sealedLoss
  return [...lost(lastUsedAt, now, issued), ...(isActive ? [successor] : [])]
}

function signedLoss(lastSignedAt: Seconds, now: Seconds, { lifetimes, resources }: Issued): readonly Text[] {
  const idTokensUntil = lastSignedAt + lifetimes.idTokenSeconds
  const jwtSeconds = resources.flatMap(({ tokenFormat, accessTokenSeconds }) =>
    tokenFormat === 'jwt' ? accessTokenSeconds : [],
  )
  const jwtUntil = lastSignedAt + Math.max(0, ...jwtSeconds)
  return [
    idTokensUntil > now
      ? msg('admin.keys.retire.idTokens', { until: { moment: idTokensUntil } })
      : msg('admin.keys.retire.idTokensOver'),
    ...(jwtUntil > now ? [msg('admin.keys.retire.jwt', { until: { moment: jwtUntil } })] : []),
    msg('admin.keys.retire.hints'),
    msg('admin.keys.retire.copies', { cache: { duration: lifetimes.metadataCacheSeconds } }),
    msg('admin.keys.retire.stay'),
  ]
}

function sealedLoss(lastSealedAt: Seconds, now: Seconds, { activeGrants: count }: Issued): readonly Text[] {
  return [
    msg('admin.keys.retire.handle'),
    ...(lastSealedAt < now ? [msg('admin.keys.retire.handleOld', { since: { moment: lastSealedAt } })] : []),
    ...(count === undefined ? [] : [msg('admin.keys.retire.grants', { count })]),
    msg('admin.keys.retire.browsers'),
    msg('admin.keys.retire.sealedStay'),
  ]
}
