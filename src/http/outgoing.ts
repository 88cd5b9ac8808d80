import type { Seconds } from '../domain/model.ts'

/** A request that this server sent to a client, and what came back. */
export interface Outgoing {
  readonly id: string
  /** What the development server calls it. */
  readonly step: string
  readonly clientId: string
  readonly at: Seconds
  /** By the machine's clock, as `performance.now()`. */
  readonly startedMs: number
  readonly url: string
  readonly form: string
  /** The status of the response; absent if none came. */
  readonly status?: number
  /** What became of it. */
  readonly result: string
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Hear of every request that this server sends to a client; only a development server has it. */
    readonly outgoing?: Set<(request: Outgoing) => void>
  }
}
