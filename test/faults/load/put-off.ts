import { setTimeout } from 'node:timers/promises'
import type { Landing } from '../../helpers/user-agent.ts'

/** How often a question is asked at most: for longer a server that is well puts nobody off. */
const mostTimes = 10

/** When to come back, as text, of a response that says that it is to be later; null when it does not say when. */
export function putOff(answer: unknown): string | null | undefined {
  if (answer instanceof URL) {
    // RFC 6749 §4.1.2.1 has no place for more.
    return answer.searchParams.get('error') === 'temporarily_unavailable' ? '1' : undefined
  }
  // `as`: a response, or a page.
  const { status, headers } = (answer ?? {}) as Partial<Pick<Response, 'status' | 'headers'>>
  return status === 503 ? headers?.get('retry-after') : undefined
}

/** The response once there is one: to be put off says nothing of what the server knows. */
export async function confirmOrAbort<T extends Response | Landing>(ask: () => Promise<T>): Promise<T> {
  for (let times = 1; ; times += 1) {
    const answer = await ask()
    const wait = putOff(answerIn(answer))
    if (!wait || times === mostTimes) return answer
    await setTimeout(Number(wait) * 1000)
  }
}

/** The result of work that throws an error whose cause is the response that put it off. */
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

function answerIn(answer: Response | Landing): unknown {
  if (!('at' in answer)) return answer
  return answer.at === 'redirect' ? answer.location : answer.page
}
