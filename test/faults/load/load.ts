import { setTimeout } from 'node:timers/promises'
import type { Dice } from '../../fuzz/dice.ts'
import {
  exchange,
  type Issuer,
  obtainCode,
  refresh,
  register,
  type TestClient,
  type Tokens,
} from '../../helpers/flow.ts'
import { devAlice } from '../../helpers/process.ts'
import { UserAgent } from '../../helpers/user-agent.ts'
import { type Approval, createLedger, type Ledger, revoke } from './ledger.ts'
import { putOff } from './put-off.ts'

/** Clients and users at work, one connection each, who record the responses. */
export interface Load {
  readonly ledger: Ledger
  begin(): void
  /** Lets all workers finish what they began. */
  end(): Promise<void>
}

interface Worker {
  readonly agent: UserAgent
  readonly clients: TestClient[]
  readonly approvals: Approval[]
  /** Clients whose consents are remembered and that have none yet. */
  readonly operatorClients: TestClient[]
  /** What its request under way is about. */
  touching?: Approval | undefined
}

type Action = (worker: Worker) => Promise<void>

const devBob = { username: 'bob', password: 'bob-in-dev' }

/** What a worker does next, by weight. */
const weights = {
  register: 2,
  approve: 4,
  consent: 1,
  redeem: 5,
  rotate: 10,
  replay: 1,
  revoke: 2,
  revokeOne: 2,
}

/** A load on this server; each of the clients is consented to once. */
export function createLoad(
  server: Issuer,
  dice: Dice,
  operatorClients: readonly TestClient[] = [],
  workerCount = 6,
): Load {
  const ledger = createLedger()
  const actions = createActions(server, dice, ledger)
  const users = [devAlice, devBob]
  const workers = Array.from({ length: workerCount }, (_, index) => ({
    agent: new UserAgent(server.issuer),
    user: users[index % users.length] ?? devAlice,
    clients: [],
    approvals: [],
    operatorClients: operatorClients.filter((_each, at) => at % workerCount === index),
  }))
  let [isOver, running] = [true, Promise.resolve<unknown>(undefined)]
  const work = async (worker: Worker) => {
    while (!isOver) {
      const name = dice.weighted(weights)
      try {
        await actions[name](worker)
      } catch (error) {
        // The request may or may not have had an effect.
        const wait = putOff(error instanceof Error ? error.cause : undefined)
        if (wait !== undefined) {
          ledger.unavailable += 1
          if (!wait) ledger.faults.push(`${name}: 503 that says nothing of when to come back`)
          await setTimeout(Number(wait) * 1000)
          continue
        }
        // The connection broke, and the server is not reachable for now.
        if (!(error instanceof TypeError)) ledger.faults.push(`${name}: ${error}`)
        else ledger.lost += 1
        return
      } finally {
        if (worker.touching !== undefined) worker.touching.touched += 1
        worker.touching = undefined
      }
    }
  }
  return {
    ledger,
    begin: () => {
      isOver = false
      running = Promise.all(workers.map(work))
    },
    end: async () => {
      isOver = true
      await running
    },
  }
}

/** Counts the beginning of a request; `work` counts its end. */
function touch(worker: Worker, approval: Approval): void {
  approval.touched += 1
  worker.touching = approval
}

/** The response, unless it is a 503. */
async function unlessUnavailable(asked: Promise<Response>): Promise<Response> {
  const response = await asked
  if (response.status !== 503) return response
  throw new Error(await response.text(), { cause: response })
}

function createActions(
  server: Issuer,
  dice: Dice,
  ledger: Ledger,
): Readonly<Record<keyof typeof weights, Action>> {
  const acknowledge = (what: string) => {
    ledger.acknowledged[what] = (ledger.acknowledged[what] ?? 0) + 1
  }
  const fault = async (what: string, response: Response) =>
    void ledger.faults.push(`${what}: ${response.status} ${await response.text()}`)
  const one = ({ approvals }: Worker, isFit: (approval: Approval) => boolean) =>
    dice.draw(approvals.filter(isFit))
  const isLive = ({ refresh, ended, unsure }: Approval) => refresh !== undefined && !ended && !unsure

  async function addClient({ clients }: Worker): Promise<void> {
    const client = await register(server)
    acknowledge('registration')
    clients.push(client)
    ledger.clients.push(client)
  }

  async function approve({ approvals, clients, agent, ...rest }: Worker): Promise<void> {
    const client = dice.draw(clients)
    if (client === undefined) return
    const code = await obtainCode(server, client, { agent, ...rest })
    acknowledge('code')
    const [access, revokedAccess, used] = [[], [], []]
    const state = {
      touched: 0,
      codeSent: false,
      redemptions: 0,
      refresh: undefined,
      ended: false,
      unsure: false,
    }
    const approval = { client, code, access, revokedAccess, used, ...state }
    approvals.push(approval)
    ledger.approvals.push(approval)
  }

  async function consent({ operatorClients, agent, ...rest }: Worker): Promise<void> {
    const client = operatorClients.shift()
    if (client === undefined) return
    await obtainCode(server, client, { agent, ...rest })
    acknowledge('consent')
    ledger.consents.push({ client, agent })
  }

  /** Sometimes twice at once: then one gets tokens, and the other ends them. */
  async function redeem(worker: Worker): Promise<void> {
    const approval = one(worker, (each) => each.redemptions === 0 && !each.ended && !each.unsure)
    if (approval === undefined) return
    const { client, code, codeSent } = approval
    const times = dice.oneIn(8) ? 2 : 1
    touch(worker, approval)
    approval.codeSent = true
    approval.unsure = times === 2
    const responses = await Promise.all(
      Array.from({ length: times }, () => unlessUnavailable(exchange(server, client, code))),
    )
    for (const response of responses.filter(({ status }) => status === 200)) {
      approval.redemptions += 1
      const tokens = (await response.json()) as Tokens
      approval.access.push(tokens.access_token)
      approval.refresh = tokens.refresh_token
      acknowledge('token')
    }
    if (approval.redemptions > 1) ledger.faults.push('a code was redeemed twice')
    const rejected = responses.find(({ status }) => status !== 200)
    approval.unsure = false
    if (rejected === undefined) return
    // A code that was sent before its response was lost may have been redeemed then.
    if (rejected.status !== 400 || (times === 1 && !codeSent)) await fault('a code is lost', rejected)
    else approval.ended = true
  }

  /** Also after a response was lost: the same refresh token gets a response again. */
  async function rotate(worker: Worker): Promise<void> {
    const approval = one(worker, isLive)
    if (approval?.refresh === undefined) return
    touch(worker, approval)
    const old = approval.refresh
    const response = await unlessUnavailable(refresh(server, approval.client, old))
    if (response.status !== 200) return fault('a refresh token is lost', response)
    const tokens = (await response.json()) as Tokens
    approval.used.push(old)
    approval.refresh = tokens.refresh_token
    approval.access.push(tokens.access_token)
    acknowledge('rotation')
  }

  async function replay(worker: Worker): Promise<void> {
    const approval = one(worker, (each) => isLive(each) && each.used.length > 1)
    const [old] = approval?.used ?? []
    if (approval === undefined || old === undefined) return
    await ending(worker, approval, refresh(server, approval.client, old), 400, 'replay')
  }

  async function revokeAll(worker: Worker): Promise<void> {
    const approval = one(worker, (each) => each.refresh !== undefined && !each.ended)
    if (approval?.refresh === undefined) return
    await ending(worker, approval, revoke(server, approval, approval.refresh), 200, 'revocation')
  }

  /** Requests that end a grant once their response is a success. */
  async function ending(
    worker: Worker,
    approval: Approval,
    asked: Promise<Response>,
    status: number,
    what: string,
  ): Promise<void> {
    touch(worker, approval)
    approval.unsure = true
    const response = await unlessUnavailable(asked)
    if (response.status !== status) return fault(what, response)
    await response.text()
    approval.unsure = false
    approval.ended = true
    acknowledge(what)
  }

  async function revokeOne(worker: Worker): Promise<void> {
    const approval = one(worker, (each) => isLive(each) && each.access.length > 1)
    const token = approval?.access.shift()
    if (approval === undefined || token === undefined) return
    touch(worker, approval)
    const response = await unlessUnavailable(revoke(server, approval, token))
    if (response.status !== 200) return fault('revocation of an access token', response)
    await response.text()
    approval.revokedAccess.push(token)
    acknowledge('revocation of an access token')
  }

  return { register: addClient, approve, consent, redeem, rotate, replay, revoke: revokeAll, revokeOne }
}
