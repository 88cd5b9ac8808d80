import { whyInactive } from '../../domain/access-token.ts'
import type { ScopePolicy } from '../../domain/current-grant.ts'
import type { GrantOfToken, Seconds } from '../../domain/model.ts'
import type { Needs } from '../../feature/deps.ts'
import { grantOfTokenKey } from '../../storage/store.ts'
import type { Exchange, Flow, TokenNode, TokenSight } from './flow.ts'
import type { KeptExchange, KeptFlow } from './flow-book.ts'
import type { SeenToken } from './token-sights.ts'

const mostApart: Seconds = 5

/** Describes a flow, with names from the store, and for each token whether the server would accept it now. */
export async function describeFlow(
  flow: KeptFlow,
  { store, service, clock }: Needs<'store' | 'service' | 'clock'>,
): Promise<Flow> {
  const [first, last] = [flow.exchanges[0], flow.exchanges.at(-1)]
  const tokens = flow.exchanges.flatMap(({ issued }) => issued)
  const grants = new Map<string, GrantOfToken>()
  for (const key of new Set(tokens.flatMap((token) => grantKeyOf(token) ?? []))) {
    const grant = await store.find('grantOfToken', key)
    if (grant !== undefined) grants.set(key, grant)
  }
  const { clientId } = flow
  const client = clientId === undefined ? undefined : await store.find('client', clientId)
  const userId = flow.userId ?? [...grants.values()][0]?.userId
  const user = userId === undefined ? undefined : await store.find('user', userId)
  return {
    id: flow.id,
    startedAt: first?.at ?? 0,
    lastAt: last?.at ?? 0,
    ...(clientId !== undefined && { client: { id: clientId, ...(client?.name && { name: client.name }) } }),
    ...(user && { user: user.username }),
    refused: flow.exchanges.filter(({ refused: rejected }) => rejected !== undefined).length,
    exchanges: flow.exchanges.map((exchange, at) =>
      describeExchange(exchange, first?.startedMs ?? 0, flow.exchanges[at - 1]),
    ),
    omitted: flow.omitted,
    tokens: lineageOf(flow.exchanges, grants, service, clock()),
  }
}

/**
 * Describes an exchange.
 * @param startMs When its flow began, by the machine's clock.
 * @param before The previous exchange of the flow.
 */
export function describeExchange(
  { startedMs, ...exchange }: KeptExchange,
  startMs: number,
  before?: KeptExchange,
): Exchange {
  const passed = before === undefined ? 0 : (startedMs - before.startedMs) / 1000
  const moved = before === undefined ? 0 : wholeMinutes(Math.round(exchange.at - before.at - passed))
  return {
    ...exchange,
    // The server's time is in whole seconds, so a difference of a few is not a move.
    ...(Math.abs(moved) > mostApart && { clockMoved: moved }),
    afterMs: Math.round(startedMs - startMs),
    presented: exchange.presented.map(sightOf),
    issued: exchange.issued.map(sightOf),
  }
}

/** Rounds to minutes if the difference is a second, because clocks are moved by minutes and more. */
function wholeMinutes(seconds: Seconds): Seconds {
  const minutes = Math.round(seconds / 60) * 60
  return Math.abs(seconds - minutes) <= 1 ? minutes : seconds
}

interface Growing extends Omit<TokenNode, 'children'> {
  readonly children: Growing[]
}

/** Builds the lineage: a token is a child of the code or the refresh token for which it was issued. */
function lineageOf(
  exchanges: readonly KeptExchange[],
  grants: ReadonlyMap<string, GrantOfToken>,
  policy: ScopePolicy,
  now: Seconds,
): readonly TokenNode[] {
  const nodes = new Map<string, Growing>()
  const roots: Growing[] = []
  for (const { id: by, presented, issued } of exchanges) {
    const parent = presented
      .filter(({ kind }) => kind === 'code' || kind === 'refresh')
      .map((token) => nodes.get(token.fingerprint))
      .find((node) => node !== undefined)
    for (const token of issued) {
      // The response to a retry has the same tokens again.
      if (nodes.has(token.fingerprint)) continue
      const node: Growing = { ...sightOf(token), by, ...stateOf(token, grants, policy, now), children: [] }
      nodes.set(token.fingerprint, node)
      if (parent === undefined) roots.push(node)
      else parent.children.push(node)
    }
  }
  return roots
}

function stateOf(
  token: SeenToken,
  grants: ReadonlyMap<string, GrantOfToken>,
  policy: ScopePolicy,
  now: Seconds,
): Pick<TokenNode, 'active' | 'why' | 'rule'> {
  const { kind, seq = 0, expiresAt = 0, tokenId = '' } = token
  if (kind === 'id') return { active: now < expiresAt }
  const ending = { kind, seq, expiresAt, tokenId }
  const inactive = whyInactive(ending, grants.get(grantKeyOf(token) ?? ''), policy, now)
  return inactive === undefined ? { active: true } : { active: false, ...inactive }
}

function grantKeyOf({ grantId, tokenId = '' }: SeenToken): string | undefined {
  return grantId === undefined ? undefined : grantOfTokenKey(grantId, tokenId)
}

function sightOf({ tokenId: _id, ...sight }: SeenToken): TokenSight {
  return sight
}

/** Summarizes a flow; consecutive requests of the same step are counted. */
export function lineOf(flow: Flow) {
  const steps: { readonly step: string; times: number; readonly refused: boolean }[] = []
  for (const { step, refused: rejected, times = 1 } of flow.exchanges) {
    const isRejected = rejected !== undefined
    const last = steps.at(-1)
    if (last?.step === step && last.refused === isRejected) last.times += times
    else steps.push({ step, times, refused: isRejected })
  }
  const { id, client, user, startedAt, refused } = flow
  return { id, title: client?.name ?? client?.id ?? `Flow ${id}`, user, startedAt, steps, refused }
}
