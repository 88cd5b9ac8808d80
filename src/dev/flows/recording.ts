import type { Write } from '../../domain/decision.ts'
import type { Seconds } from '../../domain/model.ts'
import type { Ruling } from '../../domain/ruling.ts'

/** What is gathered while a request is answered. */
export interface Recording {
  /** The server's time when the request came. */
  readonly at: Seconds
  readonly startedMs: number
  readonly held: Ruling[]
  readonly writes: Write[]
  readonly notes: string[]
  readonly requestBody: Buffer[]
  answerBody: string
  finished: boolean
}
