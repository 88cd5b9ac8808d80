import { type Ended, openBrowser } from './browser.ts'
import { type AuthMethod, authenticationOf, authMethods, type Client } from './clients.ts'
import type { AuthorizeOptions, Code, Grant, LabOptions, PostOptions } from './flow.ts'
import { NotApplicable, NotTestable, type Seen } from './observation.ts'
import { encode, endingOf, first, formHeaders, type Params } from './params.ts'
import { type EndpointName, membersOf } from './server.ts'
import { type Change, dpopProof, random, sha256 } from './tokens.ts'
import type { Wire } from './wire.ts'

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
}: LabOptions) {
  const shared = { wire, recordings, credentials }
  const freshBrowser = () => openBrowser(shared)
  const signedIn = freshBrowser()
  const registered = new Map<string, Promise<Client>>()
  let nonce: string | undefined

  /** The client of a name; `main` and `other` are two of the same kind. */
  function client(name: 'main' | 'other' | AuthMethod = 'main'): Promise<Client> {
    const isPair = name === 'main' || name === 'other'
    const fits = isPair ? traits.methods[0] : name
    // Without registration, the clients of the operator are all there are.
    const isAny = isPair && server.metadata['registration_endpoint'] === undefined
    const given = provided.filter(({ method }) => isAny || method === fits)
    const one = given[name === 'other' ? 1 : 0]
    if (one !== undefined) return Promise.resolve(one)
    let found = registered.get(name)
    if (found === undefined) {
      found = registerFirst(isPair ? traits.methods : [name])
      registered.set(name, found)
    }
    return found
  }

  async function registerFirst(methods: readonly AuthMethod[]): Promise<Client> {
    let failure: NotTestable | undefined
    for (const method of methods) {
      try {
        return await clients.register(method, traits.dpop ? { dpop_bound_access_tokens: true } : {})
      } catch (error) {
        // What was tried and failed says more than what is not offered.
        if (error instanceof NotTestable) failure ??= error
        else if (!(error instanceof NotApplicable)) throw error
      }
    }
    throw failure ?? new NotTestable('no client can be registered (--client FILE)')
  }

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
    const { browser = signedIn, decision, stopsAtPage, method = 'GET', plain = false } = options
    let sent = encode(asked.params)
    if (traits.pushes && !plain) {
      const pushed = await push(asked.params, asked.client)
      const uri = membersOf(pushed)?.['request_uri']
      // What the push rejected is how the request ended.
      if (typeof uri !== 'string') return { kind: 'page', seen: pushed, asked }
      sent = encode({ client_id: asked.client.id, request_uri: uri })
    }
    const endpoint = server.endpoint('authorization_endpoint')
    const target =
      method === 'GET'
        ? { url: `${endpoint}${endpoint.includes('?') ? '&' : '?'}${sent}` }
        : { url: endpoint, method, headers: formHeaders, body: sent }
    const visit = {
      redirectUri: first(asked.params['redirect_uri']) ?? asked.client.redirectUri,
      ...(decision !== undefined && { decision }),
      ...(stopsAtPage !== undefined && { stopsAtPage }),
    }
    return { ...(await browser.visit(target, visit)), asked }
  }

  /** A client that authenticates, by the first method that the server registers. */
  function confidential(): Promise<Client> {
    const method = authMethods
      .slice(1)
      .find((one) => server.supports('token_endpoint_auth_methods_supported', one))
    return client(traits.methods.includes('none') ? (method ?? 'client_secret_basic') : 'main')
  }

  /** RFC 9126 §2.1. */
  function push(params: Params, by?: Client): Promise<Seen> {
    const bound = traits.dpop ? { key } : {}
    return post('pushed_authorization_request_endpoint', params, { client: by, ...bound })
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
    push,
    scope,
    request,
    authorize,
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
