import { setTimeout } from 'node:timers/promises'
import {
  authorizationUrl,
  callApi,
  exchange,
  type Issuer,
  postAs,
  refresh,
  type TestClient,
  type Tokens,
} from '../../helpers/flow.ts'
import type { UserAgent } from '../../helpers/user-agent.ts'
import { confirmOrAbort } from './put-off.ts'

/** What is known of one grant, only from the responses that arrived. */
export interface Approval {
  readonly client: TestClient
  readonly code: string
  /** How often a request about it began or ended. The same even number twice: nothing happened in between. */
  touched: number
  /** Whether a client tried to redeem the code, with or without a response. */
  codeSent: boolean
  /** Token responses to its code. */
  redemptions: number
  access: string[]
  /** Access tokens that were revoked alone. */
  revokedAccess: string[]
  refresh: string | undefined
  /** Refresh tokens that were rotated, oldest first. */
  used: string[]
  /** A revocation, or a replay that revokes, got a response. */
  ended: boolean
  /** One was sent, and its response was lost. */
  unsure: boolean
}

/** A consent that was given once and is remembered, with the browser of its user. */
export interface RememberedConsent {
  readonly client: TestClient
  readonly agent: UserAgent
}

/** Everything a server has acknowledged, and every response that contradicts it. */
export interface Ledger {
  readonly clients: TestClient[]
  readonly consents: RememberedConsent[]
  readonly approvals: Approval[]
  readonly faults: string[]
  /** Responses by request. */
  readonly acknowledged: Record<string, number>
  /** Requests without a response. */
  lost: number
  /** Requests that got a 503. Whether they had an effect is as unknown. */
  unavailable: number
}

export function createLedger(): Ledger {
  return { clients: [], consents: [], approvals: [], faults: [], acknowledged: {}, lost: 0, unavailable: 0 }
}

/** Resolves once each kind of request was acknowledged this often; how long that takes depends on the machine. */
export async function atLeast(
  { acknowledged }: Ledger,
  kinds: readonly string[],
  times: number,
): Promise<void> {
  while (kinds.some((kind) => (acknowledged[kind] ?? 0) < times)) await setTimeout(50)
}

/** Asks the server about all of this, eight requests at a time; contradictions are added to the faults. */
export async function check(
  server: Issuer,
  ledger: Ledger,
  { clients, consents, approvals }: Pick<Ledger, 'clients' | 'consents' | 'approvals'>,
): Promise<void> {
  const questions = [
    ...clients.map((client) => () => checkClient(server, client)),
    ...approvals.map((approval) => () => checkApproval(server, approval)),
    // One browser sends one request after the other.
    async () => (await inTurn(consents, (consent) => checkConsent(server, consent))).flat(),
  ]
  const ask = async () => {
    for (let next = questions.shift(); next !== undefined; next = questions.shift()) {
      ledger.faults.push(...(await next()))
    }
  }
  await Promise.all(Array.from({ length: 8 }, ask))
}

/** Ends every grant in the way that shows whether a code or a refresh token works a second time. */
export async function checkSingleUse(server: Issuer, ledger: Ledger): Promise<void> {
  await inTurn(ledger.approvals, async (approval) => {
    if (approval.unsure) return
    const isOpen = approval.redemptions === 0 && !approval.ended
    ledger.faults.push(...(await (isOpen ? useOpenCode : useOldToken)(server, approval)))
  })
}

async function checkClient(server: Issuer, client: TestClient): Promise<readonly string[]> {
  const response = await confirmOrAbort(() => exchange(server, client, 'x'))
  const { error } = (await response.json()) as { readonly error?: string }
  return error === 'invalid_grant' ? [] : [`the client ${client.id} is lost: ${error}`]
}

async function checkConsent(
  server: Issuer,
  { client, agent }: RememberedConsent,
): Promise<readonly string[]> {
  const landing = await confirmOrAbort(() => agent.open(authorizationUrl(server, client, { prompt: 'none' })))
  if (landing.at === 'redirect' && landing.location.searchParams.has('code')) return []
  const where = landing.at === 'redirect' ? landing.location.search : `page ${landing.page.status}`
  return [`the consent for ${client.id} is lost: ${where}`]
}

/** Whether its tokens are as valid as was acknowledged. Changes nothing. */
async function checkApproval(server: Issuer, approval: Approval): Promise<readonly string[]> {
  if (approval.unsure) return []
  const { ended, access, revokedAccess, refresh: current, client } = approval
  const rows = [
    ...access.map((token) => ({ token, status: ended ? 401 : 200 })),
    ...revokedAccess.map((token) => ({ token, status: 401 })),
  ]
  const faults = await inTurn(rows, async ({ token, status }) => {
    const response = await confirmOrAbort(() => callApi(server, '/api/oauth/userinfo', token))
    await response.text()
    return response.status === status ? [] : [`an access token gets ${response.status}, not ${status}`]
  })
  if (ended && current !== undefined) {
    const response = await confirmOrAbort(() => refresh(server, client, current))
    await response.text()
    if (response.status !== 400) faults.push([`a revoked refresh token gets ${response.status}`])
  }
  return faults.flat()
}

async function useOpenCode(server: Issuer, { client, code, codeSent }: Approval): Promise<readonly string[]> {
  let times = 0
  const first = await confirmOrAbort(() => {
    times += 1
    return exchange(server, client, code)
  })
  const second = await confirmOrAbort(() => exchange(server, client, code))
  const { access_token: access = '' } = (await first.json()) as Partial<Tokens>
  const after = await confirmOrAbort(() => callApi(server, '/api/oauth/userinfo', access))
  const statuses = [first.status, second.status, after.status].join()
  // A client that lost the response, or got a 503, does not know whether the code was redeemed.
  const isFine = statuses === '200,400,401' || ((codeSent || times > 1) && statuses === '400,400,401')
  return isFine ? [] : [`an open code, used twice, gets ${statuses}`]
}

async function useOldToken(server: Issuer, approval: Approval): Promise<readonly string[]> {
  const { client, code, refresh: current, used, ended } = approval
  const faults: string[] = []
  if (current !== undefined && !ended) {
    const next = await confirmOrAbort(() => refresh(server, client, current))
    if (next.status !== 200) faults.push(`the current refresh token gets ${next.status}`)
    approval.used.push(current)
    approval.refresh = ((await next.json()) as Partial<Tokens>).refresh_token
  }
  // The token just rotated may be sent again, as the response could have been lost. No older one may.
  const [oldest] = used.slice(0, -1)
  const again = await confirmOrAbort(() =>
    oldest === undefined ? exchange(server, client, code) : refresh(server, client, oldest),
  )
  if (again.status !== 400) faults.push(`what was used gets ${again.status} the second time`)
  return [...faults, ...(await checkApproval(server, { ...approval, ended: true }))]
}

async function inTurn<T, R>(list: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (const item of list) results.push(await work(item))
  return results
}

/** Revokes until there is a response. */
export async function revoke(server: Issuer, { client }: Approval, token: string): Promise<Response> {
  return await postAs(server, client, '/api/oauth/revoke', { token })
}
