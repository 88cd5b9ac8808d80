import { setTimeout } from 'node:timers/promises'
import type { Landing } from '../../helpers/user-agent.ts'

/** The most attempts: a healthy server sends 503 for no longer. */
const mostTimes = 10

/** Retry-After, as text, of a response that has one; null if it has none. */
export function putOff(response: unknown): string | null | undefined {
  if (response instanceof URL) {
    // RFC 6749 §4.1.2.1 has no place for more.
    return response.searchParams.get('error') === 'temporarily_unavailable' ? '1' : undefined
  }
  // `as`: a response, or a page.
  const { status, headers } = (response ?? {}) as Partial<Pick<Response, 'status' | 'headers'>>
  return status === 503 ? headers?.get('retry-after') : undefined
}

/** The response once it is not a 503, which says nothing about what the server stores. */
export async function confirmOrAbort<T extends Response | Landing>(ask: () => Promise<T>): Promise<T> {
  for (let times = 1; ; times += 1) {
    const response = await ask()
    const wait = putOff(responseIn(response))
    if (!wait || times === mostTimes) return response
    await setTimeout(Number(wait) * 1000)
  }
}

/** The result of work that throws an error whose cause is a 503. */
export async function untilDone<T>(work: () => Promise<T>): Promise<T> {
  for (let times = 1; ; times += 1) {
    try {
      return await work()
    } catch (error) {
      const wait = error instanceof Error && putOff(error.cause)
      if (!wait || times === mostTimes) throw error
      await setTimeout(Number(wait) * 1000)
    }
  }
}

function responseIn(response: Response | Landing): unknown {
  if (!('at' in response)) return response
  return response.at === 'redirect' ? response.location : response.page
}
