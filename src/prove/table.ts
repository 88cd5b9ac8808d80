import type { Ended } from './browser.ts'
import type { Row, Step } from './check.ts'
import { authMethods, basic, type Client } from './clients.ts'
import * as expect from './expect.ts'
import type { Lab } from './lab.ts'
import {
  type Judgement,
  judge,
  judgeEach,
  NotApplicable,
  NotRun,
  NotTestable,
  type Seen,
} from './observation.ts'
import { endpointNames, membersOf } from './server.ts'
import { type Came, requests, type Scene } from './steps.ts'
import { differenceFrom, filled, type Values } from './values.ts'

/** How a request at the authorization endpoint ends, by the name that `gets` has. */
const endings: Readonly<Record<string, (ended: Ended, ...codes: readonly string[]) => Judgement>> = {
  code: expect.endsWithCode,
  'no code': expect.endsWithout,
  error: expect.endsWithError,
  page: expect.endsOnPage,
  callback: expect.endsAtClient,
}
const responses: Readonly<Record<string, (seen: Seen, ...codes: readonly string[]) => Judgement>> = {
  tokens: (seen) => judge(seen, expect.tokens),
  rejected: expect.denies,
  // What a push rejected is how the request ended.
  'no code': expect.denies,
  error: (seen, ...codes) =>
    judge(seen, expect.noToken, expect.status(400), expect.json, expect.error(...codes)),
  unauthorized: (seen) => judge(seen, expect.noToken, expect.status(401)),
  ok: (seen) => judge(seen, expect.status(200)),
  created: (seen) => judge(seen, expect.status(201), expect.json),
}

/** Runs a check that clauses.json has as data: takes its steps, and judges what each brings. */
export async function runRow(lab: Lab, row: Row): Promise<Judgement> {
  for (const need of row.needs ?? []) if (!need.startsWith('client.')) demand(lab, need)
  await assertCorrect(lab, row)
  if (row.steps !== undefined) return runSteps(lab, row, row.steps)
  const judged: Judgement[] = []
  for (const one of [row.with].flat()) judged.push(await runSteps(lab, row, [stepOf(row, one)]))
  return judgeEach(...judged)
}

/** The one step of a row without steps. */
function stepOf({ with: _all, steps: _none, send = '', ...row }: Row, one: Values | undefined): Step {
  return { ...row, send, ...(one !== undefined && { with: one }) }
}

async function runSteps(lab: Lab, row: Row, steps: readonly Step[]): Promise<Judgement> {
  const client = await clientFor(lab, row.by, row.registers)
  for (const need of row.needs ?? [])
    if (need.startsWith('client.') && client.metadata[need.slice('client.'.length)] === undefined)
      throw new NotTestable(`the file of the client has no ${need.slice('client.'.length)}`)
  const { metadata, issuer } = lab.server
  const texts = Object.entries(metadata).filter(([, value]) => typeof value === 'string')
  const values = {
    ...Object.fromEntries(texts),
    issuer,
    origin: new URL(issuer).origin,
    scope: lab.scope(),
    client_id: client.id,
    client_secret: client.secret,
    redirect_uri: client.redirectUri,
    wrong_basic: basic(client.id, 'wrong'),
    ...(JSON.stringify(steps).includes('$other_id') && {
      other_id: (await clientFor(lab, 'other', row.registers)).id,
    }),
  }
  const scene = {
    lab,
    client,
    values,
    registers: row.registers,
    browser: row.fresh === true ? lab.freshBrowser() : lab.browser,
  }
  const judged: Judgement[] = []
  for (const step of steps) {
    const judgement = judgeBy(step, await take(scene, step), values)
    judged.push(judgement)
    if (judgement.fault !== undefined) break
  }
  return judgeEach(...judged)
}

async function take(scene: Scene, step: Step): Promise<Came> {
  const { lab, client, values } = scene
  const request = requests[step.send]
  if (request === undefined) throw new Error(`there is no request ${step.send}`)
  const sends = step.as ?? (endpointNames.some((name) => name === step.send) ? step.by : undefined)
  const by =
    sends === 'nobody'
      ? undefined
      : sends === undefined
        ? client
        : await clientFor(lab, sends, scene.registers)
  const came = await request({ scene, step, by, change: () => filled({ ...step.with }, values) })
  const members = 'status' in came ? membersOf(came) : undefined
  for (const name of step.keep ?? []) Object.assign(values, { [name]: members?.[name] })
  return came
}

function judgeBy({ gets, errors = [], expect: wanted }: Step, came: Came, values: Values): Judgement {
  if (!('kind' in came) && !('status' in came)) return came
  const rule = gets === undefined ? undefined : 'kind' in came ? endings[gets] : responses[gets]
  if (gets !== undefined && rule === undefined) throw new Error(`there is no end ${gets}`)
  // `as`: the rules of what came, chosen above.
  const judged = (rule as ((one: Came, ...codes: readonly string[]) => Judgement) | undefined)?.(
    came,
    ...errors,
  )
  const seen = 'kind' in came ? [came.seen] : [came]
  if (judged?.fault !== undefined || wanted === undefined) return judged ?? { seen }
  return { seen, fault: differenceFrom(wanted, came, values) }
}

const known = new WeakMap<Lab, Map<string, Promise<Judgement>>>()
/** What a correct request of these gets. */
const correct: Readonly<Record<string, string>> = {
  authorize: 'code',
  'request object': 'code',
  assertion: 'tokens',
  proof: 'tokens',
}

/**
 * That a wrong request is rejected shows nothing where a correct one is, too.
 * @throws {NotTestable}
 */
async function assertCorrect(lab: Lab, { send = '', gets, by = 'main' }: Row): Promise<void> {
  const wanted = correct[send]
  if (wanted === undefined || gets === wanted) return
  const asked = send === 'authorize' ? 'main' : by
  const ran = known.get(lab) ?? new Map<string, Promise<Judgement>>()
  known.set(lab, ran)
  const name = `${send} ${asked}`
  const run = ran.get(name) ?? runSteps(lab, { by: asked, level: '', wants: '' }, [{ send, gets: wanted }])
  ran.set(name, run)
  const { fault } = await run
  if (fault !== undefined) throw new NotTestable(`a correct request gets no ${wanted}: ${fault}`)
}

/** @throws {NotApplicable} if the metadata lack a member, or `member value` in its list. */
function demand({ server }: Lab, need: string): void {
  if (need === 'https') {
    if (server.issuer.startsWith('https:')) return
    throw new NotRun('an https issuer')
  }
  const [member = '', value] = need.split(' ')
  if (server.metadata[member] === undefined) throw new NotApplicable(`the metadata have no ${member}`)
  if (
    value !== undefined &&
    server.metadata[member] !== (value === 'true') &&
    !server.supports(member, value)
  )
    throw new NotApplicable(`${member} has no ${value}`)
}

function clientFor(lab: Lab, by = 'main', more?: Values): Promise<Client> {
  if (by === 'cimd') return lab.documented()
  if (by === 'confidential') return lab.confidential()
  if (by === 'public') return lab.client(lab.traits.methods[0] === 'none' ? 'none' : 'main', more)
  const method = authMethods.find((name) => name === by)
  return lab.client(method ?? (by === 'other' ? 'other' : 'main'), more)
}
