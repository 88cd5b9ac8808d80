import type { FastifyReply, FastifyRequest } from 'fastify'
import { lacksAcr, multiFactor } from '../domain/authentication-context.ts'
import { type BearerCredentials, bearerChallenge, parseBearer } from '../domain/bearer.ts'
import { check } from '../domain/check.ts'
import { OAuthError } from '../domain/errors.ts'
import { denialError, isBinding } from '../domain/interaction.ts'
import { single } from '../domain/parameters.ts'
import type { Plugin } from '../feature/deps.ts'
import { sendError, toOAuthError } from '../http/errors.ts'
import { longestUrl, parametersOf } from '../http/parameters.ts'
import { tokenReader } from '../http/token-reader.ts'
import { errorPage } from '../pages/page-errors.ts'
import { groupsOf } from '../users/groups.ts'
import { cookiesOfApp } from './cookies.ts'
import { endGrantsWithSession, signedInReader } from './host-session.ts'
import { type HostClient, protectedHosts } from './hosts.ts'
import { type HostUser, type IdentityHeaders, identities, noIdentity } from './identity.ts'
import { probeIdentity, probeResult } from './probe.ts'
import {
  type Forwarded,
  isPage,
  type Needs,
  needsOf,
  ownPath,
  probePath,
  protectedHostOf,
  readForwarded,
} from './rules.ts'
import { signInRoutes, signInUrl } from './sign-in.ts'

/**
 * Decides whether a request for a protected host may pass, for the proxy in front of it: 200 with headers that say who
 * the user is, a redirect to the sign-in for a page, 401 or 403 for everything else. Nothing is written.
 */
export const forwardAuth: Plugin<'config' | 'store' | 'keys' | 'clock' | 'random' | 'service'> = async (
  app,
  deps,
) => {
  const { store, clock, service } = deps
  const hosts = protectedHosts(deps)
  const signedIn = signedInReader(deps, app.seams)
  const readAccessToken = tokenReader(deps)
  const identityOf = identities(app.seams, deps)
  endGrantsWithSession(app, deps)
  // Scripts of the app can read the URL of the callback. A code that they got there would be worth tokens.
  app.seams.authenticatedClient.add(({ client }) => {
    if (protectedHostOf(client) === undefined) return
    throw new OAuthError('unauthorized_client', 'the client is a protected host, which gets no tokens', {
      rule: 'lychgate-forward-auth-no-tokens',
    })
  })
  await app.register(signInRoutes, { ...deps, hosts })

  app.setErrorHandler((error, request, reply) => {
    const rejection = toOAuthError(error, request)
    const { method } = readForwarded(request.headers) ?? request
    return isPage(method, request.headers) ? errorPage(rejection, reply) : sendError(rejection, reply)
  })

  // Envoy asks by the method of the request.
  const method = app.supportedMethods.filter((name) => name !== 'TRACE')
  app.route({ method, url: `${service.prefix}/forward-auth`, schema: { hide: true }, handler: decide })
  async function decide(request: FastifyRequest, reply: FastifyReply) {
    hosts.assertProxy(request)
    const asked = readForwarded(request.headers)
    check(
      asked !== undefined,
      'lychgate-forward-auth-request',
      'invalid_request',
      'X-Forwarded-Host, X-Forwarded-Method and X-Forwarded-Uri are needed, each once',
    )
    const [client, cookie] = await Promise.all([hosts.find(asked.host), signedIn.open(request, asked.host)])
    const found = hosts.require(asked.host, client)
    const pass = (identity: IdentityHeaders) =>
      reply.headers({ ...identity, cookie: cookiesOfApp(request) }).send('')
    if (asked.uri === probePath) return pass(probeIdentity)
    check(
      !asked.uri.startsWith(ownPath),
      'lychgate-forward-auth-own-path',
      'access_denied',
      `the proxy must send requests below ${ownPath} to this server instead of asking about them`,
    )
    const needs = needsOf(found.protectedHost, asked)
    if (needs.access === 'public') return pass(noIdentity)
    const { authorization } = request.headers
    const token = parseBearer(needs.access === 'bearer' ? authorization : undefined)
    const use = await (token.kind === 'absent'
      ? signedIn.read(cookie, found.client)
      : userOfToken(token, found))
    if (use === undefined) return signInFirst(request, reply, asked, needs)
    if (use === 'no user') return pass(noIdentity)
    const remedy = await assertMayUse(use, needs)
    const isCookie = token.kind === 'absent' && cookie !== undefined
    if (isCookie && !(await signedIn.wouldRefresh(cookie, found.client)))
      return signInFirst(request, reply, asked, needs)
    const acr = needs.secondFactor ? { values: [multiFactor], essential: true } : undefined
    if (remedy !== undefined || lacksAcr(use.methods, acr)) return stepUpFirst(request, reply, asked)
    return pass(await identityOf(use))
  }

  app.get(probePath, { schema: { hide: true } }, async (request) => {
    hosts.assertProxy(request)
    return probeResult(request)
  })

  /**
   * Returns what the user has to do first, if a policy of sign-ins requires more.
   * @throws {OAuthError} for a user who may not use the client, or not this path.
   */
  async function assertMayUse({ client, user, methods }: HostUser, { groups }: Needs) {
    const checking = app.seams.userChecks.collect(client, { userId: user.id, methods })
    const found = checking && (await checking)
    const denial = isBinding(found) ? found : undefined
    if (denial !== undefined && denial.remedy === undefined) throw denialError(denial)
    if (groups.length === 0) return denial?.remedy
    const own = (await groupsOf(store, user.id)).map(({ id }) => id)
    if (groups.every((ids) => ids.some((id) => own.includes(id)))) return denial?.remedy
    const why = 'the user is in none of the groups that this path needs'
    throw denialError({ rule: 'lychgate-forward-auth-group', why })
  }

  /**
   * Returns the user of an access token for a host; a client may have one for itself.
   * @throws {OAuthError} `invalid_token`
   */
  async function userOfToken(
    credentials: BearerCredentials,
    { client, protectedHost }: HostClient,
  ): Promise<HostUser | 'no user'> {
    const audience = `https://${protectedHost.host}`
    const facts = credentials.kind === 'token' && (await readAccessToken(credentials.token, clock()))
    const isAccess = facts && facts.kind === 'access' && facts.resource.includes(audience)
    // One that is bound to a key needs a proof for this URL, and the proxy asks at another (RFC 9449 §7.2).
    if (!isAccess || facts.confirmation !== undefined) throw invalidToken(audience)
    const { id: grantId, userId, authenticatedAt, methods } = facts.grant
    if (userId === undefined) return 'no user'
    const user = await store.find('user', userId)
    if (user === undefined || user.lockedAt !== undefined) throw invalidToken(audience)
    return { user, client, scope: facts.scope, grantId, authenticatedAt, methods }
  }
}

function signInFirst(request: FastifyRequest, reply: FastifyReply, asked: Forwarded, { access }: Needs) {
  if (isPage(asked.method, request.headers)) return toSignIn(request, reply, asked)
  throw new OAuthError('login_required', 'no user is signed in to this host', {
    rule: 'lychgate-forward-auth-session',
    status: 401,
    isRoutine: true,
    headers: { 'www-authenticate': access === 'bearer' ? 'Bearer' : 'Cookie' },
  })
}

function stepUpFirst(request: FastifyRequest, reply: FastifyReply, asked: Forwarded) {
  if (isPage(asked.method, request.headers)) return toSignIn(request, reply, asked)
  throw new OAuthError('unmet_authentication_requirements', 'this path needs a second factor', {
    rule: 'lychgate-forward-auth-factor',
    status: 403,
  })
}

/** A proxy that knows 401 alone (nginx) asks with `redirect=401`, and redirects to `Location` itself. */
function toSignIn({ query }: FastifyRequest, reply: FastifyReply, { host, uri }: Forwarded): FastifyReply {
  const url = signInUrl(host, uri)
  const location = url.length < longestUrl ? url : signInUrl(host, '/')
  const status = single(parametersOf(query), 'redirect') === '401' ? 401 : 302
  if (status === 401) reply.header('www-authenticate', 'Cookie')
  return reply.code(status).header('location', location).send('')
}

function invalidToken(audience: string): OAuthError {
  const description = 'the access token is invalid, or not for this host'
  const challenge = bearerChallenge({ error: 'invalid_token', description })
  return new OAuthError('invalid_token', description, {
    rule: 'lychgate-forward-auth-token',
    stored: audience,
    headers: { 'www-authenticate': challenge },
  })
}
