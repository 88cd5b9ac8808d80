import type { Seconds } from '../domain/model.ts'

/** A link as it is given to somebody: whoever has the URL can use it, once. */
export interface GivenLink {
  readonly url: string
  readonly expiresAt: Seconds
  /** For how long it works. */
  readonly seconds: Seconds
}
