import type { Sighting } from '../../domain/probe.ts'
import type { Answer } from './ask.ts'

/** A response to a marked request; the sighting is missing where the response is none to this very request. */
export interface Sighted {
  readonly answer: Answer
  readonly sighting?: Sighting
}
