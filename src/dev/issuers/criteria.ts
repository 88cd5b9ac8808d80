import type { Step } from './step.ts'

/** A step, and whether its request has a token of this issuer. */
export interface JudgedStep extends Step {
  /** The access or refresh token of this issuer that the request presents; undefined if none. */
  readonly showsKnownToken: boolean | undefined
}

/** When a client counts as fooled. */
export interface Criterion {
  /** What the client does then: "it redeems …". */
  readonly text: string
  /** @param before The steps between the wrong response and `later`. */
  readonly isMet: (wrong: JudgedStep, later: JudgedStep, before: readonly JudgedStep[]) => boolean
  /**
   * Whether the wrong response matters by now to a client that uses its tokens. Before that, the client counts neither
   * as fooled nor as sound.
   */
  readonly moment?: (wrong: JudgedStep, later: JudgedStep) => boolean
}

/** A call of UserInfo or the API. */
export const isCall = ({ place }: Step) => place === 'userinfo' || place === 'api'
const isHmacOrNone = (algorithm = '') => /^(HS\d|none$)/i.test(algorithm)
const isRefresh = ({ sent }: Step) => sent.refreshToken !== undefined

/** For a wrong authorization response: the code of another one does not count. */
export const redeemsTheCode: Criterion = {
  text: 'it sends a code of that response to the token endpoint',
  isMet: ({ gave }, { sent }) => sent.code !== undefined && gave.codes.includes(sent.code),
}

/** For a wrong token response. Revocation and introspection do not count as use. */
export const usesTheTokens: Criterion = {
  text: 'it uses a token of that response: the access token at UserInfo or the API, or the refresh token',
  isMet: ({ gave }, { sent }) =>
    (sent.accessToken !== undefined && sent.accessToken === gave.accessToken) ||
    (sent.refreshToken !== undefined && sent.refreshToken === gave.refreshToken),
}

/**
 * For a refresh token that does not belong into the response. A client that leaves it alone may use the access token.
 */
export const usesTheRefreshToken: Criterion = {
  text: 'it sends the refresh token of that response to the token endpoint',
  isMet: ({ gave }, { sent }) => sent.refreshToken !== undefined && sent.refreshToken === gave.refreshToken,
}

/** For metadata that offers only shared secrets. A client that signs with its own key anyway is sound. */
export const signsByHmac: Criterion = {
  text: 'it sends an assertion that is signed with HMAC, or not at all (`none`)',
  isMet: (_wrong, { sent }) => isHmacOrNone(sent.assertionAlgorithm),
}

/** For an error that demands another audience. */
export const obeysTheAudience: Criterion = {
  text: 'it sends an assertion for the audience that the error demanded, which that server could then use as its own',
  isMet: (_wrong, { sent }) => sent.assertionAudience?.includes(demandedAudience) === true,
}

/** Another server, at which the client is known by the same key. */
export const demandedAudience = 'https://issuer.example'

/** For metadata that offers only shared secrets for request objects. */
export const signsTheRequestByHmac: Criterion = {
  text: 'it sends a request object that is signed with HMAC, or not at all (`none`)',
  isMet: (_wrong, { sent }) => isHmacOrNone(sent.requestAlgorithm),
}

/** For metadata that offers only HMAC for proofs. */
export const signsTheProofByHmac: Criterion = {
  text: 'it sends a proof that is signed with HMAC, or not at all (`none`)',
  isMet: (_wrong, { sent }) => isHmacOrNone(sent.proofAlgorithm),
}

const isPush = ({ endpoint }: Step) => endpoint === 'pushed_authorization_request'
const isAuthorization = ({ endpoint, method }: Step) => endpoint === 'authorization' && method !== 'HEAD'

/** For a pushed request that cannot be used. */
export const usesTheRequestUri: Criterion = {
  text: 'it redirects a user to the authorization endpoint with the request_uri',
  isMet: (_wrong, later) => isAuthorization(later) && later.sent.requestUri !== undefined,
}

/** For metadata that does not offer what a URL as client_id needs. */
export const namesADocument: Criterion = {
  text: 'it sends an authorization request whose client_id is a URL',
  isMet: (_wrong, later) => isAuthorization(later) && /^https?:/i.test(later.sent.clientId ?? ''),
}

/** For an API that is never satisfied. */
export const signsUserInTwice: Criterion = {
  text: 'it redirects a user to the authorization endpoint a second time',
  isMet: (_wrong, later, before) => isAuthorization(later) && before.some(isAuthorization),
}

/** For a nonce that is never right. */
export const repeatsTheProof: Criterion = {
  text: 'it sends a fourth request with a proof to the token endpoint',
  isMet: (_wrong, later, before) => {
    const isProven = ({ place, sent }: Step) => place === 'token' && sent.proofNonce !== undefined
    return isProven(later) && before.filter(isProven).length >= 2
  },
}

/** For a token that is bound to a key and called a bearer token. */
export const usesTheTokenWithoutAProof: Criterion = {
  text: 'it sends the access token of that response to UserInfo or the API without a proof',
  isMet: ({ gave }, { sent }) =>
    sent.accessToken !== undefined && sent.accessToken === gave.accessToken && sent.proofNonce === undefined,
}

const isPollWith = (deviceCode: string | undefined, { sent }: Step) =>
  deviceCode !== undefined && sent.deviceCode === deviceCode

/** For an error that ends polling. */
export const pollsAgain: Criterion = {
  text: 'it polls again with the same device code',
  isMet: ({ sent }, later) => isPollWith(sent.deviceCode, later),
}

/** For a longer interval. The least sound one is 6 seconds; clocks and networks take up to one of them. */
export const pollsTooSoon: Criterion = {
  text: 'it polls with the same device code less than 5 seconds after its last poll',
  isMet: (wrong, later, before) => {
    const { deviceCode } = wrong.sent
    const last = before.findLast((step) => isPollWith(deviceCode, step)) ?? wrong
    return isPollWith(deviceCode, later) && later.at < last.at + 5
  },
}

/** For codes that a client must let go by itself. A poll that was on its way when they expired does no harm. */
export const pollsAfterTheEnd: Criterion = {
  text: 'it polls more than two seconds after the device code has expired',
  isMet: ({ gave: { deviceCode, expiresAt } }, later) =>
    isPollWith(deviceCode, later) && expiresAt !== undefined && later.at > expiresAt + 2,
}

/** For wrong keys, which concern every token. */
export const usesAnyToken: Criterion = {
  text: 'it uses a token of this issuer: an access token at UserInfo or the API, or a refresh token',
  isMet: (_wrong, later) => later.showsKnownToken === true,
}

/** For a wrong UserInfo response. Calling UserInfo again does no harm. */
export const keepsUsingTokens: Criterion = {
  text: 'it continues with its tokens: calls the API, or refreshes',
  isMet: (_wrong, later) => (later.place === 'api' && later.showsKnownToken === true) || isRefresh(later),
}

/** For a wrong document, which a client must not act upon. */
export const goesOnHere: Criterion = {
  text: 'it registers, redirects a user to the authorization endpoint, or requests tokens',
  isMet: (_wrong, { place }) => ['registration', 'authorization', 'callback', 'token'].includes(place),
}

/**
 * For metadata without S256. A client that uses S256 anyway is sound; the parameters of a request object are not
 * read.
 */
export const asksWithoutS256: Criterion = {
  text: 'it sends or pushes an authorization request without code_challenge_method=S256',
  isMet: (_wrong, later) => {
    const { requestUri, requestAlgorithm, challengeMethod } = later.sent
    const isShort = requestUri !== undefined || requestAlgorithm !== undefined
    return (isAuthorization(later) || isPush(later)) && !isShort && challengeMethod !== 'S256'
  },
}

/** For a token endpoint to which no code may be sent. */
export const asksForTokens: Criterion = {
  text: 'it requests tokens, here or at a path it guessed (such as a POST to /oauth2/token)',
  isMet: (_wrong, { place, method, path }) =>
    place === 'token' || (method === 'POST' && path.endsWith('/token')),
}

/** For a response with no token in it. */
export const callsAnyway: Criterion = {
  text: 'it still calls UserInfo or the API, or refreshes',
  isMet: (_wrong, later) => isCall(later) || isRefresh(later),
}

/** For a refresh that leaves out a token. A client that keeps the old one is sound. */
export const showsNoToken: Criterion = {
  text: 'it calls UserInfo or the API, or refreshes, with something that is not a token of this issuer (such as the text "undefined")',
  isMet: (_wrong, later) => (isCall(later) || isRefresh(later)) && later.showsKnownToken !== true,
}

/** For a lifetime that is not a number. It matters after it has ended. */
export const usesTheExpired: Criterion = {
  text: 'it uses the access token after it has expired',
  isMet: ({ gave }, { sent, at }) =>
    sent.accessToken !== undefined && sent.accessToken === gave.accessToken && at >= (gave.expiresAt ?? at),
  moment: ({ gave }, { at }) => at >= (gave.expiresAt ?? at),
}

/** For a scope that is missing. It matters after a call was rejected for it. */
export const repeatsTheRejected: Criterion = {
  text: 'it repeats the same call with the same token after it was rejected (403)',
  isMet: (_wrong, later, before) =>
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

/** For the issuer that behaves. */
export const never: Criterion = { text: 'never: this issuer does nothing wrong', isMet: () => false }

/** For what only the client can know. */
export const onlyReported: Criterion = {
  text: 'it reports this itself (POST …/outcome), because only the client knows how it treats the response',
  isMet: () => false,
}
