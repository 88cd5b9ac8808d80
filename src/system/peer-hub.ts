import type { Worker } from 'node:cluster'
import type { FromWorker, ToWorker } from './peers.ts'

/** Where the primary process passes on what workers send each other, see peers.ts. */
export interface Hub {
  /** Takes a message; the worker emits `ready` when it is ready. */
  receive(worker: Worker, message: FromWorker): void
  /** Stops a worker: gently if it is ready, which this returns. */
  stop(worker: Worker, isReplaced: boolean): boolean
  /** Takes back what a worker that has ended was for. */
  remove(worker: Worker): void
}

const patienceMilliseconds = 2000

/** Creates it. The first worker that is ready leads; when it stops or ends, the one that is ready longest. */
export function createHub(): Hub {
  const ready = new Set<Worker>()
  const left = new Map<Worker, Map<string, unknown>>()
  const questions = new Map<number, (from: Worker, body: unknown) => void>()
  let leader: Worker | undefined
  let lastQuestion = 0
  /** What was left while there was no one to take it. */
  let inheritance: readonly (readonly [topic: string, body: unknown])[] = []

  const send = (worker: Worker, message: ToWorker) =>
    void (worker.isConnected() && worker.send(message, () => {}))

  function lead(): void {
    if (leader !== undefined && ready.has(leader)) return
    leader = [...ready][0]
    if (leader !== undefined) send(leader, { kind: 'lead' })
  }

  function bequeath(): void {
    if (leader === undefined) return
    for (const [topic, body] of inheritance) send(leader, { kind: 'message', topic, body })
    inheritance = []
  }

  function pass(from: Worker, { topic, body, ask }: Extract<FromWorker, { kind: 'tell' }>): void {
    const others = [...ready].filter((worker) => worker !== from)
    if (ask === undefined) {
      for (const worker of others) send(worker, { kind: 'message', topic, body })
      return
    }
    lastQuestion += 1
    const question = lastQuestion
    const waiting = new Set(others)
    const bodies: unknown[] = []
    const finish = () => {
      clearTimeout(timer)
      questions.delete(question)
      send(from, { kind: 'replies', ask, bodies })
    }
    const timer = setTimeout(finish, patienceMilliseconds)
    questions.set(question, (worker, reply) => {
      if (!waiting.delete(worker)) return
      if (reply !== undefined) bodies.push(reply)
      if (waiting.size === 0) finish()
    })
    for (const worker of others) send(worker, { kind: 'message', topic, body, ask: question })
    if (others.length === 0) finish()
  }

  return {
    receive: (worker, message) => {
      if (message.kind === 'ready') {
        ready.add(worker)
        lead()
        bequeath()
        worker.emit('ready')
      }
      if (message.kind === 'tell') pass(worker, message)
      if (message.kind === 'reply') questions.get(message.ask)?.(worker, message.body)
      if (message.kind === 'leave') {
        const own = left.get(worker) ?? new Map()
        left.set(worker, own.set(message.topic, message.body))
      }
    },
    stop: (worker, isReplaced) => {
      const isReady = ready.delete(worker)
      if (!isReady) worker.process.kill('SIGTERM')
      send(worker, { kind: 'stop', isReplaced })
      lead()
      return isReady
    },
    remove: (worker) => {
      ready.delete(worker)
      lead()
      inheritance = [...inheritance, ...(left.get(worker) ?? [])]
      left.delete(worker)
      bequeath()
      for (const answer of questions.values()) answer(worker, undefined)
    },
  }
}
