import cluster from 'node:cluster'
import { availableParallelism, totalmem } from 'node:os'

/** The other worker processes of this server, as one of them sees them. Bodies are JSON. */
export interface Peers {
  /** How many workers the server has, this one included. */
  readonly count: number
  /** Whether this is the first worker ever: it does what a start of the server does once. */
  readonly isFirst: boolean
  /** Whether this worker does what only one of them does, such as sweeping. */
  isLeading(): boolean
  /** Sends to every other worker. */
  tell(topic: string, body?: unknown): void
  /** Asks every other worker; resolves with what responded within two seconds. */
  ask(topic: string): Promise<readonly unknown[]>
  /** Sets what receives a topic; it returns the response to `ask`. */
  on(topic: string, receive: (body: unknown) => unknown): void
  /** Leaves this to the leading worker when this process ends, however it ends; replaces what it left before. */
  leave(topic: string, body: unknown): void
}

/** What a worker sends to the primary process. */
export type FromWorker =
  | { readonly kind: 'ready' }
  | { readonly kind: 'tell'; readonly topic: string; readonly body?: unknown; readonly ask?: number }
  | { readonly kind: 'reply'; readonly ask: number; readonly body?: unknown }
  | { readonly kind: 'leave'; readonly topic: string; readonly body: unknown }

/** What the primary process sends to a worker. */
export type ToWorker =
  | { readonly kind: 'lead' }
  /** `isReplaced`: the server goes on with other workers. */
  | { readonly kind: 'stop'; readonly isReplaced: boolean }
  | { readonly kind: 'message'; readonly topic: string; readonly body?: unknown; readonly ask?: number }
  | { readonly kind: 'replies'; readonly ask: number; readonly bodies: readonly unknown[] }

/** A worker's connection to the primary process. */
export interface WorkerChannel {
  readonly peers: Peers
  ready(): void
  /** Sets what stops this worker. */
  onStop(stop: (isReplaced: boolean) => void): void
}

/** Whether this process is a worker. */
export const { isWorker } = cluster

/** Connects a worker with its primary process. */
export function connectToPrimary(count: number): WorkerChannel {
  const receivers = new Map<string, (body: unknown) => unknown>()
  const asked = new Map<number, (bodies: readonly unknown[]) => void>()
  let [isLeading, lastAsked] = [false, 0]
  let stop: (isReplaced: boolean) => void = () => {}
  // A primary process that has ended takes nothing; then this one ends, too.
  const send = (message: FromWorker) => void (process.connected && process.send?.(message, () => {}))

  async function respond({ topic, body, ask }: Extract<ToWorker, { kind: 'message' }>): Promise<void> {
    const response = await receivers.get(topic)?.(body)
    if (ask !== undefined) send({ kind: 'reply', ask, body: response })
  }

  // Only src/cli/workers.ts sends here, and Node itself, whose messages have no `kind`.
  process.on('message', (message: ToWorker) => {
    if (message.kind === 'lead') isLeading = true
    if (message.kind === 'stop') {
      isLeading = false
      stop(message.isReplaced)
    }
    // One that has no response is left out.
    if (message.kind === 'message') respond(message).catch(() => {})
    if (message.kind === 'replies') asked.get(message.ask)?.(message.bodies)
  })
  return {
    ready: () => send({ kind: 'ready' }),
    onStop: (act) => {
      stop = act
    },
    peers: {
      count,
      isFirst: cluster.worker?.id === 1,
      isLeading: () => isLeading,
      tell: (topic, body) => send({ kind: 'tell', topic, body }),
      ask: async (topic) => {
        lastAsked += 1
        const { promise, resolve } = Promise.withResolvers<readonly unknown[]>()
        asked.set(lastAsked, resolve)
        const ask = lastAsked
        send({ kind: 'tell', topic, ask })
        return promise.finally(() => asked.delete(ask))
      },
      on: (topic, receive) => void receivers.set(topic, receive),
      leave: (topic, body) => send({ kind: 'leave', topic, body }),
    },
  }
}

/** What a worker takes under load, with some room. */
const workerBytes = 256 * 2 ** 20

/**
 * Returns how many workers a server has. `auto` is one for each core that the process may use, by its quota too, as
 * far as the memory of the machine or of its control group allows.
 */
export function workerCount(
  workers: number | 'auto',
  cores = availableParallelism(),
  memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
): number {
  return workers === 'auto' ? Math.max(1, Math.min(cores, Math.floor(memory / workerBytes))) : workers
}

/** Returns the part of a limit of the server that one of its workers has. */
export function partOf(limit: number, peers: Pick<Peers, 'count'> | undefined): number {
  return peers === undefined ? limit : Math.ceil(limit / peers.count)
}
