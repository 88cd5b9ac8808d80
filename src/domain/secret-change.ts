import type { Seconds } from './model.ts'
import { recordKind } from './record.ts'

/** A change of the operator's secret that has begun: until it ends, a server may have either secret. */
export interface SecretChange {
  /** The key that the secret before gives, sealed with the key that the secret after gives. */
  readonly sealedBefore: string
  readonly begunAt: Seconds
  /** The last time that a server with the secret before loaded its keys. */
  readonly beforeSeenAt?: Seconds
  /** When everything was sealed with both keys. From then on nothing new is sealed with the key before. */
  readonly endingAt?: Seconds
}

/** There is at most one, under this key. */
export const secretChangeKey = 'secret'

export const secretChangeKind = recordKind<SecretChange>('secretChange', { id: () => secretChangeKey })
