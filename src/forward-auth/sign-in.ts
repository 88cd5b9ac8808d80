import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { multiFactor } from '../domain/authentication-context.ts'
import { redeemCode } from '../domain/authorization-code.ts'
import { check } from '../domain/check.ts'
import { mayHave } from '../domain/current-grant.ts'
import { OAuthError, type OAuthErrorCode } from '../domain/errors.ts'
import type { Grant } from '../domain/model.ts'
import { formatParameters, type Parameters, single } from '../domain/parameters.ts'
import { hashSecret, mintSecret, secretBytes } from '../domain/secret.ts'
import type { Needs } from '../feature/deps.ts'
import { parametersOf } from '../http/parameters.ts'
import { msg } from '../pages/i18n/i18n.ts'
import {
  browserCookie,
  openState,
  readCookie,
  sealCookie,
  sealState,
  setCookie,
  signedInCookie,
  verifierOf,
} from './cookies.ts'
import type { ProtectedHosts } from './hosts.ts'
import { callbackOf, callbackPath, needsOf, ownPath } from './rules.ts'

interface SignInOptions extends Needs<'keys' | 'random' | 'service'> {
  readonly hosts: ProtectedHosts
}

const signInPath = `${ownPath}sign-in`
/** The scopes that the headers about a user need. */
const scopes = ['openid', 'profile', 'email', 'groups']
const longestReturn = 4000
const otherBrowser = 'this browser did not begin the sign-in'

/** Returns where a browser signs in to a host: on that host, because its cookies are set there. */
export function signInUrl(host: string, to: string): string {
  return `https://${host}${signInPath}?${formatParameters({ to })}`
}

/**
 * The sign-in to a protected host: an authorization request as of any client (RFC 6749 §4.1.1) with PKCE, whose code is
 * redeemed here. What it begins with is in the `state`; nothing is stored.
 */
export const signInRoutes: FastifyPluginAsync<SignInOptions> = async (
  app,
  { keys, random, service, hosts },
) => {
  const route = { schema: { hide: true }, config: { limit: 'authorization' } } as const
  app.get(signInPath, route, async (request, reply) => {
    const { client, protectedHost } = await hosts.ofRequest(request)
    const { host } = protectedHost
    const to = returnTo(parametersOf(request.query))
    const known = browserOf(request)
    const browser = known ?? mintSecret('browser', random(secretBytes))
    if (known === undefined) setCookie(reply, browserCookie, browser)
    const begun = { host, browser }
    const state = sealState(to, random(12).toString('base64url'), begun, keys)
    const acr = { id_token: { acr: { essential: true, values: [multiFactor] } } }
    const needs = needsOf(protectedHost, { method: 'GET', uri: to })
    const query = formatParameters({
      response_type: 'code',
      client_id: client.id,
      redirect_uri: callbackOf(host),
      scope: scopes.filter((name) => mayHave(name, client, service)).join(' '),
      state,
      code_challenge: hashSecret(verifierOf(state, begun, keys)),
      code_challenge_method: 'S256',
      ...(needs.secondFactor && { claims: JSON.stringify(acr) }),
    })
    return reply.redirect(`${service.issuer}/oauth/authorize?${query}`, 303)
  })

  app.get(callbackPath, route, async (request, reply) => {
    const { client, protectedHost } = await hosts.ofRequest(request)
    const { host } = protectedHost
    const parameters = parametersOf(request.query)
    const state = single(parameters, 'state') ?? ''
    const browser = browserOf(request)
    const begun = { host, browser: browser ?? '' }
    const to = browser && openState(state, begun, keys)
    check(to !== undefined, 'lychgate-forward-auth-state', 'invalid_request', otherBrowser, {
      page: { title: msg('error.noCookie'), advice: msg('error.noCookie.advice') },
    })
    const isOwn = (single(parameters, 'iss') ?? service.issuer) === service.issuer
    check(isOwn, 'lychgate-forward-auth-issuer', 'invalid_request', 'iss is another issuer')
    const code = single(parameters, 'code')
    if (code === undefined) throw signInError(parameters)
    const handle = await keys.open(code, 'code')
    check(handle !== undefined, 'rfc6749-4.1.3-code-valid', 'invalid_grant', 'the code is unknown')
    let redeemed: Grant | undefined
    const redemption = {
      handle,
      client,
      redirectUri: callbackOf(host),
      codeVerifier: verifierOf(state, begun, keys),
      resource: [],
    }
    await app.issueFromGrant(handle.grantId, client, request, (grant, now) => {
      redeemed = grant
      return redeemCode(grant, redemption, service, app.grantRulesOf(client), now)
    })
    if (redeemed === undefined) throw new Error('a code was redeemed without its grant')
    setCookie(reply, signedInCookie, sealCookie(redeemed, host, keys))
    return reply.redirect(`https://${host}${to}`, 303)
  })
}

/** The secret that a browser got when it began to sign in. No other text counts: an empty one would be that of all. */
function browserOf(request: FastifyRequest): string | undefined {
  const secret = readCookie(request, browserCookie)
  return secret !== undefined && /^lyc_browser_[\w-]{43}$/.test(secret) ? secret : undefined
}

/** The path to return to: of this host, and short enough for a URL. */
function returnTo(parameters: Parameters): string {
  const to = single(parameters, 'to') ?? ''
  return /^\/[!-~]*$/.test(to) && to.length <= longestReturn ? to : '/'
}

/** The error of an authorization response, RFC 6749 §4.1.2.1. */
function signInError(parameters: Parameters): OAuthError {
  const error = single(parameters, 'error')
  const isDenied = error === 'access_denied' || error === 'unmet_authentication_requirements'
  const code: OAuthErrorCode = isDenied ? error : 'invalid_request'
  const page = { title: msg('denied.title'), advice: msg('error.request.again') }
  return new OAuthError(code, single(parameters, 'error_description') ?? 'the sign-in failed', {
    rule: 'lychgate-forward-auth-denied',
    status: 403,
    ...(isDenied && { page }),
  })
}
