import type { PassedCheck } from '../../domain/check.ts'
import type { Write } from '../../domain/decision.ts'
import type { Seconds } from '../../domain/model.ts'

/** What is gathered while a request is answered. */
export interface Recording {
  /** The server's time when the request came. */
  readonly at: Seconds
  readonly startedMs: number
  readonly held: PassedCheck[]
  readonly writes: Write[]
  readonly notes: string[]
  readonly requestBody: Buffer[]
  answerBody: string
  finished: boolean
}
