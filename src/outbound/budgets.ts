import type { Config } from '../config/schema.ts'
import type { Client } from '../domain/model.ts'
import type { Clock } from '../system/system.ts'

/**
 * How many fetches each purpose has at once, and how many of them go to one host or come from one network. A purpose
 * never takes a place or the budget of another, so that strangers use up nothing that the clients of operators need.
 */
const places = {
  /** What an operator named: keys and logos of clients that they added, the issuers these trust. */
  operator: { atOnce: 32, share: 32 },
  /** Documents of clients that the settings list or a user approved, and what these name. */
  known: { atOnce: 32, share: 8 },
  /** Documents that a stranger named, and what these name. */
  unknown: { atOnce: 16, share: 4 },
  /** Request objects: the client says where from, a stranger when. */
  requestObject: { atOnce: 16, share: 4 },
  /** Requests to an upstream where users sign in: an operator named it, a stranger says when. */
  upstream: { atOnce: 32, share: 32 },
  /** Forms that are sent to clients. */
  form: { atOnce: 64, share: 64 },
} as const

/** Every purpose. SECURITY.md has a row for each. */
export const purposes: readonly string[] = Object.keys(places)

/** Who a fetch is for. `from` is the network of a stranger who caused it, see address-prefix.ts. */
export type Spender =
  | { readonly purpose: 'operator' | 'known' | 'form' }
  | { readonly purpose: 'unknown' | 'requestObject' | 'upstream'; readonly from: string }

export type BudgetLimits = Pick<Config['fetch'], 'perOriginPerMinute' | 'perNetworkPerMinute'>

/** The places and budgets of all fetches of this node. */
export interface Budgets {
  /**
   * Takes a place for a fetch, and counts it. Returns the function that frees the place, or why there is none.
   * @param perOriginPerMinute The budget of its origin.
   */
  take(url: URL, spender: Spender, perOriginPerMinute: number): (() => void) | string
}

/** Documents of one host share the budget of the host, and each has at most this part of it. */
const partOfDocument = 1 / 3
/** Per purpose and minute: what cannot be counted any more is not fetched. */
const mostCounted = 10_000

export function createBudgets(limits: BudgetLimits, clock: Clock): Budgets {
  const running = new Map<string, number>()
  const spent = new Map<Spender['purpose'], Map<string, number>>()
  let window = 0

  function countsOf(purpose: Spender['purpose']): Map<string, number> {
    const minute = Math.floor(clock() / 60)
    if (minute !== window) spent.clear()
    window = minute
    const counts = spent.get(purpose) ?? new Map<string, number>()
    spent.set(purpose, counts)
    return counts
  }

  return {
    take({ origin, href }, spender, perOrigin) {
      const { purpose } = spender
      const { atOnce, share } = places[purpose]
      const from = 'from' in spender ? spender.from : undefined
      const held = [
        [purpose, atOnce],
        [`${purpose} to ${origin}`, share],
        ...(from === undefined ? [] : ([[`${purpose} from ${from}`, share]] as const)),
      ] as const
      const full = held.find(([key, most]) => (running.get(key) ?? 0) >= most)
      if (full !== undefined) return `${full[1]} fetches of this kind are running`

      const counts = countsOf(purpose)
      const ofDocument = Math.ceil(perOrigin * partOfDocument)
      // A network may be that of a whole office, and its users have proven a state of their browsers.
      const ofNetwork = purpose === 'upstream' ? ofDocument : limits.perNetworkPerMinute
      const isDocument = purpose === 'known' || purpose === 'unknown'
      const due: readonly (readonly [key: string, most: number, setting: string])[] = [
        [origin, perOrigin, 'perOriginPerMinute'],
        ...(isDocument ? ([[href, ofDocument, 'perOriginPerMinute']] as const) : []),
        ...(from === undefined ? [] : ([[from, ofNetwork, 'perNetworkPerMinute']] as const)),
      ]
      const over = due.find(([key, most]) => (counts.get(key) ?? 0) >= most || counts.size >= mostCounted)
      if (over !== undefined) return `more than ${over[1]} fetches a minute (fetch.${over[2]})`

      for (const [key] of due) counts.set(key, (counts.get(key) ?? 0) + 1)
      for (const [key] of held) running.set(key, (running.get(key) ?? 0) + 1)
      return () => {
        for (const [key] of held) {
          const left = (running.get(key) ?? 1) - 1
          if (left === 0) running.delete(key)
          else running.set(key, left)
        }
      }
    },
  }
}

/** Returns who fetches of what a client names are for. */
export function spenderFor({ origin, published, admitted }: Client): Spender {
  if (origin !== 'registered') return { purpose: 'operator' }
  const from = published?.namedFrom
  if (from !== undefined) return { purpose: 'unknown', from }
  return (published ?? admitted) === undefined ? { purpose: 'unknown', from: '' } : { purpose: 'known' }
}
