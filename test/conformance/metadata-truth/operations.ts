import { addDeviceClient } from '../../helpers/device.ts'
import { obtainCode, redirectUri, refresh, type TestClient, type Tokens } from '../../helpers/flow.ts'
import type { TestServer } from '../../helpers/server.ts'
import type { UserAgent } from '../../helpers/user-agent.ts'
import { type Json, json } from '../../helpers/wire.ts'
import type { Call, Described } from './description.ts'

/** What operations are called with. */
export interface Scene {
  readonly server: TestServer
  readonly client: TestClient
  /** Authenticates by HTTP Basic. */
  readonly confidential: TestClient
  readonly agent: UserAgent
  readonly tokens: (scope: string) => Promise<Tokens>
  /** An access token with every scope, and one with none for the API. */
  readonly able: string
  readonly unable: string
}

/** Calls one operation correctly and incorrectly; returns the expected statuses. */
type Operate = (call: (init?: Call) => Promise<Response>, scene: Scene) => Promise<void>

const form = (fields: Record<string, string>): Call => ({ body: new URLSearchParams(fields) })
const jsonBody = (body: unknown): Call => ({
  body: typeof body === 'string' ? body : JSON.stringify(body),
  headers: { 'content-type': 'application/json' },
})
const bearer = (token: unknown): Call => ({ headers: { authorization: `Bearer ${token}` } })
const basic = ({ id, secret = '' }: TestClient) => ({
  headers: { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` },
})
const metadata = { redirect_uris: [redirectUri], client_name: 'Described', 'client_name#fr': 'Décrit' }

// Bodies that cannot be parsed: malformed, too large, and of another type.
const tooLarge = 'x'.repeat(70_000)
const foreign: Call = { body: '<x/>', headers: { 'content-type': 'application/xml' } }
const badForms = [form({ token: tooLarge }), foreign]
const badJson = [jsonBody('{'), jsonBody({ text: tooLarge }), foreign]

const request = ({ client }: Scene) => ({
  response_type: 'code',
  client_id: client.id,
  redirect_uri: redirectUri,
  scope: 'openid',
  code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  code_challenge_method: 'S256',
})

/** A public document: the first time, and unchanged. */
const document: Operate = async (call) => {
  const response = await call()
  await call({ headers: { 'if-none-match': response.headers.get('etag') ?? '' } })
}

const authorize =
  (send: (fields: Record<string, string>) => Call): Operate =>
  async (call, scene) => {
    await call(send(request(scene)))
    await call(send({ ...request(scene), client_id: 'nobody' }))
    await call(send({ ...request(scene), scope: 'unknown' }))
    await call(send({ ...request(scene), response_mode: 'form_post', scope: 'unknown' }))
  }

const tokenTaker: Operate = async (call, { client, confidential, tokens }) => {
  const { access_token: token, refresh_token: refreshToken } = await tokens('openid courses:read')
  for (const known of [refreshToken, token, 'unknown'])
    await call(form({ client_id: client.id, token: known }))
  await call(form({ client_id: client.id }))
  await call({ ...form({ token }), ...basic({ ...confidential, secret: 'wrong' }) })
  await call({ ...form({ token: 'unknown' }), ...basic(confidential) })
  for (const init of badForms) await call(init)
}

const userInfo: Operate = async (call, { tokens }) => {
  await call(bearer((await tokens('openid profile email')).access_token))
  await call(bearer((await tokens('profile')).access_token))
  await call(bearer('garbage'))
  await call()
}

/** A new registration for one call. */
const registered = async ({ server }: Scene): Promise<Json> => {
  const init = { method: 'POST', ...jsonBody(metadata) }
  const client = await json(await fetch(`${server.issuer}/api/oauth/register`, init))
  return { ...client, parameters: { client_id: String(client['client_id']) } }
}
const configured = (
  call: (init?: Call) => Promise<Response>,
  client: Json,
  init: Call = {},
  token?: string,
) =>
  call({
    ...init,
    parameters: client['parameters'] as Record<string, string>,
    headers: { ...init.headers, ...bearer(token ?? client['registration_access_token']).headers },
  })

/** The operations of this server, by operationId. */
const operations: Readonly<Record<string, Operate>> = {
  authorizationServerMetadata: document,
  openidConfiguration: document,
  protectedResourceMetadata: document,
  jwks: document,
  apiDescription: document,
  authorize: authorize((fields) => ({ query: new URLSearchParams(fields) })),
  authorizeByForm: async (call, scene) => {
    await authorize(form)(call, scene)
    for (const init of badForms) await call(init)
  },
  pushAuthorizationRequest: async (call, scene) => {
    await call(form(request(scene)))
    await call(form({ ...request(scene), request_uri: 'urn:x' }))
    await call({ ...form(request(scene)), ...basic({ ...scene.confidential, secret: 'wrong' }) })
    const { client_id: _, ...unnamed } = request(scene)
    await call({ ...form(unnamed), ...basic({ ...scene.confidential, secret: 'wrong' }) })
    for (const init of badForms) await call(init)
  },
  authorizeDevice: async (call, scene) => {
    const { id } = await addDeviceClient(scene.server)
    await call(form({ client_id: id, scope: 'openid' }))
    await call(form({ client_id: id, scope: 'unknown' }))
    await call({ ...form({}), ...basic({ ...scene.confidential, secret: 'wrong' }) })
    for (const init of badForms) await call(init)
  },
  token: async (call, scene) => {
    const { client, confidential, server, agent } = scene
    const own = { client_id: client.id, redirect_uri: redirectUri, code_verifier: 'v'.repeat(43) }
    const code = await obtainCode(server, client, { agent, fields: { scope: 'openid courses:read' } })
    const grant = { grant_type: 'authorization_code', code, ...own }
    const issued = await json(await call(form(grant)))
    await call(form(grant))
    const fields = {
      grant_type: 'refresh_token',
      refresh_token: String((await scene.tokens('openid')).refresh_token),
    }
    await call(form({ ...fields, client_id: client.id }))
    await call({ ...form(fields), ...basic({ ...confidential, secret: 'wrong' }) })
    for (const init of [jsonBody(grant), ...badForms]) await call(init)
    await refresh(server, client, String(issued['refresh_token']))
  },
  revoke: tokenTaker,
  introspect: tokenTaker,
  registerClient: async (call) => {
    const everything = { ...metadata, token_endpoint_auth_method: 'client_secret_basic', default_max_age: 60 }
    for (const body of [metadata, everything, { redirect_uris: ['https://app.example/cb'] }, '']) {
      await call(jsonBody(body))
    }
    const { headers, ...rest } = jsonBody(metadata)
    await call({ ...rest, headers: { ...headers, authorization: 'Bearer wrong' } })
    for (const init of badJson) await call(init)
  },
  readClient: async (call, scene) => {
    const client = await registered(scene)
    await configured(call, client)
    await configured(call, client, {}, 'wrong')
  },
  updateClient: async (call, scene) => {
    const client = await registered(scene)
    const changed = { ...metadata, client_id: client['client_id'] }
    await configured(call, client, jsonBody(changed))
    await configured(call, client, jsonBody({ ...changed, redirect_uris: [] }))
    await configured(call, client, jsonBody(changed), 'wrong')
    for (const init of badJson) await configured(call, client, init)
  },
  deleteClient: async (call, scene) => {
    const client = await registered(scene)
    await configured(call, client, {}, 'wrong')
    for (const init of badJson) await configured(call, client, init)
    await configured(call, client)
    await configured(call, client)
  },
  userInfo,
  userInfoByPost: async (call, scene) => {
    await userInfo(call, scene)
    const { access_token: token } = await scene.tokens('openid')
    await call(form({ access_token: token }))
    await call({ ...form({ access_token: token }), ...bearer(token) })
    for (const init of badForms) await call(init)
  },
}

/** An operation of the API: anonymous, with its scope, without it, and with an invalid token. */
const areaOperation =
  (scope: string): Operate =>
  async (call, { able, unable }) => {
    await call()
    await call(bearer(able))
    await call(bearer(unable))
    await call(bearer('garbage'))
    if (scope.endsWith(':write')) for (const init of badJson) await call(init)
  }

/** How to call an operation; undefined for an unknown one. */
export function operateFor(described: Described): Operate | undefined {
  const { operationId, path, method } = described
  const [, area] = /^\/api\/([a-z_]+)$/.exec(path) ?? []
  if (area === undefined || operationId !== `${method.toLowerCase()}_${area}`) return operations[operationId]
  return areaOperation(`${area}:${method === 'GET' ? 'read' : 'write'}`)
}
