import { type Ended, openBrowser } from './browser.ts'
import { authenticationOf, type Client, originOf } from './clients.ts'
import type { AuthorizeOptions, Code, Grant, LabOptions, PostOptions } from './flow.ts'
import { NotApplicable, NotRun, NotTestable, type Seen } from './observation.ts'
import { encode, endingOf, first, formHeaders, type Params } from './params.ts'
import { openPool } from './pool.ts'
import { type EndpointName, membersOf } from './server.ts'
import { type Change, dpopProof, random, requestObject, sha256 } from './tokens.ts'
import type { Wire } from './wire.ts'

/** The most seconds that a check waits for something to expire. */
const longestWait = 900

/** What a check works with. */
export type Lab = ReturnType<typeof openLab>

/** Opens the laboratory in which checks send their requests. */
export function openLab({
  server,
  wire,
  clients,
  provided,
  traits,
  recordings,
  credentials,
  key,
  isSlow = false,
  documentUrl,
}: LabOptions) {
  const shared = { wire, recordings, credentials }
  const freshBrowser = () => openBrowser(shared)
  const signedIn = freshBrowser()
  const { client, confidential, documented } = openPool({ server, clients, provided, traits, documentUrl })
  let nonce: string | undefined

  /** Scopes to ask for: two, so that one can be left out, and what refresh tokens need. */
  function scope(): string | undefined {
    const supported = server.list('scopes_supported')
    if (supported === undefined) return server.openid === undefined ? undefined : 'openid'
    const plain = supported.filter((name) => name !== 'openid' && name !== 'offline_access')
    const second = ['profile', 'email'].find((name) => plain.includes(name)) ?? plain[0]
    const wanted = [supported.includes('openid') ? 'openid' : plain[1], second]
    return [...wanted, supported.includes('offline_access') ? 'offline_access' : undefined]
      .filter((name) => name !== undefined)
      .join(' ')
  }

  /** A complete authorization request with PKCE. */
  async function request(
    overrides: Params = {},
    by?: Client,
  ): Promise<{ client: Client; params: Params; verifier: string }> {
    const asking = by ?? (await client())
    const verifier = random(32)
    const scopes = 'scope' in overrides ? overrides['scope'] : scope()
    const params: Params = {
      response_type: 'code',
      client_id: asking.id,
      redirect_uri: asking.redirectUri,
      scope: scopes,
      state: random(),
      nonce: String(scopes).split(' ').includes('openid') ? random() : undefined,
      // OpenID Connect Core §11.
      prompt: String(scopes).split(' ').includes('offline_access') ? 'consent' : undefined,
      code_challenge: sha256(verifier),
      code_challenge_method: 'S256',
      response_mode: traits.signs && server.supports('response_modes_supported', 'jwt') ? 'jwt' : undefined,
      ...overrides,
    }
    return { client: asking, params, verifier }
  }

  /** Sends an authorization request, and what the user does on its pages. */
  async function authorize(
    overrides: Params = {},
    options: AuthorizeOptions = {},
  ): Promise<Ended & { readonly asked: Awaited<ReturnType<typeof request>> }> {
    const asked = await request(overrides, options.client)
    return { ...(await begin(asked.params, asked.client, options)), asked }
  }

  /** Sends these parameters to the authorization endpoint, as the clients of the profile do. */
  async function begin(params: Params, by: Client, options: AuthorizeOptions = {}): Promise<Ended> {
    const { browser = signedIn, decision, stopsAtPage, method = 'GET', plain = false } = options
    let sent = encode(params)
    if (traits.pushes && !plain) {
      const pushed = await push(params, by, by)
      const uri = membersOf(pushed)?.['request_uri']
      // What the push rejected is how the request ended.
      if (typeof uri !== 'string') return { kind: 'page', seen: pushed, isPush: true }
      sent = encode({ client_id: by.id, request_uri: uri })
    }
    const endpoint = server.endpoint('authorization_endpoint')
    const target =
      method === 'GET'
        ? { url: `${endpoint}${endpoint.includes('?') ? '&' : '?'}${sent}` }
        : { url: endpoint, method, headers: { ...formHeaders, origin: originOf(by) }, body: sent }
    const visit = {
      redirectUri: first(params['redirect_uri']) ?? by.redirectUri,
      ...(decision !== undefined && { decision }),
      ...(stopsAtPage !== undefined && { stopsAtPage }),
    }
    return browser.visit(target, visit)
  }

  /**
   * Pushes the request of a client, RFC 9126 §2.1.
   * @param by The client that authenticates, if one does.
   */
  function push(params: Params, asking: Client, by: Client | undefined): Promise<Seen> {
    const isSigned = traits.signs && asking.method === 'private_key_jwt' && params['request'] === undefined
    const request = isSigned ? requestObject(asking.key ?? key, asking.id, server.issuer, params) : undefined
    const fields = request === undefined ? params : { client_id: asking.id, request }
    return post('pushed_authorization_request_endpoint', fields, { client: by, ...(traits.dpop && { key }) })
  }

  /**
   * Waits until something has expired.
   * @throws {NotRun} without --slow.
   */
  async function wait(seconds: number): Promise<void> {
    if (!isSlow) throw new NotRun('--slow')
    if (!(seconds <= longestWait)) throw new NotRun(`a lifetime of ${longestWait} s at most`)
    await wire.pause(seconds)
  }

  /** @throws {NotTestable} if no code comes. */
  async function code(overrides: Params = {}, options: AuthorizeOptions = {}): Promise<Code> {
    const { asked, ...ended } = await authorize(overrides, options)
    const value = ended.kind === 'callback' ? ended.params.get('code') : null
    if (value === null) throw new NotTestable(`a correct request gets no code: ${endingOf(ended)}`)
    return { code: value, client: asked.client, verifier: asked.verifier, params: asked.params, ended }
  }

  /** Posts a form with the authentication of a client, and with a DPoP proof where a key is given. */
  async function post(endpoint: EndpointName, fields: Params, options: PostOptions = {}): Promise<Seen> {
    const { client: by, headers = {}, key: bound, change = {}, query } = options
    const url = server.endpoint(endpoint) + (query === undefined ? '' : `?${encode(query)}`)
    const own = by === undefined ? { form: {}, headers: {} } : authenticationOf(by, server.issuer)
    const send = () =>
      wire.send({
        url,
        method: 'POST',
        headers: {
          ...formHeaders,
          accept: 'application/json',
          ...own.headers,
          ...(bound !== undefined && { dpop: dpopProof(bound, { method: 'POST', url, nonce }, change) }),
          ...headers,
        },
        body: encode({ ...own.form, ...fields }),
      })
    return withNonce(send, bound !== undefined)
  }

  /** RFC 9449 §8: repeats a request with the nonce that the server asked for. */
  async function withNonce(send: () => Promise<Seen>, isBound: boolean): Promise<Seen> {
    const seen = await send()
    const given = seen.headers['dpop-nonce']
    if (typeof given === 'string') nonce = given
    const isAsked =
      membersOf(seen)?.['error'] === 'use_dpop_nonce' ||
      /use_dpop_nonce/.test(seen.headers['www-authenticate'] ?? '')
    return isBound && isAsked ? send() : seen
  }

  function redeem(
    { code: value, client: by, verifier, params }: Code,
    overrides: Params = {},
    options: PostOptions = {},
  ): Promise<Seen> {
    const fields = {
      grant_type: 'authorization_code',
      code: value,
      redirect_uri: first(params['redirect_uri']),
      code_verifier: params['code_challenge'] === undefined ? undefined : verifier,
      ...overrides,
    }
    return post('token_endpoint', fields, { client: by, ...(traits.dpop && { key }), ...options })
  }

  function refresh(
    by: Client,
    token: string,
    overrides: Params = {},
    options: PostOptions = {},
  ): Promise<Seen> {
    const fields = { grant_type: 'refresh_token', refresh_token: token, ...overrides }
    return post('token_endpoint', fields, { client: by, ...(traits.dpop && { key }), ...options })
  }

  /** @throws {NotTestable} if no tokens come. */
  async function grant(
    overrides: Params = {},
    options: AuthorizeOptions = {},
    how: PostOptions = {},
  ): Promise<Grant> {
    const got = await code(overrides, options)
    const seen = await redeem(got, {}, how)
    const members = membersOf(seen) ?? {}
    const { access_token: accessToken, refresh_token: refreshToken, id_token: idToken } = members
    if (seen.status !== 200 || typeof accessToken !== 'string')
      throw new NotTestable(
        `a correct code exchange gets no token: status ${seen.status}, ${String(members['error'])}`,
      )
    return {
      ...got,
      seen,
      members,
      accessToken,
      refreshToken: typeof refreshToken === 'string' ? refreshToken : undefined,
      idToken: typeof idToken === 'string' ? idToken : undefined,
    }
  }

  /** @throws {NotTestable} if there is none. */
  async function refreshable(
    options: AuthorizeOptions = {},
  ): Promise<Grant & { readonly refreshToken: string }> {
    const got = await grant({}, options)
    if (got.refreshToken === undefined) throw new NotApplicable('the server issues no refresh token')
    return { ...got, refreshToken: got.refreshToken }
  }

  /** Asks UserInfo with a token, as its type wants it. */
  async function userinfo(
    token: string,
    more: Partial<Parameters<Wire['send']>[0]> & { change?: Change } = {},
  ): Promise<Seen> {
    const { change = {}, headers, ...rest } = more
    const url = server.endpoint('userinfo_endpoint')
    const send = () => {
      const proof = { method: rest.method ?? 'GET', url, token, nonce }
      const bound = { authorization: `DPoP ${token}`, dpop: dpopProof(key, proof, change) }
      return wire.send({
        url,
        headers: { ...(traits.dpop ? bound : { authorization: `Bearer ${token}` }), ...headers },
        ...rest,
      })
    }
    return withNonce(send, traits.dpop)
  }

  /**
   * Returns whether an access token is still good, by the endpoint that can say so.
   * @throws {NotTestable} if the server has none.
   */
  async function isActive(
    token: string,
    by: Client,
  ): Promise<{ readonly active: boolean; readonly seen: Seen }> {
    if (typeof server.metadata['userinfo_endpoint'] === 'string') {
      const seen = await userinfo(token)
      return { active: seen.status === 200, seen }
    }
    if (typeof server.metadata['introspection_endpoint'] === 'string') {
      const seen = await post('introspection_endpoint', { token }, { client: by })
      return { active: membersOf(seen)?.['active'] === true, seen }
    }
    throw new NotTestable(
      'the server has neither UserInfo nor introspection: nothing shows whether a token is active',
    )
  }

  return {
    server,
    wire,
    clients,
    traits,
    key,
    browser: signedIn,
    freshBrowser,
    client,
    confidential,
    documented,
    push,
    scope,
    request,
    authorize,
    begin,
    wait,
    code,
    post,
    redeem,
    refresh,
    grant,
    refreshable,
    userinfo,
    isActive,
  }
}
