import type { FastifyRequest } from 'fastify'
import type { Criterion } from './criteria.ts'
import type { Lie } from './lie.ts'

/** A misbehaving issuer: a whole server that lies about exactly one thing. */
export interface Profile {
  readonly id: string
  readonly title: string
  /** What the lie breaks: `RFC 9207 §2`. */
  readonly clause: string
  /** The row of the ledger that says the real server does not do it. */
  readonly ledger?: string
  /** What a sound client does. */
  readonly sound: string
  readonly fooledWhen: Criterion
  /** Absent: it does not lie. */
  readonly lie?: Lie
  /** Changes a request before the real server sees it, where the lie begins there; says whether it did. */
  readonly ask?: (request: FastifyRequest) => boolean
}
