import type { Exchange, Step } from './flow.ts'
import type { SeenToken } from './token-sights.ts'

/** A stored exchange; its time is by the machine's clock. */
export interface KeptExchange extends Omit<Exchange, 'afterMs' | 'presented' | 'issued'> {
  readonly startedMs: number
  readonly presented: readonly SeenToken[]
  readonly issued: readonly SeenToken[]
}

/** A stored flow. */
export interface KeptFlow {
  readonly id: string
  readonly exchanges: readonly KeptExchange[]
  readonly omitted: number
  readonly clientId?: string
  readonly userId?: string
}

/** Identifies the flow of an exchange, the surest criteria first. */
export interface Belonging {
  readonly grantIds: readonly string[]
  readonly interactionIds: readonly string[]
  readonly clientId?: string
  /** The fingerprint of the browser's cookie. */
  readonly browser?: string
  /** IP address and User-Agent, for requests that identify nothing else: discovery, keys, anonymous calls. */
  readonly peer: string
  readonly userId?: string
}

/** How much is kept. The oldest is deleted first. */
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

/** A flow accepts exchanges that identify only the peer until this long after its last request. */
const peerMs = 60_000
/** The most keys of one flow. */
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
  /** Adds an exchange to its flow, which may be new, or to those without a flow. */
  add(exchange: KeptExchange, belonging: Belonging): void
  /** Newest first. */
  flows(): readonly KeptFlow[]
  /** Exchanges without a flow, newest first. */
  loose(): readonly KeptExchange[]
  /** Finds a flow by the request id of an exchange. */
  flowOf(exchangeId: string): KeptFlow | undefined
  clear(): void
}

/** Makes an empty book with these bounds. */
export function openFlowBook(bounds: Bounds = defaultBounds): FlowBook {
  const flows = new Map<string, OpenFlow>()
  const flowsById = new Map<string, OpenFlow>()
  let loose: { readonly exchange: KeptExchange; readonly peer: string }[] = []
  let count = 0

  const find = (belonging: Belonging, exchange: KeptExchange): OpenFlow | undefined => {
    const { grantIds, clientId, browser, peer } = belonging
    const [named] = sureKeys(belonging).flatMap((key) => flowsById.get(key) ?? [])
    if (named !== undefined) return named
    if (clientId !== undefined) {
      const latest = flowsById.get(`client ${clientId}`)
      // Another grant is another flow, and so is a token of a grant whose authorization was not recorded.
      const isNext =
        exchange.step === 'authorization' ? latest?.exchanges.some(isAuthorization) : grantIds.length > 0
      return isNext ? undefined : latest
    }
    const ofBrowser = browser === undefined ? undefined : flowsById.get(`browser ${browser}`)
    if (ofBrowser !== undefined) return ofBrowser
    const ofPeer = flowsById.get(`peer ${peer}`)
    if (ofPeer === undefined || exchange.startedMs - ofPeer.lastMs > peerMs) return undefined
    // Discovery after an authorization belongs to the next flow.
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
    const { clientId, browser, peer, userId } = belonging
    const keys = [
      ...sureKeys(belonging),
      ...(clientId === undefined ? [] : [`client ${clientId}`]),
      ...(browser === undefined ? [] : [`browser ${browser}`]),
      `peer ${peer}`,
    ]
    for (const key of keys) {
      if (flowsById.get(key) === flow) continue
      // A client that changes its name each time must not exhaust memory.
      if (flow.keys >= mostKeys) break
      flow.keys += 1
      flowsById.set(key, flow)
    }
    if (clientId !== undefined) flow.clientId ??= clientId
    if (userId !== undefined) flow.userId = userId
  }

  const put = (flow: OpenFlow, exchange: KeptExchange) => {
    flow.lastMs = Math.max(flow.lastMs, exchange.startedMs)
    const last = flow.exchanges.at(-1)
    if (last !== undefined && isRepeated(last, exchange)) {
      flow.characters -= sizeOf(last)
      flow.exchanges[flow.exchanges.length - 1] = { ...exchange, times: (last.times ?? 1) + 1 }
      flow.characters += sizeOf(exchange)
      return
    }
    flow.exchanges.push(exchange)
    flow.exchanges.sort((one, other) => one.startedMs - other.startedMs)
    flow.characters += sizeOf(exchange)
    if (flow.exchanges.length <= bounds.exchangesPerFlow) return
    // The first quarter and the newest exchanges are kept.
    const [left] = flow.exchanges.splice(Math.floor(bounds.exchangesPerFlow / 4), 1)
    flow.omitted += 1
    if (left !== undefined) flow.characters -= sizeOf(left)
  }

  /** Moves what the same peer requested shortly before into this flow. */
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
      for (const [key, flow] of flowsById) if (flow === oldest) flowsById.delete(key)
    }
  }

  return {
    add(exchange, belonging) {
      const openFlow = find(belonging, exchange)
      const isNamed = belonging.clientId !== undefined || belonging.grantIds.length > 0
      if (openFlow === undefined && !isNamed) {
        loose.push({ exchange, peer: belonging.peer })
        loose = loose.slice(-bounds.looseExchanges)
        return
      }
      const flow = openFlow ?? begin()
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
      flowsById.clear()
      loose = []
    },
  }
}

function sureKeys({ grantIds, interactionIds }: Belonging): readonly string[] {
  return [...grantIds.map((id) => `grant ${id}`), ...interactionIds.map((id) => `interaction ${id}`)]
}

/** Does not count a POST that was redirected to the same request as GET. */
function isAuthorization({ step, url, location }: KeptExchange): boolean {
  const [path = ''] = url.split('?', 1)
  return step === 'authorization' && location?.includes(`${path}?`) !== true
}

/** Whether one of these routine rejections stands for both: a device polls until its user has decided. */
function isRepeated(last: KeptExchange, next: KeptExchange): boolean {
  return (
    last.refused?.isRoutine === true &&
    next.refused?.isRoutine === true &&
    last.step === next.step &&
    last.startedMs <= next.startedMs
  )
}

function sizeOf(exchange: KeptExchange): number {
  return JSON.stringify(exchange).length
}
