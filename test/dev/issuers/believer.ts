/** A client that checks nothing, and records every response: the opposite of what a client should be. */
import { createHash, createHmac } from 'node:crypto'
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import { signAssertion, withAssertion } from '../../helpers/assertions.ts'
import { claimsOf, pkce, signInAndApprove } from '../../helpers/flow.ts'
import { signProof } from '../../helpers/proofs.ts'
import { UserAgent } from '../../helpers/user-agent.ts'
import type { Surroundings } from './client.ts'

type Members = Record<string, unknown>
/** The responses, by place and name; for values that differ from run to run only whether they are correct. */
export type Facts = Map<string, unknown>

const redirectUri = 'http://127.0.0.1:51004/callback'
const verifier = 'v'.repeat(43)

/** Runs the whole flow, whatever the responses. */
export async function believe({
  issuer,
  service,
  waitForExpiry,
  tell,
  now,
}: Omit<Surroundings, 'user'> & { readonly now: () => number }): Promise<Facts> {
  const facts: Facts = new Map()
  const note = (place: string, members: Members) => {
    for (const [name, value] of Object.entries(members))
      facts.set(`${place}.${name}`, withoutIssuer(value, issuer))
  }
  const metadata = await discover(issuer, note)
  const clientId = await register(issuer)
  const code = await authorize({ issuer, metadata, clientId }, note)
  const endpoint = String(metadata['token_endpoint'] ?? `${issuer}/api/oauth/token`)
  const ask = async (fields: Record<string, string>) => {
    const body = new URLSearchParams({ client_id: clientId, ...fields })
    return read(await fetch(endpoint, { method: 'POST', body }))
  }
  const exchange = {
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri,
    code_verifier: verifier,
  }
  const tokens = await ask(exchange)
  note('token', shown(tokens))
  await lookAtIdToken('id_token', { issuer, clientId, tokens }, note)
  if (typeof tokens.members['expires_in'] === 'string') await waitForExpiry?.()
  note('first call', await call(issuer, tokens))

  const refreshed = await ask({
    grant_type: 'refresh_token',
    refresh_token: String(tokens.members['refresh_token']),
  })
  note('refresh', shown(refreshed))
  await lookAtIdToken('refreshed id_token', { issuer, clientId, tokens: refreshed }, note)
  note('second call', await call(issuer, refreshed))
  const again = await ask({
    grant_type: 'refresh_token',
    refresh_token: String(refreshed.members['refresh_token']),
  })
  note('second refresh', { status: again.status })
  const dead = await post(`${issuer}/api/oauth/introspect`, { client_id: clientId, token: 'dead' })
  note('introspection', dead.members)
  if (dead.members['active']) await tell?.('fooled')
  await actForItself({ issuer, metadata, service, now }, note)
  await actWithKey({ issuer, metadata, service, now }, note)
  await pushAndSign({ issuer, metadata, clientId, service, now, tokens: again.members }, note)
  return facts
}

/** Without a user: signs as the metadata and errors say, and uses whatever comes. */
async function actForItself(
  {
    issuer,
    metadata,
    service,
    now,
  }: Pick<Surroundings, 'issuer' | 'service'> & {
    metadata: Members
    now: () => number
  },
  note: Note,
): Promise<void> {
  const [offered] = [metadata['token_endpoint_auth_signing_alg_values_supported']].flat()
  note('service metadata', { offered })
  const ask = (aud: string) => {
    const about = { id: service.id, issuer: aud, now: now() }
    const assertion =
      offered === 'HS256' ? signedByPublicKey(service, about) : signAssertion(service.key, about)
    return post(`${issuer}/api/oauth/token`, {
      grant_type: 'client_credentials',
      scope: 'courses:read',
      ...withAssertion(assertion),
    })
  }
  const first = await ask(issuer)
  note('service token', shown(first))
  const [demanded] = /https:\S+/.exec(String(first.members['error_description'])) ?? []
  const { members } = demanded === undefined ? first : await ask(demanded)
  note('service call', { api: (await call(issuer, { ...first, members })).api })
  const { refresh_token: token } = members
  if (token !== undefined) {
    const grant = { grant_type: 'refresh_token', client_id: service.id, refresh_token: String(token) }
    note('service refresh', { status: (await post(`${issuer}/api/oauth/token`, grant)).status })
  }
}

/** Binds its token to a key, repeats when a nonce is demanded, and sends a token by its type. */
async function actWithKey({ issuer, metadata, service, now }: Signing, note: Note): Promise<void> {
  const [offered] = [metadata['dpop_signing_alg_values_supported']].flat()
  note('key metadata', { offered })
  const change = offered === 'HS256' ? { header: { alg: 'HS256' } } : {}
  const { id, key } = service
  const url = `${issuer}/api/oauth/token`
  const ask = async (nonce?: string) => {
    const assertion = withAssertion(signAssertion(key, { id, issuer, now: now() }))
    const fields = { grant_type: 'client_credentials', scope: 'courses:read', ...assertion }
    const headers = { dpop: signProof(key, { url, now: now(), nonce }, change) }
    return fetch(url, { method: 'POST', body: new URLSearchParams(fields), headers })
  }
  let response = await ask()
  for (let times = 1; times < 4 && response.headers.has('dpop-nonce'); times += 1)
    response = await ask(response.headers.get('dpop-nonce') ?? '')
  const { status, members } = await read(response)
  note('bound token', { status, token_type: members['token_type'] })
  const [token, api] = [String(members['access_token']), `${issuer}/api/courses`]
  const proof = signProof(key, { method: 'GET', url: api, now: now(), token })
  const isBound = members['token_type'] === 'DPoP'
  const headers = isBound
    ? { authorization: `DPoP ${token}`, dpop: proof }
    : { authorization: `Bearer ${token}` }
  note('bound call', { status: (await fetch(api, { headers })).status })
}

/** Uses every way to begin that the metadata offers, and whatever a push returns; signs in again for every challenge. */
async function pushAndSign(
  { issuer, metadata, clientId, service, now, tokens }: Signing & { clientId: string; tokens: Members },
  note: Note,
): Promise<void> {
  const begin = async (fields: Record<string, string>) => {
    const url = `${issuer}/oauth/authorize?${new URLSearchParams(fields)}`
    return { status: (await fetch(url, { redirect: 'manual' })).status }
  }
  const asked = { response_type: 'code', redirect_uri: redirectUri, scope: 'courses:read' }
  const proven = { code_challenge: pkce(verifier).challenge, code_challenge_method: 'S256' }
  const pushed = await post(`${issuer}/api/oauth/par`, { client_id: clientId, ...asked, ...proven })
  const { request_uri: requestUri, expires_in: seconds } = pushed.members
  note('pushed', { status: pushed.status, seconds })
  note('pushed request', await begin({ client_id: clientId, request_uri: String(requestUri) }))

  const [offered] = [metadata['request_object_signing_alg_values_supported']].flat()
  const alg = offered === 'HS256' ? 'HS256' : service.key.alg
  const about = { id: service.id, issuer, now: now() }
  const header = { typ: 'oauth-authz-req+jwt', alg }
  const claims = { client_id: service.id, sub: undefined, ...asked, ...proven }
  const request = signAssertion(service.key, about, { header, claims })
  note('signed request', { alg, ...(await begin({ client_id: service.id, request })) })
  note('document', await begin({ client_id: `${issuer}/client.json`, ...asked, ...proven }))

  let times = 0
  while (times < 2 && (await demandsSignIn(issuer, tokens))) {
    await begin({ client_id: clientId, ...asked, ...proven, max_age: '60' })
    times += 1
  }
  note('step up', { times })
}

/** RFC 9470 §3. */
async function demandsSignIn(issuer: string, { access_token: token }: Members): Promise<boolean> {
  const response = await fetch(`${issuer}/api/courses`, { headers: { authorization: `Bearer ${token}` } })
  return response.headers.get('www-authenticate')?.includes('insufficient_user_authentication') === true
}

type Signing = Pick<Surroundings, 'issuer' | 'service'> & {
  readonly metadata: Members
  readonly now: () => number
}

/** An assertion by HMAC, with the text of the public key as the secret. */
function signedByPublicKey(
  { key }: Surroundings['service'],
  about: { readonly id: string; readonly issuer: string; readonly now: number },
): string {
  const header = { header: { alg: 'HS256' } }
  const signed = signAssertion(key, about, header).split('.').slice(0, 2).join('.')
  return `${signed}.${createHmac('sha256', JSON.stringify(key.jwk)).update(signed).digest('base64url')}`
}

type Note = (place: string, members: Members) => void

async function discover(issuer: string, note: Note): Promise<Members> {
  const { members } = await read(await fetch(`${issuer}/.well-known/openid-configuration`))
  note('metadata', members)
  const { origin, pathname } = new URL(issuer)
  const at = (name: string) => `${origin}/.well-known/${name}${pathname}`
  const other = await read(await fetch(at('oauth-authorization-server')))
  note('both documents', { same: JSON.stringify(other.members) === JSON.stringify(members) })
  note('resource metadata', (await read(await fetch(at('oauth-protected-resource')))).members)
  const challenge = (await fetch(`${issuer}/api/oauth/userinfo`)).headers.get('www-authenticate') ?? ''
  const url = /resource_metadata="([^"]*)"/.exec(challenge)?.[1] ?? ''
  note('challenged', { resource: (await read(await fetch(url))).members['resource'] })
  return members
}

async function register(issuer: string): Promise<string> {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ redirect_uris: [redirectUri] })
  const { members } = await read(
    await fetch(`${issuer}/api/oauth/register`, { method: 'POST', headers, body }),
  )
  return String(members['client_id'])
}

async function authorize(
  { issuer, metadata, clientId }: { issuer: string; metadata: Members; clientId: string },
  note: Note,
): Promise<string> {
  const methods = metadata['code_challenge_methods_supported']
  const method = Array.isArray(methods) ? String(methods[0]) : 'S256'
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: 'openid profile courses:read',
    state: 'a-state',
    nonce: 'a-nonce',
    code_challenge: pkce(verifier).challenge,
    code_challenge_method: method,
  })
  const agent = new UserAgent(issuer)
  const landing = await agent.open(`${issuer}/oauth/authorize?${query}`)
  const { searchParams, hash } = await signInAndApprove(agent, landing)
  const fragment = new URLSearchParams(hash.slice(1))
  const parameters = [...searchParams, ...fragment]
  note('callback', {
    in: fragment.size > 0 ? 'fragment' : 'query',
    codes: searchParams.getAll('code').length + fragment.getAll('code').length,
  })
  note('callback', Object.fromEntries(parameters.filter(([name]) => name !== 'code')))
  return parameters.find(([name]) => name === 'code')?.[1] ?? ''
}

interface HttpResponse {
  readonly status: number
  readonly type: string | null
  readonly members: Members
}

async function read(response: Response): Promise<HttpResponse> {
  const text = await response.text()
  const members: Members = text.startsWith('{') ? JSON.parse(text) : {}
  return { status: response.status, type: response.headers.get('content-type'), members }
}

async function post(url: string, fields: Record<string, string>): Promise<HttpResponse> {
  return read(await fetch(url, { method: 'POST', body: new URLSearchParams(fields) }))
}

/** Of tokens only their presence is recorded. */
function shown({ status, type, members }: HttpResponse): Members {
  const secret = ['access_token', 'refresh_token', 'id_token']
  const told = Object.entries(members).map(([name, value]) => [
    name,
    secret.includes(name) ? typeof value : value,
  ])
  return { status, type, ...Object.fromEntries(told) }
}

async function lookAtIdToken(
  place: string,
  { issuer, clientId, tokens }: { issuer: string; clientId: string; tokens: HttpResponse },
  note: Note,
): Promise<void> {
  const { id_token: jws, access_token: accessToken } = tokens.members
  const { members: keys } = await read(await fetch(`${issuer}/api/oauth/jwks`))
  if (typeof jws !== 'string') return
  // `as`: the keys that the issuer publishes.
  const known = createLocalJWKSet(keys as unknown as JSONWebKeySet)
  const verifies = await jwtVerify(jws, known, { currentDate: new Date(0) }).then(
    () => true,
    () => false,
  )
  const { alg, typ } = decodeProtectedHeader(jws)
  const { iat, exp, aud, at_hash: hash, auth_time: _then, sid: _session, ...claims } = claimsOf(jws)
  const right = createHash('sha256')
    .update(String(accessToken))
    .digest()
    .subarray(0, 16)
    .toString('base64url')
  const lives = typeof exp === 'number' ? exp - Number(iat) : exp
  const to = [aud].flat().map((name) => (name === clientId ? 'client' : name))
  note(place, { verifies, alg, typ, ...claims, lives, aud: to, isHashRight: hash === right })
}

/** UserInfo and the API, each called again after an error. */
async function call(issuer: string, { members }: HttpResponse): Promise<Members> {
  const headers = { authorization: `Bearer ${members['access_token']}` }
  const get = async (path: string) => {
    const response = await read(await fetch(issuer + path, { headers }))
    return response.status === 403 ? read(await fetch(issuer + path, { headers })) : response
  }
  const { status: userInfo, members: user } = await get('/api/oauth/userinfo')
  return { userInfo, sub: user['sub'], api: (await get('/api/courses')).status }
}

function withoutIssuer(value: unknown, issuer: string): unknown {
  if (typeof value === 'string') return value.replace(issuer, '{issuer}')
  return Array.isArray(value) ? value.map((each) => withoutIssuer(each, issuer)) : value
}
