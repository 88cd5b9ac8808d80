import { setTimeout } from 'node:timers/promises'
import { untilDone } from '../faults/load/put-off.ts'
import {
  callApi,
  type Issuer,
  obtainTokens,
  redirectUri,
  register,
  type TestClient,
} from '../helpers/flow.ts'
import { devAlice } from '../helpers/process.ts'

/** Writes and reads four times a second, and records the responses. */
export interface Watch {
  /** Resolves with the first write that was sent after this instant and acknowledged: seconds after it. */
  untilWritten(instant: number): Promise<number>
  end(): Promise<Seen>
}

export interface Seen {
  /** Each kind of response once: status and Retry-After. */
  readonly writes: readonly string[]
  readonly reads: readonly string[]
  /** How many of all were 503. */
  readonly unavailable: number
  /** Seconds that the slowest took. */
  readonly longest: number
}

interface HttpResponse {
  readonly kind: string
  readonly askedAt: number
  readonly respondedAt: number
}

/** @param clients Where the clients that the writer registered are recorded. */
export async function startWatch(server: Issuer, clients: TestClient[]): Promise<Watch> {
  const { access_token: token } = await untilDone(async () =>
    obtainTokens(server, await register(server), { user: devAlice }),
  )
  const metadata = JSON.stringify({ client_name: 'Watch', redirect_uris: [redirectUri] })
  const writes = repeat(async () => {
    const response = await fetch(`${server.issuer}/api/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: metadata,
    })
    const { client_id: id } = (await response.json()) as { readonly client_id?: string }
    if (id !== undefined) clients.push({ id, method: 'none', redirectUri })
    return response
  })
  const reads = repeat(async () => {
    const response = await callApi(server, '/api/oauth/userinfo', token)
    await response.arrayBuffer()
    return response
  })
  return {
    untilWritten: async (instant) => {
      for (;;) {
        const first = writes.responses.find(
          ({ kind, askedAt }) => askedAt > instant && kind.startsWith('201'),
        )
        if (first !== undefined) return (first.respondedAt - instant) / 1000
        await setTimeout(50)
      }
    },
    end: async () => {
      await Promise.all([writes.end(), reads.end()])
      const all = [...writes.responses, ...reads.responses]
      return {
        writes: kindsOf(writes.responses),
        reads: kindsOf(reads.responses),
        unavailable: all.filter(({ kind }) => kind.startsWith('503')).length,
        longest: Math.max(...all.map(({ askedAt, respondedAt }) => respondedAt - askedAt)) / 1000,
      }
    },
  }
}

function repeat(ask: () => Promise<Response>) {
  const responses: HttpResponse[] = []
  let isOver = false
  const running = (async () => {
    while (!isOver) {
      const askedAt = performance.now()
      const kind = await ask().then(
        ({ status, headers }) => `${status} ${headers.get('retry-after')}`,
        (error: unknown) => String(error),
      )
      responses.push({ kind, askedAt, respondedAt: performance.now() })
      await setTimeout(250)
    }
  })()
  const end = async () => {
    isOver = true
    await running
  }
  return { responses, end }
}

function kindsOf(responses: readonly HttpResponse[]): readonly string[] {
  return [...new Set(responses.map(({ kind }) => kind))].sort()
}
