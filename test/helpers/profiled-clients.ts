import { declared } from '../../src/features.ts'
import {
  type AssertionAlgorithm,
  type AssertionChange,
  type ClientKey,
  makeClientKey,
  signAssertion,
  withAssertion,
} from './assertions.ts'
import { changeOperatorClient } from './client-request.ts'
import { type Fields, pkce, signInAndApprove, type TestClient } from './flow.ts'
import { postProven, signProof, tokenPath } from './proofs.ts'
import type { TestServer } from './server.ts'
import { newUser } from './user.ts'
import type { UserAgent } from './user-agent.ts'
import { addClient, type Json, json } from './wire.ts'

export const parPath = '/api/oauth/par'
/** The key that proofs are signed with, unless a test has another. */
export const dpopKey = makeClientKey('ES256')
export const asking = { grant_type: 'client_credentials' }

/** A client of the FAPI 2.0 profile, with its key, and its server. */
export interface Party {
  readonly client: TestClient
  readonly key: ClientKey
  readonly of: TestServer
}

export const withKeys = {
  authenticationMethod: 'private_key_jwt',
  idTokenSignedResponseAlg: 'ES256',
  grantTypes: ['authorization_code', 'refresh_token', 'client_credentials'],
  scope: ['openid', 'courses:read'],
} as const

/** Adds a client of the profile that signs with this algorithm. */
export async function addProfiled(
  of: TestServer,
  alg: AssertionAlgorithm = 'ES256',
  members: Json = {},
  request: Parameters<typeof addClient>[1] = {},
): Promise<Party> {
  const key = makeClientKey(alg)
  const description = { jwks: { keys: [{ ...key.jwk, alg }] }, security_profile: 'fapi2', ...members }
  return { client: await addClient(of, { ...withKeys, ...request, description }), key, of }
}

/** Changes a client as an operator does. */
export async function changeParty(
  { client, of }: Party,
  what: Parameters<typeof changeOperatorClient>[1],
  resources: readonly string[] = [],
): Promise<void> {
  const known = { declared, scopes: ['openid', 'courses:read'], resources: [of.issuer, ...resources] }
  const context = { by: 'operator', at: of.now() } as const
  await of.deps.store.transact('client', client.id, (found) =>
    changeOperatorClient(found, what, known, context),
  )
}

export function assertionOf({ client, key, of }: Party, what: AssertionChange = {}): string {
  return signAssertion(key, { id: client.id, issuer: of.issuer, now: of.now() }, what)
}

export const proofFor = (of: TestServer, path: string, what: AssertionChange = {}, by = dpopKey) =>
  signProof(by, { url: of.issuer + path, now: of.now() }, what)

/** A request of the client, authenticated by its key, with a proof unless there are others. */
export function ask(
  by: Party,
  fields: Fields,
  path = tokenPath,
  proofs: readonly string[] = [proofFor(by.of, path)],
): Promise<Response> {
  const own = { client_id: by.client.id, ...withAssertion(assertionOf(by)) }
  return postProven(by.of, { ...by.client, method: 'none' }, path, { ...own, ...fields }, ...proofs)
}

export const requestOf = ({ client }: Party): Fields => ({
  response_type: 'code',
  redirect_uri: client.redirectUri,
  scope: 'openid courses:read',
  state: 'a-state',
  code_challenge: pkce('v'.repeat(43)).challenge,
  code_challenge_method: 'S256',
})

export const push = (by: Party, fields: Fields = {}, proofs: readonly string[] = []) =>
  ask(by, { ...requestOf(by), ...fields }, parPath, proofs)

const agents = new WeakMap<TestServer, UserAgent>()

/** The browser of a user who stays signed in. */
export function browserAt(of: TestServer): UserAgent {
  const known = agents.get(of) ?? newUser(of).agent
  agents.set(of, known)
  return known
}

/** The authorization response to a pushed request, in the browser of a user who signed in. */
export async function authorized(
  by: Party,
  fields: Fields = {},
  proofs: readonly string[] = [],
): Promise<URL> {
  const { request_uri: uri } = await json(await push(by, fields, proofs))
  const browser = browserAt(by.of)
  return signInAndApprove(browser, await browser.open(urlOf(by, { request_uri: String(uri) })))
}

export const urlOf = ({ client, of }: Party, fields: Fields) =>
  `${of.issuer}/oauth/authorize?${new URLSearchParams({ client_id: client.id, ...(fields as Record<string, string>) })}`

export const codeOf = async (by: Party, fields: Fields = {}, proofs: readonly string[] = []) =>
  String((await authorized(by, fields, proofs)).searchParams.get('code'))

export const redemption = (by: Party, code: string): Fields => ({
  grant_type: 'authorization_code',
  code,
  redirect_uri: by.client.redirectUri,
  code_verifier: 'v'.repeat(43),
})

export async function tokensOf(by: Party, fields: Fields = {}): Promise<Json> {
  const response = await ask(by, redemption(by, await codeOf(by, fields)))
  const tokens = await json(response)
  if (response.status !== 200) throw new Error(JSON.stringify(tokens))
  return tokens
}

export const refreshing = (tokens: Json): Fields => ({
  grant_type: 'refresh_token',
  refresh_token: String(tokens['refresh_token']),
})
