import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { declared } from '../../src/features.ts'
import { addOperatorClient, type OperatorClientRequest } from './client-request.ts'
import {
  callApi,
  type Fields,
  obtainTokens,
  postAs,
  redirectUri,
  register,
  type TestClient,
  type Tokens,
} from './flow.ts'
import { type ServerOptions, startServer, type TestServer } from './server.ts'
import { UserAgent } from './user-agent.ts'

export type Json = Record<string, unknown>

/** The JSON object of a response. */
export async function json(response: Response): Promise<Json> {
  return (await response.json()) as Json
}

/** A server, a public client, a browser signed in as alice, and tokens on demand. */
export async function startFlow(t: Test, options: ServerOptions = {}, metadata: Json = {}) {
  const server = await startServer(t, options)
  const client = await register(server, metadata)
  const agent = new UserAgent(server.issuer)
  /** Tokens of a new grant, alice's by default. */
  const tokens = (fields: Fields = {}, of: TestClient = client): Promise<Tokens> =>
    obtainTokens(server, of, { fields, agent })
  return { server, client, agent, tokens }
}

/** Asserts an error of RFC 6749 §5.2: status, code, a description within its charset, not cached, no tokens. */
export async function assertRejected(
  t: Test,
  response: Response,
  error: string,
  status = 400,
  about = error,
): Promise<void> {
  const body = await json(response)
  t.equal(response.status, status, `${about}: status`)
  t.strictSame(Object.keys(body).sort(), ['error', 'error_description'], `${about}: members`)
  t.equal(body['error'], error, `${about}: code`)
  t.match(body['error_description'], /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/, `${about}: description`)
  t.match(response.headers.get('content-type'), /^application\/json/, `${about}: content type`)
  t.equal(response.headers.get('cache-control'), 'no-store', `${about}: not cached`)
}

/** The response of the introspection endpoint to this client. */
export async function introspect(
  server: TestServer,
  caller: TestClient,
  token: string,
  fields: Fields = {},
): Promise<Json> {
  const response = await postAs(server, caller, '/api/oauth/introspect', { token, ...fields })
  if (response.status !== 200) throw new Error(`introspection responded with ${response.status}`)
  return json(response)
}

/** Whether UserInfo serves this token: it needs `openid` and the service's own audience. */
export async function isAlive(server: TestServer, token: string): Promise<boolean> {
  const { status } = await callApi(server, '/api/oauth/userinfo', token)
  if (status !== 200 && status !== 401) throw new Error(`UserInfo responded ${status}`)
  return status === 200
}

/** The one challenge of a response, RFC 9110 §11.6.1; a repeated parameter throws. */
export function challengeOf(response: Response): {
  readonly scheme: string
  readonly params: Json
  /** The challenges after the first one. */
  readonly others: string
} {
  const header = response.headers.get('www-authenticate')
  const [, scheme = '', rest = ''] = /^(\S+)\s*(.*)$/.exec(header ?? '') ?? []
  const params: Json = {}
  let left = rest
  while (left !== '' && !/^[A-Za-z]+ /.test(left)) {
    const [whole = '', name = '', value = ''] = /^([a-z_]+)="([^"\\]*)"(?:, |$)/.exec(left) ?? []
    if (whole === '' || name in params) throw new Error(`not one challenge: ${header}`)
    params[name] = value
    left = left.slice(whole.length)
  }
  return { scheme, params, others: left }
}

/** A client that an operator added: without a redirect URI a resource server, otherwise consent is skipped. */
export async function addClient(
  server: TestServer,
  request: Partial<OperatorClientRequest> = {},
): Promise<TestClient> {
  const { config, store, clock } = server.deps
  const method = request.authenticationMethod ?? 'client_secret_basic'
  const known = {
    declared,
    scopes: config.scopes.map(({ name }) => name),
    resources: [config.issuer, ...config.resources.map(({ identifier }) => identifier)],
  }
  const isResourceServer = (request.resources ?? []).length > 0
  const whole: OperatorClientRequest = {
    name: 'Arranged client',
    redirectUris: isResourceServer ? [] : ['https://client.example/callback'],
    postLogoutRedirectUris: [],
    authenticationMethod: 'client_secret_basic',
    pkce: 'required',
    ...(!isResourceServer && { consent: 'skip' }),
    idTokenSignedResponseAlg: 'RS256',
    ...request,
  }
  const { client, secret, writes } = addOperatorClient(
    whole,
    known,
    { id: randomBytes(16), secret: randomBytes(32) },
    clock(),
  )
  await store.write(...writes)
  const [first = redirectUri] = whole.redirectUris
  return { id: client.id, method, redirectUri: first, ...(secret !== undefined && { secret }) }
}
