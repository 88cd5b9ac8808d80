import { setTimeout } from 'node:timers/promises'

/** Longer than anything here takes, even on a busy machine. */
const mostSeconds = 120

/** Asks until the response is defined, and returns it. */
export async function until<T>(what: string, ask: () => Promise<T | false | undefined>): Promise<T> {
  const latest = performance.now() + mostSeconds * 1000
  while (performance.now() < latest) {
    const response = await ask()
    if (response) return response
    await setTimeout(100)
  }
  throw new Error(`waited ${mostSeconds} s for ${what}`)
}

/** The status this URL responds with; undefined if it cannot be reached. */
export async function askStatus(url: string, init: RequestInit = {}): Promise<number | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2000), ...init })
    await response.arrayBuffer()
    return response.status
  } catch {
    return undefined
  }
}
