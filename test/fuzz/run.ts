import type { StoredKey } from '../../src/domain/model.ts'
import { keepCanary } from './canary.ts'
import { type HttpResponse, openConnection } from './connection.ts'
import { damageDraft, damageSent } from './damage.ts'
import { createDice, type Dice } from './dice.ts'
import { draftRequest } from './drafts.ts'
import { faultOfForm } from './form-faults.ts'
import { learn } from './learn.ts'
import { malform } from './malformed.ts'
import { bytesOf, curlLine, type Sent, writeDraft } from './request.ts'
import { faultOfRights } from './rights.ts'
import { makeKeys, startWorld, type World } from './world.ts'

/** Requests to one server; to repeat one, its world is repeated up to it. */
export const requestsPerWorld = 5000
const canaryEvery = 250
const worldsAtOnce = 4

export interface RunOptions {
  readonly seed: number
  readonly requests: number
  /** Repeats only the world of this request, up to it. */
  readonly only?: number
  /** Checks the canary at every request, to name the one that harmed it. */
  readonly watch?: boolean
  /** Receives every exchange. */
  readonly observe?: (index: number, sent: Sent, responses: readonly HttpResponse[], world: World) => void
}

/** A request whose response breaks a rule. */
export interface Finding {
  readonly index: number
  readonly fault: string
  readonly curl: string
  readonly response: string
}

export interface RunResult {
  readonly sent: number
  readonly statuses: ReadonlyMap<string, number>
  readonly finding?: Finding
}

/** Sends the requests that follow from the seed, and stops at the first response that breaks a rule. */
export async function runFuzz(options: RunOptions): Promise<RunResult> {
  const { seed, requests, only } = options
  const keys = await makeKeys(`${seed} keys`)
  const statuses = new Map<string, number>()
  const worlds = Math.ceil((only === undefined ? requests : only + 1) / requestsPerWorld)
  const numbers = Array.from({ length: worlds }, (_, number) => number)
  const left = only === undefined ? numbers : [Math.floor(only / requestsPerWorld)]
  const findings: Finding[] = []
  let sent = 0
  const worker = async () => {
    for (let number = left.shift(); number !== undefined && findings.length === 0; number = left.shift()) {
      const last = Math.min(requests, (number + 1) * requestsPerWorld, (only ?? Number.POSITIVE_INFINITY) + 1)
      const result = await runWorld(number, last, { ...options, keys, statuses })
      sent += result.sent
      if (result.finding) findings.push(result.finding)
    }
  }
  await Promise.all(Array.from({ length: worldsAtOnce }, worker))
  const [finding] = findings.sort((one, other) => one.index - other.index)
  return { sent, statuses, ...(finding && { finding }) }
}

interface WorldOptions extends RunOptions {
  readonly keys: readonly StoredKey[]
  readonly statuses: Map<string, number>
}

async function runWorld(number: number, end: number, options: WorldOptions): Promise<RunResult> {
  const { seed, keys, statuses } = options
  const dice = createDice(`${seed} ${number}`)
  const world = await startWorld(`${seed} ${number}`, keys)
  const connection = openConnection(world.port)
  const canary = await keepCanary(world)
  const first = number * requestsPerWorld
  const ended = (index: number, finding?: Finding) => ({
    sent: index - first,
    statuses,
    ...(finding && { finding }),
  })
  try {
    for (let index = first; index < end; index += 1) {
      if (dice.oneIn(30)) world.clock.advance(1 + dice.below(10))
      const sent = nextRequest(world, dice)
      const finding = await exchangeOne(index, sent, world, connection, options)
      if (finding) return ended(index + 1, finding)
      const isDue = index % canaryEvery === canaryEvery - 1 || index === end - 1
      const harm = isDue || options.watch ? await canary.faultAfterUse() : undefined
      if (harm !== undefined) return ended(index + 1, await locateHarm(index, harm, sent, world, options))
    }
    const fault = await faultOfRecords(world)
    return ended(end, fault === undefined ? undefined : { index: end - 1, fault, curl: '', response: '' })
  } finally {
    connection.close()
    await world.close()
  }
}

/** What is stored without a right, or missing. */
async function faultOfRecords({
  deps,
  clientCount,
  users,
  site,
  administrator,
}: World): Promise<string | undefined> {
  const stored = await deps.store.list('client')
  const unusable = stored.find(({ id, published }) => published && !site.usable.has(id))
  if (unusable !== undefined) return `${unusable.id} is stored`
  const clients = stored.filter(({ published }) => published === undefined)
  if (clients.length !== clientCount)
    return `${clients.length} clients are stored, ${clientCount} were registered`
  const { addedUsers, userIds } = administrator
  const everyone = await deps.store.list('user')
  if (everyone.some(({ id }) => !userIds.includes(id) && !addedUsers.has(id))) return 'a user was added'
  const known = everyone.filter(({ id }) => userIds.includes(id))
  return JSON.stringify(known) === users ? undefined : 'a user was changed'
}

function nextRequest(world: World, dice: Dice): Sent {
  const sent = damageSent(writeDraft(damageDraft(draftRequest(world, dice), world, dice)), dice)
  return dice.oneIn(33) ? malform(sent, dice) : sent
}

async function exchangeOne(
  index: number,
  sent: Sent,
  world: World,
  connection: ReturnType<typeof openConnection>,
  { statuses, observe }: WorldOptions,
): Promise<Finding | undefined> {
  let responses: readonly HttpResponse[] = []
  let fault: string | undefined
  try {
    responses = await connection.send(bytesOf(sent), sent.method, sent.bytes !== undefined)
    for (const response of responses) {
      const key = `${pathOf(sent)} ${response.status}`
      statuses.set(key, (statuses.get(key) ?? 0) + 1)
      fault ??= faultOfForm(sent, response, world) ?? faultOfRights(sent, response, world)
      learn(sent, response, world)
    }
  } catch (error) {
    fault = error instanceof Error ? (error.stack ?? error.message) : String(error)
  }
  observe?.(index, sent, responses, world)
  fault ??= world.logFaults[0] && `logged: ${world.logFaults[0]}`
  if (fault === undefined) return undefined
  return { index, fault, curl: curlLine(sent, world.origin), response: JSON.stringify(responses, null, 2) }
}

/** The canary is checked only now and then; repeating the same world finds the request that harmed it. */
async function locateHarm(
  index: number,
  harm: string,
  sent: Sent,
  world: World,
  options: WorldOptions,
): Promise<Finding> {
  const late = { index, fault: `the canary: ${harm}`, curl: curlLine(sent, world.origin), response: '' }
  if (options.watch) return late
  const again = await runFuzz({ seed: options.seed, requests: options.requests, only: index, watch: true })
  return again.finding ?? { ...late, fault: `${late.fault}, through some request of the last ${canaryEvery}` }
}

/** The target of a request, for the table of what was reached. */
function pathOf({ target, bytes }: Sent): string {
  if (bytes) return '(malformed)'
  const path = target.split('?', 1)[0] ?? ''
  if (path.startsWith('/api/oauth/register/client_')) return '/api/oauth/register/:client_id'
  if (
    /^\/api\/admin\/v1\/(?:users|groups|grants|sessions|clients|audit|explain|settings|keys|resources)/.test(
      path,
    )
  )
    return path.split('/').slice(0, 5).join('/')
  return /^\/(?:api\/oauth\/\w+|device(?:\/confirm)?|api\/\w+|oauth\/\w+|login|consent|openapi\.json|\.well-known\/[\w-]+|assets\/[\w.-]+|livez|readyz)?$/.test(
    path,
  )
    ? path
    : '(elsewhere)'
}
