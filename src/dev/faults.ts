import { type Static, Type } from '@sinclair/typebox'

const selector = {
  /** The name of an endpoint, or a path below the issuer. */
  endpoint: Type.Optional(Type.String({ minLength: 1 })),
  client_id: Type.Optional(Type.String({ minLength: 1 })),
  /** How many requests it strikes; absent: one. */
  requests: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
}

/** What is to go wrong with the next requests of an endpoint or a client. */
export const FaultOrder = Type.Object(
  {
    ...selector,
    fault: Type.Union([
      Type.Literal('drop-after-commit'),
      Type.Literal('truncate'),
      Type.Literal('reset-before'),
      Type.Literal('delay'),
      Type.Literal('503'),
    ]),
    /** delay: for how long the reply is held back. */
    ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 600_000 })),
    /** 503: what `Retry-After` says, in seconds. */
    retry_after: Type.Optional(Type.Integer({ minimum: 0, maximum: 86_400 })),
  },
  { additionalProperties: false },
)
export type FaultOrder = Static<typeof FaultOrder>

/** A fault that was asked for, and how often it has struck. */
export interface Fault extends FaultOrder {
  readonly id: string
  readonly requests: number
  readonly fired: number
}

/** A request as far as faults choose by it. */
export interface Target {
  /** Below the issuer. */
  readonly path: string
  readonly clientId: string | undefined
}

/** The faults of one server, in the order they were asked for. */
export interface FaultBook {
  list(): readonly Fault[]
  add(order: FaultOrder): Fault
  /** Forgets one, or all; whether there was any. */
  remove(id?: string): boolean
  /** Whether a fault is left that may strike a request to this path. */
  concerns(path: string): boolean
  /** The first fault left for this request, counted as struck. */
  claim(target: Target): Fault | undefined
}

/**
 * A book without faults.
 * @param endpoints Paths below the issuer, by the names that faults may give.
 */
export function openFaultBook(endpoints: ReadonlyMap<string, string>): FaultBook {
  const isAt = ({ endpoint }: Fault, path: string) =>
    endpoint === undefined || pathOf(endpoint, endpoints) === path
  let faults: readonly Fault[] = []
  let last = 0
  return {
    list: () => faults,
    add: (order) => {
      last += 1
      const fault = { ...order, id: String(last), requests: order.requests ?? 1, fired: 0 }
      faults = [...faults, fault]
      return fault
    },
    remove: (id) => {
      const kept = id === undefined ? [] : faults.filter((fault) => fault.id !== id)
      const isLess = kept.length < faults.length
      faults = kept
      return isLess
    },
    concerns: (path) => faults.some((fault) => isLeft(fault) && isAt(fault, path)),
    claim: ({ path, clientId }) => {
      const struck = faults.find(
        (fault) =>
          isLeft(fault) &&
          isAt(fault, path) &&
          (fault.client_id === undefined || fault.client_id === clientId),
      )
      faults = faults.map((fault) => (fault === struck ? { ...fault, fired: fault.fired + 1 } : fault))
      return struck
    },
  }
}

function isLeft({ fired, requests }: Fault): boolean {
  return fired < requests
}

/** The path of an endpoint that is named, or said by its path; undefined for a name there is none of. */
export function pathOf(endpoint: string, endpoints: ReadonlyMap<string, string>): string | undefined {
  return endpoint.startsWith('/') ? endpoint : endpoints.get(endpoint)
}
