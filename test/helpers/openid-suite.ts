/**
 * The OpenID Foundation's conformance suite as a server sees it: the clients its plans configure, the requests its
 * modules send, and the checks it makes of every response. Warnings of the suite are failures here.
 */
import { createHash, randomBytes } from 'node:crypto'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import type { Test } from 'tap'
import { integrate } from './authorization.ts'
import { type Fields, postAs, type TestClient, type Tokens } from './flow.ts'
import { alice, type ServerOptions, startServer } from './server.ts'
import { type Landing, type Page, UserAgent } from './user-agent.ts'
import { type Json, json } from './wire.ts'

export const callback = 'https://suite.example/test/a/lychgate/callback'
export const goodbye = 'https://suite.example/test/a/lychgate/post_logout_redirect'
export type ResponseMode = 'query' | 'form_post'

/** The response of the authorization endpoint as the suite's callback gets it. */
export interface Callback {
  readonly members: Readonly<Record<string, string>>
  /** The paths of the pages a user had to complete on the way. */
  readonly pages: readonly string[]
}

/** A sign-in that passed all checks. */
export interface SignIn extends Callback {
  readonly tokens: Tokens
  /** Of the ID Token. */
  readonly claims: Json
}

/** The only claims an ID Token may have unless others are requested. */
const protocolClaims = [
  'acr',
  'amr',
  'at_hash',
  'sid',
  'aud',
  'auth_time',
  'exp',
  'iat',
  'iss',
  'nonce',
  'sub',
]

/** A server and the suite's clients, none of which uses PKCE; consent is asked once and remembered. */
export async function startSuite(t: Test, responseMode: ResponseMode = 'query', options: ServerOptions = {}) {
  const server = await startServer(t, options)
  const metadata = await json(await fetch(`${server.issuer}/.well-known/openid-configuration`))
  const jwks = (await json(await fetch(String(metadata['jwks_uri'])))) as unknown as JSONWebKeySet
  // The suite warns of an email address in an ID Token.
  const thin = { pkce: 'optional', description: { id_token_claims: 'none' } } as const
  const [client, client2, postClient] = [
    await integrate(server, {
      ...thin,
      redirectUris: [callback],
      postLogoutRedirectUris: [goodbye],
    }),
    await integrate(server, { ...thin, redirectUris: [callback] }),
    await integrate(server, {
      ...thin,
      redirectUris: [callback],
      authenticationMethod: 'client_secret_post',
    }),
  ]

  /** The parameters of an authorization request; undefined omits one. */
  const requestOf = (fields: Fields, of: TestClient): URLSearchParams => {
    const whole = {
      client_id: of.id,
      redirect_uri: of.redirectUri,
      scope: 'openid',
      state: randomBytes(8).toString('base64url'),
      nonce: randomBytes(8).toString('base64url'),
      response_type: 'code',
      ...(responseMode === 'form_post' && { response_mode: 'form_post' }),
      ...fields,
    }
    const sent = Object.entries(whole).filter(([, value]) => value !== undefined)
    return new URLSearchParams(sent.map(([name, value]): [string, string] => [name, String(value)]))
  }
  const urlOf = (query: URLSearchParams) => `${metadata['authorization_endpoint']}?${query}`

  /** Lets a user complete the pages, and returns what the callback receives. */
  const finish = async (
    t: Test,
    agent: UserAgent,
    landing: Landing,
    of: TestClient = client,
    mode = responseMode,
  ): Promise<Callback> => {
    const pages: string[] = []
    let end = landing
    while (end.at === 'page' && !isFormPost(end.page)) {
      pages.push(new URL(end.page.url).pathname)
      end = await agent.submit(end.page, responseTo(end.page))
    }
    const members = await received(t, end, of.redirectUri, mode)
    return { members, pages }
  }

  const authorize = async (
    t: Test,
    fields: Fields = {},
    agent = new UserAgent(server.issuer),
    of: TestClient = client,
  ): Promise<Callback> => {
    // The default response mode of a code applies to a request without `response_mode`.
    const mode = 'response_mode' in fields ? 'query' : responseMode
    return finish(t, agent, await agent.open(urlOf(requestOf(fields, of))), of, mode)
  }

  const redeem = (code = '', fields: Fields = {}, of: TestClient = client): Promise<Response> =>
    postAs(server, of, '/api/oauth/token', {
      grant_type: 'authorization_code',
      code,
      redirect_uri: of.redirectUri,
      ...fields,
    })

  const refresh = (token: string, fields: Fields = {}, of: TestClient = client): Promise<Response> =>
    postAs(server, of, '/api/oauth/token', { grant_type: 'refresh_token', refresh_token: token, ...fields })

  /** A whole sign-in, from the request to the checked ID Token. */
  const signIn = async (
    t: Test,
    fields: Fields = {},
    agent = new UserAgent(server.issuer),
    of: TestClient = client,
  ): Promise<SignIn> => {
    const query = requestOf(fields, of)
    const response = await finish(t, agent, await agent.open(urlOf(query)), of)
    return checkedSignIn(t, query, response, of)
  }

  /** Checks a response to this request, redeems its code and checks the tokens. */
  const checkedSignIn = async (
    t: Test,
    query: URLSearchParams,
    response: Callback,
    of: TestClient = client,
    fields: Fields = {},
  ): Promise<SignIn> => {
    const { code = '', ...rest } = response.members
    const state = query.get('state')
    t.strictSame(rest, { ...(state !== null && { state }), iss: metadata['issuer'] }, 'state and iss')
    t.ok(entropyOf(code) >= 128, 'a code cannot be guessed')
    const tokens = await checkedTokens(t, await redeem(code, fields, of))
    const claims = await checkedIdToken(t, tokens, of)
    t.equal(claims['nonce'], query.get('nonce') ?? undefined, 'the nonce as it was sent')
    return { ...response, tokens, claims }
  }

  const checkedIdToken = async (t: Test, tokens: Tokens, of: TestClient = client): Promise<Json> => {
    const { payload, protectedHeader } = await jwtVerify(tokens.id_token, createLocalJWKSet(jwks), {
      issuer: String(metadata['issuer']),
      audience: of.id,
      algorithms: ['RS256'],
      currentDate: new Date(server.now() * 1000),
      requiredClaims: ['iss', 'sub', 'aud', 'exp', 'iat', 'at_hash'],
    })
    t.equal(jwks.keys.filter(({ kid }) => kid === protectedHeader.kid).length, 1, 'kid names one key')
    const unknown = Object.keys(payload).filter((name) => !protocolClaims.includes(name))
    t.strictSame(unknown, [], 'an ID Token is about the sign-in alone')
    t.match(payload.sub, /^[\x21-\x7e]{1,255}$/)
    t.ok(Math.abs(server.now() - Number(payload.iat)) <= 5, 'iat is now')
    t.ok(Number.isInteger(payload.iat) && Number.isInteger(payload.exp))
    const hash = createHash('sha256').update(tokens.access_token).digest().subarray(0, 16)
    t.equal(payload['at_hash'], hash.toString('base64url'))
    if ('auth_time' in payload) t.ok(Number(payload['auth_time']) <= Number(payload.iat))
    return payload
  }

  /** Calls UserInfo in one of its ways. */
  const userInfo = async (
    t: Test,
    { tokens, claims }: SignIn,
    init: RequestInit = { headers: { authorization: `Bearer ${tokens.access_token}` } },
  ): Promise<Json> => {
    const response = await fetch(String(metadata['userinfo_endpoint']), init)
    t.equal(response.status, 200)
    t.match(response.headers.get('content-type'), /^application\/json/)
    const told = await json(response)
    t.equal(told['sub'], claims['sub'], 'the user of the ID Token')
    for (const [name, value] of Object.entries(told)) t.type(value, typeOfClaim(name), name)
    t.notOk(Object.values(told).includes(''), 'nothing is empty')
    return told
  }

  return {
    server,
    metadata,
    jwks,
    client,
    client2,
    postClient,
    requestOf,
    urlOf,
    finish,
    authorize,
    redeem,
    refresh,
    signIn,
    checkedSignIn,
    checkedTokens,
    checkedIdToken,
    userInfo,
  }
}

export type Suite = Awaited<ReturnType<typeof startSuite>>

/** The response of the token endpoint, RFC 6749 §5.1, as the suite wants it. */
async function checkedTokens(t: Test, response: Response): Promise<Tokens> {
  const body = await json(response)
  t.equal(response.status, 200, String(body['error'] ?? 'no error'))
  t.match(response.headers.get('content-type'), /^application\/json/)
  t.equal(response.headers.get('cache-control'), 'no-store')
  t.match(body, { access_token: /./, refresh_token: /./, id_token: /^[\w-]+\.[\w-]+\.[\w-]+$/ })
  t.match(body['token_type'], /^bearer$/i)
  const lifetime = body['expires_in']
  t.ok(Number.isInteger(lifetime) && Number(lifetime) >= 1 && Number(lifetime) <= 31_536_000, 'expires_in')
  return body as unknown as Tokens
}

function isFormPost(page: Page): boolean {
  return page.html.includes('id="form-post"')
}

function responseTo(page: Page): Readonly<Record<string, string>> {
  const names = page.forms[0]?.fields.map(({ name }) => name) ?? []
  if (names.includes('password')) return alice
  if (names.includes('scope') || names.includes('csrf')) return { decision: 'approve' }
  throw new Error(`unexpected page ${page.status}: ${page.html}`)
}

/** The parameters that the callback gets, by redirect or by a posted form; each once. */
async function received(
  t: Test,
  end: Landing,
  redirectUri: string,
  responseMode: ResponseMode,
): Promise<Readonly<Record<string, string>>> {
  const pairs = responseMode === 'query' ? byRedirect(t, end, redirectUri) : await byForm(t, end, redirectUri)
  t.equal(new Set(pairs.map(([name]) => name)).size, pairs.length, 'every member once')
  return Object.fromEntries(pairs)
}

function byRedirect(t: Test, end: Landing, redirectUri: string): readonly (readonly [string, string])[] {
  if (end.at === 'page') throw new Error(`no redirect: ${end.page.html}`)
  t.equal(end.status, 303)
  const { href, hash } = end.location
  t.ok(href.startsWith(`${redirectUri}${redirectUri.includes('?') ? '&' : '?'}`), 'to the redirect URI')
  t.equal(hash, '')
  return [...new URLSearchParams(href.slice(redirectUri.length + 1))]
}

/** OAuth 2.0 Form Post Response Mode: a page that submits itself, must not be cached and may only run our script. */
async function byForm(
  t: Test,
  end: Landing,
  redirectUri: string,
): Promise<readonly (readonly [string, string])[]> {
  if (end.at === 'redirect') throw new Error(`redirected to ${end.location}`)
  const { page } = end
  t.equal(page.status, 200)
  t.match(page.headers.get('content-type'), /^text\/html/)
  t.equal(page.headers.get('cache-control'), 'no-store')
  t.equal(page.forms.length, 1)
  const { action, method, fields } = page.forms[0] ?? { action: '', method: '', fields: [] }
  t.equal(action, redirectUri)
  t.equal(method, 'post')
  t.ok(
    fields.every(({ type }) => type === 'hidden'),
    'nothing to fill in',
  )
  const policy = page.headers.get('content-security-policy') ?? ''
  t.match(policy, "script-src 'self';")
  t.notMatch(policy, 'form-action', 'where the client redirects on is its own business')
  const [, source = ''] = /<script src="([^"]*)"[^>]*><\/script>/.exec(page.html) ?? []
  t.equal(page.html.match(/<script/g)?.length, 1, 'one script, and none inline')
  const script = await fetch(new URL(source, page.url))
  t.equal(new URL(script.url).origin, new URL(page.url).origin)
  t.match(script.headers.get('content-type'), 'javascript')
  t.match(await script.text(), /submit\.call\(document\.getElementById\('form-post'\)\)/)
  return fields.map(({ name, value }) => [name, value] as const)
}

/** Shannon entropy of a text in bits, as the suite measures it. */
function entropyOf(text: string): number {
  const counts = new Map<string, number>()
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1)
  const perCharacter = [...counts.values()].reduce((sum, count) => {
    const share = count / text.length
    return sum - share * Math.log2(share)
  }, 0)
  return perCharacter * text.length
}

/** OpenID Connect Core §5.1. */
function typeOfClaim(name: string): string {
  if (name.endsWith('_verified')) return 'boolean'
  if (name === 'address') return 'object'
  return name === 'updated_at' ? 'number' : 'string'
}
