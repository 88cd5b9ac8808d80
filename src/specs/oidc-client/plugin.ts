import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { accept, put, remove } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { SignInElsewhere } from '../../domain/model.ts'
import { assertNoneRepeated } from '../../domain/parameters.ts'
import { hashSecret } from '../../domain/secret.ts'
import type { Needs, PageDeps } from '../../feature/deps.ts'
import { addressPrefix, userContext } from '../../http/address-prefix.ts'
import { nothingHere, recordRejection } from '../../http/errors.ts'
import { parametersOf } from '../../http/parameters.ts'
import { addAccountPage } from '../../pages/account/account-page.ts'
import { acceptOwnForms } from '../../pages/forms.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { loginForms } from '../../pages/sign-in/login-forms.ts'
import { passkeyProof } from '../../pages/sign-in/passkey-proof.ts'
import { clientOf, type Pending, pendingLoader } from '../../pages/sign-in/pending.ts'
import { secondStep } from '../../pages/sign-in/second-step.ts'
import { sessionStarter } from '../../pages/sign-in/start-session.ts'
import { RecordExists } from '../../storage/store.ts'
import { factorsOf } from '../../users/factors.ts'
import { mapGroups } from '../../users/mapped-groups.ts'
import { secondStepOf } from '../../users/rules/second-factor.ts'
import { recentSeconds } from '../../users/rules/session.ts'
import {
  insertUpstreamLink,
  type UpstreamLink,
  upstreamLinkId,
  upstreamLinkKind,
} from '../../users/rules/upstream-link.ts'
import { addUser, createUser } from '../../users/rules/user.ts'
import type { Upstream } from '../../users/upstream-members.ts'
import { type AnyUpstream, redirectUriOf, upstreamsOf } from '../../users/upstreams.ts'
import { upstreamsPage } from './account.ts'
import { endWithUpstream } from './ends.ts'
import { linker } from './link.ts'
import { mappedNames, newUserOf, userNames } from './rules/first-sign-in.ts'
import type { UpstreamClaims } from './rules/id-token.ts'
import {
  type Attempt,
  assertOwnResponse,
  attemptIdOf,
  attemptKind,
  authorizationUrl,
  bindingOf,
  readResponse,
} from './rules/requests.ts'
import { assertConfigured } from './schema.ts'
import { trialPage } from './trial.ts'
import { upstreamRequests } from './upstreams.ts'

/** Where the user comes back to who links an upstream. */
const accountPath = '/account/upstreams'

/**
 * OpenID Connect Core §3.1 as a Relying Party: users sign in with an upstream that the operator named, or link their
 * account there to the one here. What came through an upstream ends with it.
 */
export const upstreamSignIn: FastifyPluginAsync<PageDeps & Needs<'fetchUrl'>> = async (app, deps) => {
  const { config, service, store, clock, random } = deps
  const { prefix } = service
  assertConfigured(config.upstreams)
  const upstreams = upstreamsOf(deps)
  const listEnabled = async () => (await upstreams.list()).filter(({ enabled }) => enabled)

  endWithUpstream(app, deps)

  const requests = upstreamRequests(deps)
  await acceptOwnForms(app, deps)
  const load = pendingLoader(app, deps)
  const forms = loginForms(app, deps)
  const startSession = sessionStarter(app, deps)
  const link = linker(app, deps, prefix + accountPath)
  const trial = trialPage(app, deps)
  const second = secondStep(app, deps, forms, passkeyProof(deps, forms))

  app.seams.signInWays.add(async (handle) => {
    const all = await upstreams.list()
    if (all.length === 0) return undefined
    const ways = all
      .filter(({ enabled }) => enabled)
      .map(({ id, name }) => ({
        name,
        url: `${prefix}/login/upstream/${id}?${new URLSearchParams(handle)}`,
      }))
    return { ways, accountUrl: prefix + accountPath }
  })
  const named = async ({ params }: FastifyRequest, isTried = false): Promise<AnyUpstream> => {
    const { upstream: id } = params as { upstream: string } // of each route
    const upstream = /^[a-z0-9-]{1,32}$/.test(id) ? await upstreams.find(id) : undefined
    // One that is tried need not be live.
    if (upstream === undefined || !(upstream.enabled || isTried)) throw nothingHere()
    return upstream
  }
  const options = { config: { limit: 'authorization' }, schema: { hide: true } } as const

  app.get('/login/upstream/:upstream', options, async (request, reply) => {
    const upstream = await named(request)
    const pending = await load(request.query, reply)
    const { interaction, browserSecret } = pending
    const { prompt, maxAgeSeconds } = pending.request
    const maxAge = prompt.includes('login') ? 0 : maxAgeSeconds
    try {
      return await begin(reply, upstream, browserSecret, {
        id: hashSecret(`upstream ${interaction.id}`),
        interaction: interaction.id,
        ...(maxAge !== undefined && { maxAgeSeconds: maxAge }),
      })
    } catch (error) {
      return failed(pending, upstream, error)
    }
  })

  app.get('/login/upstream/:upstream/try', options, async (request, reply) => {
    const upstream = await named(request, true)
    return trial.begin(reply, upstream, (session) =>
      begin(reply, upstream, app.browser.ensureSecret(request, reply), {
        id: hashSecret(`upstream try ${session.id}`),
        tries: { userId: session.userId, sessionId: session.id },
      }),
    )
  })

  app.get('/login/upstream/:upstream/callback', options, async (request, reply) => {
    const response = parametersOf(request.query)
    assertNoneRepeated(response)
    const browserSecret = app.browser.secret(request)
    const id = attemptIdOf(response)
    const found = id === undefined ? undefined : await store.find(attemptKind, id)
    const upstream = await named(request, found?.tries !== undefined)
    assertOwnResponse(response, found, upstream.id, browserSecret, clock())
    const attempt = await store.transact(attemptKind, found.id, (current) =>
      current?.key === found.key ? accept(current, remove(attemptKind, found.id)) : accept(undefined),
    )
    assertOwnResponse(response, attempt, upstream.id, browserSecret, clock())
    const claims = async () => {
      const provider = await requests.providerOf(upstream)
      return requests.claimsOf(upstream, provider, {
        ...bindingOf(attempt, browserSecret ?? ''),
        code: readResponse(response, provider),
        maxAgeSeconds: attempt.maxAgeSeconds,
        begunAt: attempt.createdAt,
        from: addressPrefix(request.ip),
      })
    }
    if (attempt.tries !== undefined) return trial.show(reply, upstream, attempt.tries, claims)
    // The response is used up: another language is for the page that goes on.
    request.pageUrl = prefix + accountPath
    if (attempt.links !== undefined) return link(reply, upstream, attempt.links, claims)
    const pending = await load({ interaction: attempt.interaction }, reply)
    request.pageUrl = forms.pageUrl(pending)
    try {
      return await signIn(pending, upstream, await claims())
    } catch (error) {
      return failed(pending, upstream, error)
    }
  })

  const page = upstreamsPage(deps, listEnabled, accountPath, ({ reply, session, request }, upstream) =>
    begin(reply, upstream, app.browser.ensureSecret(request, reply), {
      id: hashSecret(`upstream ${session.id}`),
      links: { userId: session.userId, sessionId: session.id },
    }),
  )
  addAccountPage(app, deps, page)

  /** Redirects to the upstream. An attempt replaces the one before it. */
  const begin = async (
    reply: FastifyReply,
    upstream: AnyUpstream,
    browserSecret: string,
    wanted: Pick<Attempt, 'id' | 'interaction' | 'links' | 'tries' | 'maxAgeSeconds'>,
  ): Promise<FastifyReply> => {
    const provider = await requests.providerOf(upstream)
    const createdAt = clock()
    const attempt: Attempt = {
      ...wanted,
      upstream: upstream.id,
      key: random(16).toString('base64url'),
      createdAt,
      expiresAt: createdAt + config.lifetimes.interactionSeconds,
    }
    await store.write(put(attemptKind, attempt))
    const binding = bindingOf(attempt, browserSecret)
    return reply.redirect(
      authorizationUrl(provider, upstream, redirectUriOf(service, upstream), binding, attempt.maxAgeSeconds),
      303,
    )
  }

  /** Signs in the user of a link, with the second factor that they have here. */
  const signIn = async (
    pending: Pending,
    upstream: Upstream,
    claims: UpstreamClaims,
  ): Promise<FastifyReply> => {
    const { reply, now, request } = pending
    const linked = await linkOf(pending, upstream, claims)
    if (linked === 'unknown' || linked === 'exists') return rejected(pending, upstream, linked)
    const user = await store.find('user', linked.userId)
    if (user === undefined) return rejected(pending, upstream, 'unknown')
    if (user.lockedAt !== undefined) return forms.reject(pending, msg('login.locked'))
    await mapGroups(
      store,
      { userId: user.id, issuer: upstream.issuer, names: mappedNames(claims, upstream) },
      userContext(reply.request, now),
    )
    const isMulti = upstream.multiFactor === 'accept' && claims.methods.includes('mfa')
    const elsewhere: SignInElsewhere = {
      upstream: upstream.id,
      issuer: upstream.issuer,
      linkId: linked.id,
      methods: isMulti ? ['mfa'] : [],
      // One that does not say when never counts as a recent sign-in.
      authenticatedAt: claims.authenticatedAt ?? now - recentSeconds - 1,
      expiresAt: now + Math.min(upstream.maxAgeSeconds, config.lifetimes.sessionAbsoluteSeconds),
    }
    if (!isMulti && secondStepOf(await factorsOf(deps, user.id), request.acr) !== undefined) {
      await second.begin(pending, user, elsewhere)
      return reply.redirect(forms.pageUrl(pending), 303)
    }
    const { methods } = elsewhere
    const proof = { user, methods, continues: elsewhere, elsewhere: { ...elsewhere, userId: user.id } }
    if (await startSession(pending, proof)) return forms.continueFlow(pending)
    return forms.reject(pending, msg('login.changed'))
  }

  /** Returns the link of a user of the upstream; adds a user if the policy says so. */
  const linkOf = async (
    { reply, now }: Pending,
    upstream: Upstream,
    claims: UpstreamClaims,
  ): Promise<UpstreamLink | 'unknown' | 'exists'> => {
    const id = upstreamLinkId(upstream.issuer, claims.sub)
    const before = await store.find(upstreamLinkKind, id)
    if (before !== undefined) return before
    const described = newUserOf(claims, upstream, await freeNameOf(claims, upstream))
    if (described === undefined) return 'unknown'
    const user = createUser(described, random(16), now)
    const context = userContext(reply.request, now)
    const owned = { userId: user.id, issuer: upstream.issuer, sub: claims.sub }
    try {
      await store.write(
        ...addUser(user, false, context),
        ...insertUpstreamLink(owned, upstream.name, context),
      )
    } catch (error) {
      // Its name or address belongs to a user here, or another tab was first.
      if (!(error instanceof RecordExists)) throw error
      return (await store.find(upstreamLinkKind, id)) ?? 'exists'
    }
    return { ...owned, id, createdAt: now }
  }

  /** Returns the first of the names that no user has. */
  const freeNameOf = async (claims: UpstreamClaims, upstream: Upstream): Promise<string> => {
    const names = userNames(claims, upstream, random(6).toString('hex'))
    for (const name of names) if ((await store.find('userByLogin', name)) === undefined) return name
    return names.at(-1) ?? ''
  }

  /** Shows the sign-in page again, and logs the rule. Other errors than those about the upstream are thrown. */
  const failed = async (pending: Pending, upstream: Upstream, error: unknown): Promise<FastifyReply> => {
    const isExpected =
      error instanceof OAuthError && ['upstream_rejected', 'access_denied'].includes(error.code)
    if (!isExpected) throw error
    const { reply, now } = pending
    const { rule } = error.detail
    recordRejection(error, reply)
    const facts = { ...clientOf(pending), upstream: upstream.id, rule }
    await store.write(auditEvent('sign-in-failed', userContext(reply.request, now), facts))
    const isDenied = error.code === 'access_denied'
    const problem = msg(isDenied ? 'upstream.denied' : 'upstream.failed', { upstream: upstream.name })
    return forms.showLogin(pending, { problem, status: error.status })
  }

  const rejected = async (pending: Pending, { id, name }: Upstream, why: 'unknown' | 'exists') => {
    const facts = { ...clientOf(pending), upstream: id, why }
    await store.write(auditEvent('sign-in-failed', userContext(pending.reply.request, pending.now), facts))
    return forms.reject(pending, msg(`upstream.${why}`, { upstream: name }))
  }
}
