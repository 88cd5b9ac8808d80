import type { AddressInfo } from 'node:net'
import type { Seconds } from '../../domain/model.ts'
import { type Call, objectOf, type Sending, send } from './call.ts'
import { checkIdToken, decodeJws } from './id-token.ts'
import type { Check, Outcome, Run } from './run.ts'

const form = 'application/x-www-form-urlencoded'

/** Where the server is, and what time it is there. */
export interface Place {
  readonly issuer: string
  /** Where it listens. */
  readonly address: AddressInfo
  readonly now: () => Seconds
}

/** The authorization request, parameter by parameter, RFC 6749 §4.1.1. */
export function authorizationParameters(run: Run): readonly { name: string; value: string; why: string }[] {
  return [
    { name: 'response_type', value: 'code', why: 'nothing but a code goes through the browser' },
    { name: 'client_id', value: run.clientId ?? '', why: 'who asks' },
    { name: 'redirect_uri', value: run.redirectUri, why: 'where the answer goes; the port is free' },
    { name: 'scope', value: run.scope, why: 'what for' },
    { name: 'state', value: run.state, why: 'ties the answer to this browser and this request' },
    { name: 'nonce', value: run.nonce, why: 'ties the ID Token to this request' },
    { name: 'code_challenge', value: run.challenge, why: 'ties the code to whoever has the verifier' },
    { name: 'code_challenge_method', value: 'S256', why: 'the only method there is' },
    ...(run.loginHint === undefined
      ? []
      : [{ name: 'login_hint', value: run.loginHint, why: 'fills the page in' }]),
  ]
}

/** Where the browser is sent. */
export function authorizationUrl(run: Run): string {
  const query = new URLSearchParams(
    authorizationParameters(run).map(({ name, value }): [string, string] => [name, value]),
  )
  return `${endpoint(run, 'authorization_endpoint')}?${query}`
}

/** The metadata of the issuer, RFC 8414 §3. */
export async function discover(run: Run, place: Place): Promise<Outcome> {
  const { pathname, origin } = new URL(place.issuer)
  const path = `/.well-known/oauth-authorization-server${pathname === '/' ? '' : pathname}`
  const call = await ask(run, place, { method: 'GET', url: origin + path })
  const metadata = objectOf(call)
  if (call.status !== 200 || metadata === undefined) return failed('There is no metadata.', call)
  run.metadata = metadata
  const check = { what: 'issuer', expected: place.issuer, found: String(metadata['issuer']) }
  const checks = [{ ...check, ok: check.expected === check.found }]
  return { ok: allHold(checks), said: 'The metadata names every endpoint.', calls: [call], checks }
}

/** A client of its own, RFC 7591 §3.1. */
export async function register(run: Run, place: Place): Promise<Outcome> {
  const metadata = {
    client_name: 'Lychgate try-it',
    application_type: 'native',
    redirect_uris: [run.redirectUri],
    token_endpoint_auth_method: 'none',
  }
  const call = await ask(run, place, {
    method: 'POST',
    url: endpoint(run, 'registration_endpoint'),
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(metadata),
  })
  const clientId = objectOf(call)?.['client_id']
  if (call.status !== 201 || typeof clientId !== 'string') return failed('It was not registered.', call)
  run.clientId = clientId
  return { ok: true, said: `This client is ${clientId} from now on.`, calls: [call] }
}

/** The PKCE pair as it was computed, RFC 7636 §4.2. */
export async function prepare(run: Run): Promise<Outcome> {
  const digest = Buffer.from(run.challenge, 'base64url').toString('hex')
  const shown = [
    {
      name: 'code_verifier',
      value: run.verifier,
      why: '32 random bytes in base64url, 43 characters; stays here',
    },
    { name: 'SHA-256', value: digest, why: 'of the characters of the verifier, as bytes' },
    { name: 'code_challenge', value: run.challenge, why: 'these bytes in base64url, without padding' },
    { name: 'state', value: run.state, why: 'comes back with the code' },
    { name: 'nonce', value: run.nonce, why: 'comes back in the ID Token' },
  ]
  return { ok: true, said: 'challenge = base64url(SHA-256(verifier))', calls: [], shown }
}

/** What came to the redirect URI, judged, RFC 9207 §2.4. */
export async function comeBack(run: Run, { issuer }: Place): Promise<Outcome> {
  const { code, state = '', iss = '', error, error_description: description } = run.callback ?? {}
  const checks: readonly Check[] = [
    { what: 'state', expected: run.state, found: state, ok: state === run.state },
    { what: 'iss', expected: issuer, found: iss, ok: iss === issuer },
  ]
  const shown = Object.entries(run.callback ?? {}).map(([name, value]) => ({ name, value }))
  if (error !== undefined) return { ok: false, said: `${error}: ${description}`, calls: [], checks, shown }
  const ok = allHold(checks) && code !== undefined
  return {
    ok,
    said: ok ? 'The browser came back with a code.' : 'This answer must not be used.',
    calls: [],
    checks,
    shown,
  }
}

/** Tokens for the code, RFC 6749 §4.1.3. */
export async function exchange(run: Run, place: Place): Promise<Outcome> {
  return requestTokens(run, place, {
    grant_type: 'authorization_code',
    code: run.callback?.['code'] ?? '',
    redirect_uri: run.redirectUri,
    client_id: run.clientId ?? '',
    code_verifier: run.verifier,
  })
}

/** New tokens for the refresh token, RFC 6749 §6. */
export async function refresh(run: Run, place: Place): Promise<Outcome> {
  const fields = {
    grant_type: 'refresh_token',
    refresh_token: run.tokens?.refresh ?? '',
    client_id: run.clientId ?? '',
  }
  return requestTokens(run, place, fields)
}

async function requestTokens(
  run: Run,
  place: Place,
  fields: Readonly<Record<string, string>>,
): Promise<Outcome> {
  const call = await ask(run, place, post(endpoint(run, 'token_endpoint'), fields))
  const {
    access_token: access,
    refresh_token: next,
    id_token: id,
    expires_in: seconds,
  } = objectOf(call) ?? {}
  if (call.status !== 200 || typeof access !== 'string') return failed('There are no tokens.', call)
  if (run.tokens?.refresh !== undefined) run.replaced = run.tokens.refresh
  run.tokens = {
    access,
    ...(typeof next === 'string' && { refresh: next }),
    ...(typeof id === 'string' && { id }),
  }
  const decoded = typeof id === 'string' ? [decodedToken('ID Token', id)] : []
  const jwt = access.startsWith('eyJ') ? [decodedToken('access token', access)] : []
  return {
    ok: true,
    said: `The access token lives for ${seconds} seconds.`,
    calls: [call],
    decoded: [...decoded, ...jwt],
  }
}

/** The ID Token, checked, OpenID Connect Core §3.1.3.7. */
export async function identify(run: Run, place: Place): Promise<Outcome> {
  const call = await ask(run, place, { method: 'GET', url: endpoint(run, 'jwks_uri') })
  const { id, access = '' } = run.tokens ?? {}
  if (id === undefined)
    return { ok: true, said: 'There is no ID Token: openid was not granted.', calls: [call] }
  const checks = await checkIdToken(id, objectOf(call) ?? {}, {
    issuer: place.issuer,
    clientId: run.clientId ?? '',
    nonce: run.nonce,
    accessToken: access,
    now: place.now(),
  })
  const ok = allHold(checks)
  const { sub } = decodeJws(id).claims
  if (ok && typeof sub === 'string') run.sub = sub
  return {
    ok,
    said: ok ? `It is ${sub} who signed in.` : 'This ID Token must not be believed.',
    calls: [call],
    checks,
  }
}

/** Claims of the user, OpenID Connect Core §5.3. */
export async function userInfo(run: Run, place: Place): Promise<Outcome> {
  const call = await ask(run, place, withToken(run, endpoint(run, 'userinfo_endpoint')))
  const claims = objectOf(call)
  if (call.status !== 200 || claims === undefined) return failed('Nothing was told.', call)
  const found = String(claims['sub'])
  const checks =
    run.sub === undefined ? [] : [{ what: 'sub', expected: run.sub, found, ok: found === run.sub }]
  return { ok: allHold(checks), said: `These are the claims of ${found}.`, calls: [call], checks }
}

/** A call with the access token, RFC 6750 §2.1; any other status than the expected one is a failure. */
export async function callApi(run: Run, place: Place, expected: 200 | 401): Promise<Outcome> {
  const call = await ask(run, place, withToken(run, `${place.issuer}/api/${run.area}`))
  const ok = call.status === expected
  return {
    ok,
    said: ok ? `${call.status}, as it should be.` : `${call.status}, where ${expected} was expected.`,
    calls: [call],
  }
}

/** What the server says of the access token, RFC 7662 §2.1. */
export async function introspect(run: Run, place: Place): Promise<Outcome> {
  const fields = { token: run.tokens?.access ?? '', client_id: run.clientId ?? '' }
  const call = await ask(run, place, post(endpoint(run, 'introspection_endpoint'), fields))
  const active = objectOf(call)?.['active']
  return { ok: active === true, said: active === true ? 'It is active.' : 'It is not active.', calls: [call] }
}

/** The end of the approval, RFC 7009 §2.1. */
export async function revoke(run: Run, place: Place): Promise<Outcome> {
  const token = run.tokens?.refresh ?? run.tokens?.access ?? ''
  const call = await ask(
    run,
    place,
    post(endpoint(run, 'revocation_endpoint'), { token, client_id: run.clientId ?? '' }),
  )
  return call.status === 200
    ? { ok: true, said: 'It is dead, whatever it was.', calls: [call] }
    : failed('It was not revoked.', call)
}

/** One request of this run, over HTTP. */
export async function ask(run: Run, { address }: Place, sending: Sending): Promise<Call> {
  run.calls += 1
  return send(
    address,
    sending,
    `Lychgate-try-it/1 (${run.id.slice(0, 6)})`,
    `${run.id.slice(0, 8)}-${run.calls}`,
  )
}

/** A form, as RFC 6749 §4.1.3 has it. */
export function post(url: string, fields: Readonly<Record<string, string>>): Sending {
  return { method: 'POST', url, headers: { 'content-type': form }, body: String(new URLSearchParams(fields)) }
}

/** A call with the access token, RFC 6750 §2.1. */
export function withToken(run: Run, url: string): Sending {
  return { method: 'GET', url, headers: { authorization: `Bearer ${run.tokens?.access ?? ''}` } }
}

/** What the metadata says where it is. */
export function endpoint({ metadata = {} }: Run, name: string): string {
  return String(metadata[name] ?? '')
}

function failed(said: string, call: Call): Outcome {
  return { ok: false, said, calls: [call] }
}

function allHold(checks: readonly Check[]): boolean {
  return checks.every(({ ok }) => ok)
}

function decodedToken(name: string, jws: string): { readonly name: string; readonly json: string } {
  return { name, json: JSON.stringify(decodeJws(jws), undefined, 2) }
}
