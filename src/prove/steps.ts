import type { Ended } from './browser.ts'
import type { Step } from './check.ts'
import { assertionFields, basicMetadata, type Client, originOf } from './clients.ts'
import { observe } from './expect.ts'
import type { Code } from './flow.ts'
import type { Lab } from './lab.ts'
import { type Judgement, NotApplicable, type Seen } from './observation.ts'
import { encode, formHeaders, type Params } from './params.ts'
import { type Document, endpointNames } from './server.ts'
import { type Change, clientAssertion, createKey, requestObject } from './tokens.ts'
import { filled, type Values } from './values.ts'

/** What the steps of a check that is data have in common. */
export interface Scene {
  readonly lab: Lab
  readonly client: Client
  readonly browser: Lab['browser']
  /** What `$name` stands for: members of the metadata, of responses that were kept, and the tokens of a grant. */
  readonly values: Record<string, unknown>
  /** Metadata that its clients are registered with. */
  readonly registers?: Values | undefined
  /** The code of the last grant. */
  code?: Code
}

/** A step that is taken. */
interface Sender {
  readonly scene: Scene
  readonly step: Step
  /** What it changes in a correct request. */
  readonly change: () => Values
  /** The client that sends it, if one does. */
  readonly by: Client | undefined
}

/** The result of a step: the end of an authorization request, a response, or its own judgement. */
export type Came = Ended | Seen | Judgement

/** Requests by the name that `send` has; the name of an endpoint is a form that is posted there. */
export const requests: Readonly<Record<string, (sender: Sender) => Promise<Came>>> = {
  authorize({ scene: { lab, client, browser }, step, change }) {
    const { deny = false, plain = false, post = false, look = false } = step.how ?? {}
    const how = { client, browser, plain, stopsAtPage: look } as const
    const decision = deny ? 'deny' : 'approve'
    return lab.authorize(paramsOf(change()), { ...how, decision, method: post ? 'POST' : 'GET' })
  },
  /** Tokens of the client of the scene. */
  async grant({ scene, step, change }) {
    const { lab, client, browser, values } = scene
    const grant = await lab.grant(
      paramsOf(change()),
      { client, browser },
      step.how?.dpop ? { key: lab.key } : {},
    )
    const { code, accessToken, refreshToken, idToken, members } = grant
    scene.code = grant
    Object.assign(values, { code, granted: members['scope'] ?? lab.scope() })
    Object.assign(values, { access_token: accessToken, refresh_token: refreshToken, id_token: idToken })
    return grant.seen
  },
  async code({ scene, change }) {
    scene.code = await scene.lab.code(paramsOf(change()), scene)
    return scene.code.ended
  },
  async exchange({ scene, step, change, by }) {
    const { lab, client, browser, values } = scene
    const asked = paramsOf(filled(step.asked ?? {}, values))
    scene.code ??= await lab.code(asked, { client, browser })
    values['code'] = scene.code.code
    return lab.redeem(scene.code, paramsOf(change()), step.as === undefined ? {} : { client: by })
  },
  async refresh({ scene, step, change, by }) {
    const { lab, client, values } = scene
    if (values['refresh_token'] === undefined)
      await requests['grant']?.({ scene, step, by, change: () => ({}) })
    const token = String(filled('$refresh_token', values))
    return lab.refresh(client, token, paramsOf(change()), step.as === undefined ? {} : { client: by })
  },
  async push({ scene: { lab, client }, change, by }) {
    const { params } = await lab.request(paramsOf(change()), client)
    return lab.push(params, client, by)
  },
  async proof({ scene: { lab, client }, change }) {
    return lab.redeem(await lab.code({}, { client }), {}, { key: lab.key, change: changeOf(change()) })
  },
  async assertion({ scene: { lab, client }, change }) {
    const assertion = clientAssertion(client.key ?? lab.key, client.id, lab.server.issuer, changeOf(change()))
    const fields = { client_id: client.id, ...assertionFields(assertion) }
    return lab.redeem(await lab.code({}, { client }), fields, { client: undefined, key: lab.key })
  },
  async 'request object'({ scene: { lab, client, values }, step, change }) {
    const { params } = await lab.request(paramsOf(filled(step.asked ?? {}, values)), client)
    const changed = change()
    const key = client.key ?? lab.key
    const request = requestObject(key, client.id, lab.server.issuer, params, changeOf(changed))
    return lab.begin({ client_id: client.id, request, ...paramsOf(changed['query']) }, client)
  },
  register: ({ scene: { lab, client }, change }) =>
    lab.clients.post({ ...basicMetadata(client.method, client.key), ...change() }),
  userinfo({ scene: { lab, values }, step, change }) {
    const token = String(filled(step.token ?? '$access_token', values))
    const isForm = step.with !== undefined
    const form = {
      method: 'POST',
      body: encode(paramsOf(change())),
      headers: { ...formHeaders, ...headersOf(step, values) },
    }
    return lab.userinfo(token, isForm ? form : { headers: headersOf(step, values) })
  },
  /** The access token works, and what `inactive` has no longer does. */
  async active({ scene: { lab, client, values } }) {
    const { active, seen } = await lab.isActive(String(filled('$access_token', values)), client)
    return observe(active, 'the access token does not work', seen)
  },
  async inactive({ scene: { lab, client, values } }) {
    const { active, seen } = await lab.isActive(String(filled('$access_token', values)), client)
    return observe(!active, 'the access token still works', seen)
  },
  async oauth({ scene: { lab } }) {
    return documentOf(lab.server.oauth, 'there is no metadata document of RFC 8414').seen
  },
  async openid({ scene: { lab } }) {
    return documentOf(lab.server.openid, 'there is no OpenID configuration').seen
  },
  async metadata({ scene: { lab } }) {
    return documentOf(lab.server.oauth ?? lab.server.openid, 'there is no metadata document').seen
  },
  /** The metadata of the API that the issuer is itself, RFC 9728 §3. */
  async resource({ scene: { lab, values } }) {
    const path = new URL(lab.server.issuer).pathname.replace(/\/$/, '')
    const url = `${String(values['origin'])}/.well-known/oauth-protected-resource${path}`
    const seen = await lab.wire.send({ url })
    if (seen.status === 404) throw new NotApplicable('the issuer has no metadata of a protected resource')
    return seen
  },
  /** A page, and what the user does there. */
  async visit({ scene: { browser, client, values }, step, change }) {
    const { post = false, deny = false, look = false, leave = false } = step.how ?? {}
    const url = String(filled(step.url ?? '', values))
    const params = encode(paramsOf(change()))
    const target = post
      ? { url, method: 'POST', headers: { ...formHeaders, origin: originOf(client) }, body: params }
      : { url: params === '' ? url : `${url}${url.includes('?') ? '&' : '?'}${params}` }
    const redirectUri = String(filled(step.to ?? client.redirectUri, values))
    const decision = deny ? 'deny' : leave ? 'sign out' : 'approve'
    const typed = step.deviceCode === undefined ? {} : { deviceCode: filled(step.deviceCode, values) }
    return browser.visit(target, { redirectUri, decision, stopsAtPage: look, ...typed })
  },
  async wait({ scene: { lab, values }, step }) {
    await lab.wait(Number(filled(step.token, values)))
    return { seen: [] }
  },
  ...Object.fromEntries(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) => [method, plainly(method)])),
  ...Object.fromEntries(endpointNames.map((endpoint) => [endpoint, postTo(endpoint)])),
}

function postTo(endpoint: (typeof endpointNames)[number]) {
  return ({ scene: { lab, values }, step, change, by }: Sender) => {
    const isBound = lab.traits.dpop && endpoint === 'token_endpoint'
    const options = { client: by, headers: headersOf(step, values), ...(isBound && { key: lab.key }) }
    return step.how?.query === true
      ? lab.post(endpoint, {}, { ...options, query: paramsOf(change()) })
      : lab.post(endpoint, paramsOf(change()), options)
  }
}

/** A request to a URL, with a bearer token if the step has one, and its members as JSON. */
function plainly(method: string) {
  return ({ scene: { lab, values }, step, change }: Sender) =>
    lab.wire.send({
      method,
      url: String(filled(step.url ?? '', values)),
      headers: {
        accept: 'application/json',
        ...(step.token !== undefined && { authorization: `Bearer ${String(filled(step.token, values))}` }),
        ...(step.with !== undefined && { 'content-type': 'application/json' }),
        ...headersOf(step, values),
      },
      ...(step.with !== undefined && { body: JSON.stringify(change()) }),
    })
}

function headersOf({ headers = {} }: Step, values: Values): Readonly<Record<string, string>> {
  return filled(headers, values)
}

/** @throws {NotApplicable} */
function documentOf(document: Document | undefined, why: string): Document {
  if (document === undefined) throw new NotApplicable(why)
  return document
}

/** Parameters of a form: lists are repeated. */
function paramsOf(values: unknown): Params {
  return Object.fromEntries(
    Object.entries(objectOf(values)).map(([name, value]) => [
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
