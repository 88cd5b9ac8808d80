import type { Step } from './step.ts'

/** A step as it is judged. */
export interface JudgedStep extends Step {
  /** The access or refresh token of this issuer that the request presents; undefined if none. */
  readonly showsKnownToken: boolean | undefined
}

/** When a client was fooled: by its requests or, where they cannot show it, by its own report. */
export interface Criterion {
  /** What the client does then: "it redeems …". */
  readonly text: string
  /** @param before The steps between the lie and `later`. */
  readonly isMet: (lie: JudgedStep, later: JudgedStep, before: readonly JudgedStep[]) => boolean
  /**
   * The moment from which the false response matters to a client that uses its tokens. Before it, the client counts
   * neither as fooled nor as sound.
   */
  readonly moment?: (lie: JudgedStep, later: JudgedStep) => boolean
}

/** A call of UserInfo or the API. */
export const isCall = ({ place }: Step) => place === 'userinfo' || place === 'api'
const isRefresh = ({ sent }: Step) => sent.refreshToken !== undefined

/** For a false authorization response: the code of another one does not count. */
export const redeemsTheCode: Criterion = {
  text: 'it sends a code of that response to the token endpoint',
  isMet: ({ gave }, { sent }) => sent.code !== undefined && gave.codes.includes(sent.code),
}

/** For a false token response: to revoke or introspect its tokens is no use of them. */
export const usesTheTokens: Criterion = {
  text: 'it uses a token of that response: the access token at UserInfo or the API, or the refresh token',
  isMet: ({ gave }, { sent }) =>
    (sent.accessToken !== undefined && sent.accessToken === gave.accessToken) ||
    (sent.refreshToken !== undefined && sent.refreshToken === gave.refreshToken),
}

/** For false keys, which concern every token there is. */
export const usesAnyToken: Criterion = {
  text: 'it uses a token of this issuer: an access token at UserInfo or the API, or a refresh token',
  isMet: (_lie, later) => later.showsKnownToken === true,
}

/** For a false answer of UserInfo: to ask again is no harm. */
export const keepsTheAccess: Criterion = {
  text: 'it continues with its tokens: calls the API, or refreshes',
  isMet: (_lie, later) => (later.place === 'api' && later.showsKnownToken === true) || isRefresh(later),
}

/** For a false document, which a client that reads it must not act upon. */
export const goesOnHere: Criterion = {
  text: 'it registers, redirects a user to the authorization endpoint, or requests tokens',
  isMet: (_lie, { place }) => ['registration', 'authorization', 'callback', 'token'].includes(place),
}

/** For metadata that tempts to do without PKCE: to ask with S256 all the same is sound. */
export const asksWithoutS256: Criterion = {
  text: 'it sends an authorization request without code_challenge_method=S256',
  isMet: (_lie, { place, method, path, sent }) =>
    path === '/oauth/authorize' && place !== 'other' && method !== 'HEAD' && sent.challengeMethod !== 'S256',
}

/** For a token endpoint that no code should be sent to. */
export const asksForTokens: Criterion = {
  text: 'it requests tokens, here or at a path it guessed (such as a POST to /oauth2/token)',
  isMet: (_lie, { place, method, path }) =>
    place === 'token' || (method === 'POST' && path.endsWith('/token')),
}

/** For a response with no token in it. */
export const callsAnyway: Criterion = {
  text: 'it still calls UserInfo or the API, or refreshes',
  isMet: (_lie, later) => isCall(later) || isRefresh(later),
}

/** For a refresh that leaves a token out: to keep the old one is sound. */
export const showsNoToken: Criterion = {
  text: 'it calls UserInfo or the API, or refreshes, with something that is not a token of this issuer (such as the text "undefined")',
  isMet: (_lie, later) => (isCall(later) || isRefresh(later)) && later.showsKnownToken !== true,
}

/** For a lifetime that is no number: it matters when it is over. */
export const usesTheExpired: Criterion = {
  text: 'it uses the access token after it has expired',
  isMet: ({ gave }, { sent, at }) =>
    sent.accessToken !== undefined && sent.accessToken === gave.accessToken && at >= (gave.expiresAt ?? at),
  moment: ({ gave }, { at }) => at >= (gave.expiresAt ?? at),
}

/** For a scope that is silently missing: it matters when a call is rejected for it. */
export const repeatsTheRejected: Criterion = {
  text: 'it repeats the same call with the same token after it was rejected (403)',
  isMet: (_lie, later, before) =>
    isCall(later) &&
    before.some(
      ({ status, path, method, sent }) =>
        status === 403 &&
        path === later.path &&
        method === later.method &&
        sent.accessToken === later.sent.accessToken,
    ),
  moment: ({ gave }, { status, sent }) => status === 403 && sent.accessToken === gave.accessToken,
}

/** For the issuer that does not lie. */
export const never: Criterion = { text: 'never: this issuer does nothing wrong', isMet: () => false }

/** For what only the client can know. */
export const onlyTold: Criterion = {
  text: 'it reports this itself (POST …/outcome), because only the client knows how it treats the response',
  isMet: () => false,
}
