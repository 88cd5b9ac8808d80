import type { FastifyInstance, FastifyReply } from 'fastify'
import { narrowClaims } from '../../domain/claims.ts'
import { documentDigest, documentDigestOf } from '../../domain/client-document.ts'
import { consentKind } from '../../domain/connections.ts'
import { put, type Write } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import {
  askedScope,
  denialError,
  rememberConsent,
  remembersConsent,
  type UserDenial,
  wantedScope,
} from '../../domain/interaction.ts'
import type { Scope, Session, User } from '../../domain/model.ts'
import { narrowScope } from '../../domain/scope.ts'
import type { Needs } from '../../feature/deps.ts'
import { userContext } from '../../http/address-prefix.ts'
import {
  type ConsentModel,
  consentEvent,
  consentModel,
  isApproved,
  readConsent,
  showDenial,
} from '../consent.ts'
import { type RedirectTarget, redirectTarget } from '../describe.ts'
import { assertOwnForm } from '../forms.ts'
import type { codeIssuer } from './issue-code.ts'
import {
  type ContinueFlow,
  changeInteraction,
  endInteraction,
  interactionExpired,
  interactionUrl,
  type Pending,
  type PendingAuthorization,
  pendingLoader,
} from './pending.ts'
import { handleOf } from './way-back.ts'

declare module '../pages.ts' {
  interface Pages {
    consent: ConsentModel & {
      readonly client: RedirectTarget & { readonly redirectUri: string }
      /** Whether the page asks only for what the user has not allowed before. */
      readonly onlyNew: boolean
    }
  }
}

/**
 * Serves the consent page, RFC 6749 §10.2 and §4.1.1: the user sees which client asks for what, narrows it, and
 * decides. What is granted comes from the stored request; the form only takes away.
 */
export function consentPage(
  app: FastifyInstance,
  deps: Needs<'config' | 'store' | 'clock' | 'service' | 'declared'>,
  continueFlow: ContinueFlow,
  issueCode: ReturnType<typeof codeIssuer>,
): void {
  const { service, store } = deps
  const { prefix } = service
  const load = pendingLoader(app, deps)
  const modelOf = consentModel(app, deps)

  app.get('/consent', { schema: { hide: true } }, async (request, reply) => {
    const pending = await load(request.query, reply)
    const { session } = pending
    if (pending.client === undefined || pending.step !== 'consent' || session === undefined)
      return continueFlow(pending)
    const { denial } = pending
    if (app.shortcuts?.agrees) {
      if (denial !== undefined) return deny(pending, session, denial)
      return agree(pending, session, wantedScope(pending.request))
    }
    const user = await store.find('user', session.userId)
    if (user === undefined) throw interactionExpired()
    if (denial !== undefined) return showDenial({ ...pending, user }, denial, formOf(pending, session))
    return show(pending, session, user)
  })

  app.post('/consent', { config: { repeats: ['scope'] }, schema: { hide: true } }, async (request, reply) => {
    const pending = await load(request.body, reply)
    const { session, sent } = pending
    const approved = isApproved(sent)
    // A denial counts even if the same was allowed in another tab.
    const isOver = approved && pending.step !== 'consent'
    if (pending.client === undefined || session === undefined || isOver) return continueFlow(pending)
    assertOwnForm(sent, csrfOf(pending, session), pageUrl(pending))
    if (pending.denial !== undefined)
      return approved ? reply.redirect(pageUrl(pending), 303) : deny(pending, session, pending.denial)
    const allowed = readConsent(sent, pending.client, pending.request, askedOf(pending))
    if (allowed === undefined || (approved && isOfOtherDocument(pending))) return askAgain(pending)
    return agree(pending, session, allowed)
  })

  const askAgain = (pending: PendingAuthorization) =>
    pending.reply.redirect(`${pageUrl(pending)}&changed=1`, 303)

  /** Ends the request of a user who may not use the client. */
  const deny = async (pending: PendingAuthorization, session: Session, denial: UserDenial) => {
    const { client, reply, now } = pending
    const parties = { userId: session.userId, clientId: client.id }
    const event = consentEvent(userContext(reply.request, now), parties, [], denial)
    await endInteraction(app, store, pending, event)
    return reply.authorizationError(pending.request, client, denialError(denial))
  }

  /** Ends the request with the scope that the user allowed. */
  const agree = async (pending: PendingAuthorization, session: Session, allowed: Scope) => {
    const { reply, now } = pending
    const scope = narrowScope(pending.request.scope, allowed)
    const parties = { userId: session.userId, clientId: pending.client.id }
    const event = consentEvent(userContext(reply.request, now), parties, scope)
    if (scope.length === 0) {
      await endInteraction(app, store, pending, event)
      return reply.authorizationError(pending.request, pending.client, denied())
    }
    const client = await app.keepClient(pending.client)
    // Another node stored another version of its document.
    if (client.published?.digest !== pending.client.published?.digest) return askAgain(pending)
    const claims = narrowClaims(pending.request.claims, allowed, service.scopeClaims)
    const writes = [...remember({ ...pending, client }, session, allowed), event]
    return issueCode({ ...pending, client }, { session, scope, claims, writes })
  }

  const show = async (pending: PendingAuthorization, session: Session, user: User): Promise<FastifyReply> => {
    const { client, request } = pending
    const scope = askedOf(pending)
    if (isOfOtherDocument(pending)) await noteDocument(pending)
    const outlives = client.grantTypes.includes('refresh_token')
    const asked = { scope, resource: request.resource, outlives }
    const model = await modelOf({ ...pending, user }, asked, formOf(pending, session))
    const { redirectUri } = request
    return pending.reply.page('consent', {
      ...model,
      client: { ...model.client, ...redirectTarget(redirectUri), redirectUri },
      onlyNew: scope.length < wantedScope(request).length,
    })
  }

  const formOf = (pending: PendingAuthorization, session: Session) => ({
    action: `${prefix}/consent`,
    hidden: { ...handleOf(pending.interaction), csrf: csrfOf(pending, session) },
    pageUrl: pageUrl(pending),
    switchUrl: `${interactionUrl(prefix, 'login', pending.interaction)}&switch=1`,
  })

  /** The page shows another version of the client's document than the request was for. */
  const noteDocument = (pending: PendingAuthorization) =>
    changeInteraction(store, pending, (current) => {
      const digest = pending.client.published?.digest
      const extra = { ...pending.request.extra, ...(digest !== undefined && documentDigest(digest)) }
      return { ...current, request: { ...pending.request, extra } }
    })

  const pageUrl = ({ interaction }: Pending) => interactionUrl(prefix, 'consent', interaction)
  /** Bound to the session, too: a page shown to one user cannot be submitted as another. */
  const csrfOf = ({ browserSecret, interaction }: Pending, session: Session) =>
    app.browser.csrfToken(browserSecret, 'consent', interaction.id, session.id)
}

/** Whether the client publishes another document now than the one that the pending request is for. */
function isOfOtherDocument({ client, request }: PendingAuthorization): boolean {
  return client.published !== undefined && client.published.digest !== documentDigestOf(request.extra)
}

function askedOf({ request, client, consent }: PendingAuthorization): Scope {
  return askedScope(request, client, consent)
}

/** Remembers the consent, unless the client asks every time. */
function remember(pending: PendingAuthorization, { userId }: Session, allowed: Scope): readonly Write[] {
  const { client, consent, request, now } = pending
  if (!remembersConsent(request, client)) return []
  return [put(consentKind, rememberConsent(request, userId, allowed, consent, now, client))]
}

function denied(): OAuthError {
  return new OAuthError('access_denied', 'the user denied the request', {
    rule: 'rfc6749-4.1.2.1-access-denied',
  })
}
