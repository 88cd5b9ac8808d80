import type { Seconds } from './model.ts'
import { recordKind } from './record.ts'

/** A change of the operator's secret that has begun: until it ends, a server may have either secret. */
export interface SecretChange {
  /** The key that the old secret gives, sealed with the key that the new secret gives. */
  readonly sealedBefore: string
  readonly begunAt: Seconds
  /** The last time that a server with the old secret loaded its keys. */
  readonly beforeSeenAt?: Seconds
  /** When everything was sealed with both keys. From then on nothing new is sealed with the old key. */
  readonly endingAt?: Seconds
}

/** There is at most one, under this key. */
export const secretChangeKey = 'secret'

export const secretChangeKind = recordKind<SecretChange>('secretChange', { id: () => secretChangeKey })

/** Which secret everything is sealed with since the last change of it. */
export interface LastSecret {
  /** An HMAC by the key that the secret gives. */
  readonly proof: string
}

export const lastSecretKind = recordKind<LastSecret>('lastSecret', { id: () => secretChangeKey })
