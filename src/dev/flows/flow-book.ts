import type { Exchange, Step } from './flow.ts'
import type { SeenToken } from './token-sights.ts'

/** A stored exchange; its time is by the machine's clock. */
export interface KeptExchange extends Omit<Exchange, 'afterMs' | 'presented' | 'issued'> {
  readonly startedMs: number
  readonly presented: readonly SeenToken[]
  readonly issued: readonly SeenToken[]
}

/** A flow as it is kept. */
export interface KeptFlow {
  readonly id: string
  readonly exchanges: readonly KeptExchange[]
  readonly omitted: number
  readonly clientId?: string
  readonly userId?: string
}

/** By what an exchange is known to belong to others, the surest first. */
export interface Belonging {
  readonly grantIds: readonly string[]
  readonly interactionIds: readonly string[]
  readonly clientId?: string
  /** The browser's cookie, as its fingerprint. */
  readonly browser?: string
  /** Address and program, for what carries nothing else: discovery, keys, anonymous calls. */
  readonly peer: string
  readonly userId?: string
}

/** How much is kept; the oldest goes first. */
export interface Bounds {
  readonly flows: number
  readonly exchangesPerFlow: number
  readonly looseExchanges: number
  /** Characters of all exchanges together. */
  readonly characters: number
}

export const defaultBounds: Bounds = {
  flows: 100,
  exchangesPerFlow: 200,
  looseExchanges: 100,
  characters: 16_000_000,
}

/** So long after its last request a flow takes in what carries nothing but the peer. */
const peerMs = 60_000
/** By so many names a flow is found again. */
const mostKeys = 200
const beforeAuthorization: readonly Step[] = ['discovery', 'keys', 'registration']

type OpenFlow = { -readonly [K in keyof KeptFlow]: KeptFlow[K] } & {
  exchanges: KeptExchange[]
  characters: number
  keys: number
  lastMs: number
}

/** The exchanges of a server, sorted into flows. */
export interface FlowBook {
  /** Adds an exchange to the flow it belongs to, which may be a new one, or to those that wait for theirs. */
  add(exchange: KeptExchange, belonging: Belonging): void
  /** Newest first. */
  flows(): readonly KeptFlow[]
  /** Exchanges that belong to no flow so far, newest first. */
  loose(): readonly KeptExchange[]
  /** The flow with this exchange, by its request id. */
  flowOf(exchangeId: string): KeptFlow | undefined
  clear(): void
}

/** An empty book that keeps so much. */
export function openFlowBook(bounds: Bounds = defaultBounds): FlowBook {
  const flows = new Map<string, OpenFlow>()
  const known = new Map<string, OpenFlow>()
  let loose: { readonly exchange: KeptExchange; readonly peer: string }[] = []
  let count = 0

  const find = (belonging: Belonging, exchange: KeptExchange): OpenFlow | undefined => {
    const { grantIds, interactionIds, clientId, browser, peer } = belonging
    const sure = [...grantIds.map((id) => `grant ${id}`), ...interactionIds.map((id) => `interaction ${id}`)]
    const [named] = sure.map((key) => known.get(key)).filter((flow) => flow !== undefined)
    if (named !== undefined) return named
    if (clientId !== undefined) {
      const latest = known.get(`client ${clientId}`)
      // Another approval is another flow, and so is a token of a grant that was never seen being made.
      const isNext =
        exchange.step === 'authorization' ? latest?.exchanges.some(isAuthorization) : grantIds.length > 0
      return isNext ? undefined : latest
    }
    const ofBrowser = browser === undefined ? undefined : known.get(`browser ${browser}`)
    if (ofBrowser !== undefined) return ofBrowser
    const ofPeer = known.get(`peer ${peer}`)
    if (ofPeer === undefined || exchange.startedMs - ofPeer.lastMs > peerMs) return undefined
    // Discovery after the authorization is that of the next flow.
    const isNew =
      exchange.step === 'discovery' &&
      !ofPeer.exchanges.every(({ step }) => beforeAuthorization.includes(step))
    return isNew ? undefined : ofPeer
  }

  const begin = (): OpenFlow => {
    count += 1
    const flow = { id: `f${count}`, exchanges: [], omitted: 0, characters: 0, keys: 0, lastMs: 0 }
    flows.set(flow.id, flow)
    return flow
  }

  const remember = (flow: OpenFlow, belonging: Belonging) => {
    const { grantIds, interactionIds, clientId, browser, peer, userId } = belonging
    const keys = [
      ...grantIds.map((id) => `grant ${id}`),
      ...interactionIds.map((id) => `interaction ${id}`),
      ...(clientId === undefined ? [] : [`client ${clientId}`]),
      ...(browser === undefined ? [] : [`browser ${browser}`]),
      `peer ${peer}`,
    ]
    for (const key of keys) {
      if (known.get(key) === flow) continue
      // A client that sends another name each time must not fill the memory.
      if (flow.keys >= mostKeys) break
      flow.keys += 1
      known.set(key, flow)
    }
    if (clientId !== undefined) flow.clientId ??= clientId
    if (userId !== undefined) flow.userId = userId
  }

  const put = (flow: OpenFlow, exchange: KeptExchange) => {
    flow.lastMs = Math.max(flow.lastMs, exchange.startedMs)
    flow.exchanges.push(exchange)
    flow.exchanges.sort((one, other) => one.startedMs - other.startedMs)
    flow.characters += sizeOf(exchange)
    if (flow.exchanges.length <= bounds.exchangesPerFlow) return
    // How it began stays, and what came last.
    const [left] = flow.exchanges.splice(Math.floor(bounds.exchangesPerFlow / 4), 1)
    flow.omitted += 1
    if (left !== undefined) flow.characters -= sizeOf(left)
  }

  /** What came from the same program shortly before belongs to the flow that begins. */
  const takeIn = (flow: OpenFlow, peer: string, now: number) => {
    const mine = loose.filter((each) => each.peer === peer)
    loose = loose.filter((each) => each.peer !== peer)
    for (const { exchange } of mine) if (now - exchange.startedMs <= peerMs) put(flow, exchange)
  }

  const forgetOldest = () => {
    const total = () => [...flows.values()].reduce((sum, { characters }) => sum + characters, 0)
    while (flows.size > bounds.flows || (flows.size > 1 && total() > bounds.characters)) {
      const [oldest] = flows.values()
      if (oldest === undefined) return
      flows.delete(oldest.id)
      for (const [key, flow] of known) if (flow === oldest) known.delete(key)
    }
  }

  return {
    add(exchange, belonging) {
      const found = find(belonging, exchange)
      const isNamed = belonging.clientId !== undefined || belonging.grantIds.length > 0
      if (found === undefined && !isNamed) {
        loose.push({ exchange, peer: belonging.peer })
        loose = loose.slice(-bounds.looseExchanges)
        return
      }
      const flow = found ?? begin()
      takeIn(flow, belonging.peer, exchange.startedMs)
      put(flow, exchange)
      remember(flow, belonging)
      forgetOldest()
    },
    flows: () => [...flows.values()].sort((one, other) => other.lastMs - one.lastMs),
    loose: () => loose.map(({ exchange }) => exchange).reverse(),
    flowOf: (exchangeId) =>
      [...flows.values()].find(({ exchanges }) => exchanges.some(({ id }) => id === exchangeId)),
    clear() {
      flows.clear()
      known.clear()
      loose = []
    },
  }
}

/** A form of another site is sent back here by GET: that is one request of the client. */
function isAuthorization({ step, location }: KeptExchange): boolean {
  return step === 'authorization' && !location?.includes('/oauth/authorize?')
}

function sizeOf(exchange: KeptExchange): number {
  return JSON.stringify(exchange).length
}
