import { systemClock } from '../system/system.ts'
import type { Ended } from './browser.ts'
import type { Row } from './check.ts'
import { assertionFields, authMethods, basicMetadata, type Client } from './clients.ts'
import * as expect from './expect.ts'
import type { PostOptions } from './flow.ts'
import type { Lab } from './lab.ts'
import { type Judgement, judge, judgeEach, NotApplicable, type Seen } from './observation.ts'
import { encode, type Params } from './params.ts'
import { endpointNames } from './server.ts'
import { type Change, clientAssertion, createKey, requestObject } from './tokens.ts'

/** What is changed in a request: null leaves a member out. */
type Values = Readonly<Record<string, unknown>>

/** What the requests of a row have in common. */
interface Sender {
  readonly lab: Lab
  readonly row: Row
  readonly client: Client
  readonly change: Values
}

/** How a row ends, by the name that `gets` has. */
const endings: Readonly<Record<string, (ended: Ended, ...codes: readonly string[]) => Judgement>> = {
  code: expect.endsWithCode,
  'no code': expect.endsWithout,
  error: expect.endsWithError,
  page: expect.endsOnPage,
}
const responses: Readonly<Record<string, (seen: Seen, ...codes: readonly string[]) => Judgement>> = {
  tokens: (seen) => judge(seen, expect.tokens),
  rejected: expect.denies,
  error: (seen, ...codes) =>
    judge(seen, expect.noToken, expect.status(400), expect.json, expect.error(...codes)),
  unauthorized: (seen) => judge(seen, expect.noToken, expect.status(401)),
  ok: (seen) => judge(seen, expect.status(200)),
  created: (seen) => judge(seen, expect.status(201), expect.json),
}

/** Requests by the name that `send` has; the name of an endpoint is a form that is posted there. */
const requests: Readonly<Record<string, (sender: Sender) => Promise<Ended | Seen>>> = {
  authorize: ({ lab, row, client, change }) => {
    const { deny = false, plain = false, post = false } = row.how ?? {}
    return lab.authorize(paramsOf(change), {
      client,
      plain,
      decision: deny ? 'deny' : 'approve',
      method: post ? 'POST' : 'GET',
    })
  },
  async exchange({ lab, row, client, change }) {
    const code = await lab.code(paramsOf(row.asked ?? {}), { client })
    const filled = fill(change, { ...variablesOf(lab, client), code: code.code })
    return lab.redeem(code, paramsOf(filled), await senderOf(lab, row))
  },
  async refresh({ lab, row, client, change }) {
    const { refreshToken, code } = await lab.refreshable({ client })
    const filled = fill(change, { ...variablesOf(lab, client), refresh_token: refreshToken, code })
    return lab.refresh(client, refreshToken, paramsOf(filled), await senderOf(lab, row))
  },
  async push({ lab, row, client, change }) {
    const { params } = await lab.request(paramsOf(change), client)
    return lab.push(params, row.as === 'nobody' ? undefined : client)
  },
  async proof({ lab, client, change }) {
    return lab.redeem(await lab.code({}, { client }), {}, { key: lab.key, change: changeOf(change) })
  },
  async assertion({ lab, client, change }) {
    const assertion = clientAssertion(client.key ?? lab.key, client.id, lab.server.issuer, changeOf(change))
    const fields = { client_id: client.id, ...assertionFields(assertion) }
    return lab.redeem(await lab.code({}, { client }), fields, { client: undefined, key: lab.key })
  },
  async 'request object'({ lab, row, client, change }) {
    const { params } = await lab.request(paramsOf(row.asked ?? {}), client)
    const request = requestObject(
      client.key ?? lab.key,
      client.id,
      lab.server.issuer,
      params,
      changeOf(change),
    )
    const sent = { client_id: client.id, request, ...paramsOf(objectOf(change['query'])) }
    if (lab.traits.pushes) return lab.push(sent, client)
    const url = `${lab.server.endpoint('authorization_endpoint')}?${encode(sent)}`
    return lab.browser.visit({ url }, { redirectUri: client.redirectUri })
  },
  register: ({ lab, client, change }) =>
    lab.clients.post({ ...basicMetadata(client.method, client.key), ...change }),
}

const correct = new WeakMap<Lab, Promise<unknown>>()

/** Sends a correct request, once a run. @throws {NotTestable} if no code comes: then its absence shows nothing. */
async function assertCodes(lab: Lab): Promise<void> {
  const code = correct.get(lab) ?? lab.code()
  correct.set(lab, code)
  await code
}

/** Runs a check that clauses.json has as data: sends each request of the row, and judges each response. */
export async function runRow(lab: Lab, row: Row): Promise<Judgement> {
  for (const need of row.needs ?? []) demand(lab, need)
  const client = await clientFor(lab, row.by)
  if (row.send === 'authorize' && row.gets !== 'code') await assertCodes(lab)
  const judged: Judgement[] = []
  for (const raw of [row.with ?? {}].flat()) {
    const sender = { lab, row, client, change: fill(raw, variablesOf(lab, client)) }
    judged.push(judgeBy(row, await send(sender)))
  }
  return judgeEach(...judged)
}

function send(sender: Sender): Promise<Ended | Seen> {
  const { lab, row, client, change } = sender
  const request = requests[row.send ?? '']
  if (request !== undefined) return request(sender)
  const endpoint = endpointNames.find((name) => name === row.send)
  if (endpoint === undefined) throw new Error(`there is no request ${row.send}`)
  const options = row.by === 'nobody' ? {} : { client }
  return row.how?.query === true
    ? lab.post(endpoint, {}, { ...options, query: paramsOf(change) })
    : lab.post(endpoint, paramsOf(change), options)
}

function judgeBy({ gets = '', errors = [] }: Row, came: Ended | Seen): Judgement {
  if ('kind' in came) {
    const ending = endings[gets]
    if (ending !== undefined) return ending(came, ...errors)
  } else {
    // What a push rejected is how the request ended.
    const response = responses[gets === 'no code' ? 'rejected' : gets]
    if (response !== undefined) return response(came, ...errors)
  }
  throw new Error(`there is no end ${gets}`)
}

/** @throws {NotApplicable} if the metadata lack a member, or `member value` in its list. */
function demand({ server }: Lab, need: string): void {
  const [member = '', value] = need.split(' ')
  if (server.metadata[member] === undefined) throw new NotApplicable(`the metadata have no ${member}`)
  if (
    value !== undefined &&
    server.metadata[member] !== (value === 'true') &&
    !server.supports(member, value)
  )
    throw new NotApplicable(`${member} has no ${value}`)
}

function clientFor(lab: Lab, by = 'main'): Promise<Client> {
  if (by === 'confidential') return lab.confidential()
  if (by === 'public') return lab.client(lab.traits.methods[0] === 'none' ? 'none' : 'main')
  const method = authMethods.find((name) => name === by)
  return lab.client(method ?? (by === 'other' ? 'other' : 'main'))
}

/** Another client sends the request than the one that asked. */
async function senderOf(lab: Lab, { as }: Row): Promise<PostOptions> {
  return as === undefined ? {} : { client: as === 'nobody' ? undefined : await clientFor(lab, as) }
}

function variablesOf(lab: Lab, client: Client): Values {
  const { token_endpoint: tokenEndpoint } = lab.server.metadata
  return {
    issuer: lab.server.issuer,
    token_endpoint: tokenEndpoint,
    scope: lab.scope(),
    client_id: client.id,
    redirect_uri: client.redirectUri,
  }
}

/** Puts values in the place of `$name`; `$now+60` is a time in seconds. */
function fill(value: Values, variables: Values): Values {
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one, variables)]))
}

function filled(value: unknown, variables: Values): unknown {
  if (Array.isArray(value)) return value.map((one) => filled(one, variables))
  if (typeof value === 'object' && value !== null) return fill({ ...value }, variables)
  if (typeof value !== 'string') return value ?? undefined
  const time = /^\$now([+-]\d+)$/.exec(value)
  if (time !== null) return systemClock() + Number(time[1])
  return value.replaceAll(/\$(\w+)/g, (whole, name: string) => String(variables[name] ?? whole))
}

function paramsOf(values: Values): Params {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.map(String) : value === undefined ? undefined : String(value),
    ]),
  )
}

function objectOf(value: unknown): Values {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

/** What is changed in a JWT; with `signer` a key signs that is not the client's. */
function changeOf({ header, claims, signer }: Values): Change {
  return {
    header: objectOf(header),
    claims: objectOf(claims),
    ...(signer !== undefined && { signer: createKey() }),
  }
}
