import type { Seconds } from '../domain/model.ts'

/** A link with its secret: the URL can be used once. */
export interface GivenLink {
  readonly url: string
  readonly expiresAt: Seconds
  /** For how long it works. */
  readonly seconds: Seconds
}
