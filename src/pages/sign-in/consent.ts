import type { FastifyInstance, FastifyReply } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { narrowClaims } from '../../domain/claims.ts'
import { documentDigest, documentDigestOf } from '../../domain/client-document.ts'
import { consentKind } from '../../domain/connections.ts'
import { put, type Write } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import {
  askedScope,
  denialError,
  narrowByUser,
  rememberConsent,
  remembersConsent,
  type UserDenial,
  wantedScope,
} from '../../domain/interaction.ts'
import type { Scope, Seconds, Session, User } from '../../domain/model.ts'
import { every, single } from '../../domain/parameters.ts'
import { narrowScope } from '../../domain/scope.ts'
import type { CatalogueScope } from '../../domain/scope-catalogue.ts'
import { hashSecret } from '../../domain/secret.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { userContext } from '../../http/address-prefix.ts'
import {
  type ClientLink,
  clientLinks,
  type DescribedClient,
  describeClient,
  displayName,
  foreignResources,
  type NamedResource,
  type NamedUser,
  type RedirectTarget,
  redirectTarget,
} from '../describe.ts'
import { assertOwnForm, type FormModel } from '../forms.ts'
import { layOutScope, type OfferedScopes, scopesFor } from '../scopes.ts'
import { clientLogoUrl } from './client-logo.ts'
import { showDenial } from './denial.ts'
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
    consent: FormModel &
      OfferedScopes & {
        /** The same page with only read access ticked; absent if there is nothing to change. */
        readonly onlyReadUrl?: string
        readonly allUrl?: string
        readonly user: NamedUser
        /** Switches to another user. */
        readonly switchUrl: string
        readonly client: DescribedClient &
          RedirectTarget & {
            readonly id: string
            readonly redirectUri: string
            /** http(s) links, shown with their host and never fetched. */
            readonly links: readonly ClientLink[]
            /** Its logo, from this server. */
            readonly logoUrl?: string
          }
        /** The resources of the access, if it is not only the service itself. */
        readonly resources: readonly NamedResource[]
        /** Whether the client changed what this page shows since the user saw it. */
        readonly changed: boolean
        /** Whether the page asks only for what the user has not allowed before. */
        readonly onlyNew: boolean
        /** Absent if nothing outlives the access token. */
        readonly accessLastsSeconds?: Seconds
        /** Where the user takes access back; absent if there is no account page. */
        readonly accountUrl?: string
      }
  }
}

/**
 * Serves the consent page, RFC 6749 §10.2 and §4.1.1: the user sees which client asks for what, narrows it, and
 * decides. What is granted comes from the stored request; the form only takes away.
 */
export function consentPage(
  app: FastifyInstance,
  deps: AppDeps,
  continueFlow: ContinueFlow,
  issueCode: ReturnType<typeof codeIssuer>,
): void {
  const { config, service, store, declared } = deps
  const { prefix } = service
  const load = pendingLoader(app, deps)
  const scopesIn = scopesFor(service.catalogue, app.texts, declared.scopes)

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
    if (denial !== undefined) return showDenial(pending, user, { prefix, csrf: csrfOf(pending, session) })
    return show(pending, session, user)
  })

  app.post('/consent', { config: { repeats: ['scope'] }, schema: { hide: true } }, async (request, reply) => {
    const pending = await load(request.body, reply)
    const { session, sent } = pending
    const approved = single(sent, 'decision') === 'approve'
    // A denial counts even if the same was allowed in another tab.
    const isOver = approved && pending.step !== 'consent'
    if (pending.client === undefined || session === undefined || isOver) return continueFlow(pending)
    assertOwnForm(sent, csrfOf(pending, session), pageUrl(pending))
    if (pending.denial !== undefined)
      return approved ? reply.redirect(pageUrl(pending), 303) : deny(pending, session, pending.denial)
    // A client that registered itself can rename itself while its page is open: consent is for what the page showed.
    // The page always sends `shown`; a script that leaves it out has shown no page.
    const shown = single(sent, 'shown') ?? shownOf(pending)
    if (approved && (shown !== shownOf(pending) || isOfOtherDocument(pending))) return askAgain(pending)
    const allowed = approved ? narrowByUser(pending.request, askedOf(pending), every(sent, 'scope')) : []
    return agree(pending, session, allowed)
  })

  const askAgain = (pending: PendingAuthorization) =>
    pending.reply.redirect(`${pageUrl(pending)}&changed=1`, 303)

  /** Ends the request of a user who may not use the client. */
  const deny = async (pending: PendingAuthorization, session: Session, denial: UserDenial) => {
    const { client, reply, now } = pending
    const facts = { userId: session.userId, clientId: client.id, rule: denial.rule }
    const event = auditEvent('client-access-denied', userContext(reply.request, now), facts)
    await endInteraction(app, store, pending, event)
    return reply.authorizationError(pending.request, denialError(denial))
  }

  /** Ends the request with the scope that the user allowed. */
  const agree = async (pending: PendingAuthorization, session: Session, allowed: Scope) => {
    const { reply, now } = pending
    const scope = narrowScope(pending.request.scope, allowed)
    const context = userContext(reply.request, now)
    const parties = { userId: session.userId, clientId: pending.client.id }
    if (scope.length === 0) {
      await endInteraction(app, store, pending, auditEvent('consent-refused', context, parties))
      return reply.authorizationError(pending.request, denied())
    }
    const client = await app.keepClient(pending.client)
    // Another node stored another version of its document.
    if (client.published?.digest !== pending.client.published?.digest) return askAgain(pending)
    const claims = narrowClaims(pending.request.claims, allowed, service.scopeClaims)
    const agreed = auditEvent('consent', context, { ...parties, scope: scope.join(' ') })
    const writes = [...remember({ ...pending, client }, session, allowed), agreed]
    return issueCode({ ...pending, client }, { session, scope, claims, writes })
  }

  const show = async (pending: PendingAuthorization, session: Session, user: User): Promise<FastifyReply> => {
    const { interaction, client, request, sent, reply, now } = pending
    const { language } = reply.request
    const onlyRead = single(sent, 'only') === 'read'
    const isChecked = ({ access }: CatalogueScope) => !onlyRead || access !== 'write'
    const asked = askedOf(pending)
    if (isOfOtherDocument(pending)) await noteDocument(pending)
    const { identity, areas } = layOutScope(asked, scopesIn(language), isChecked)
    const canChange = areas.some(({ write }) => write !== undefined)
    const logoUrl = await clientLogoUrl(app, deps, client)
    const outlives = client.grantTypes.includes('refresh_token')
    const model = {
      action: `${prefix}/consent`,
      hidden: { ...handleOf(interaction), csrf: csrfOf(pending, session), shown: shownOf(pending) },
      ...(canChange && !onlyRead && { onlyReadUrl: `${pageUrl(pending)}&only=read` }),
      ...(canChange && onlyRead && { allUrl: pageUrl(pending) }),
      user: displayName(user),
      switchUrl: `${interactionUrl(prefix, 'login', interaction)}&switch=1`,
      client: {
        ...describeClient(client, reply.request, service, now),
        ...redirectTarget(request.redirectUri),
        id: client.id,
        redirectUri: request.redirectUri,
        links: clientLinks(client, language),
        ...(logoUrl !== undefined && { logoUrl }),
      },
      resources: foreignResources(request.resource, service, language),
      identity,
      areas,
      changed: single(sent, 'changed') !== undefined,
      onlyNew: asked.length < wantedScope(request).length,
      ...(outlives && { accessLastsSeconds: config.lifetimes.refreshTokenAbsoluteSeconds }),
      accountUrl: `${prefix}/account/apps`,
    }
    return reply.page('consent', model)
  }

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

/** Identifies what the page shows of a client: it differs as soon as the client changes any of it. */
function shownOf({ client }: PendingAuthorization): string {
  const { name, localized, clientUri, policyUri, tosUri, redirectUris, grantTypes, published } = client
  const shown = [name, localized, clientUri, policyUri, tosUri, redirectUris, grantTypes]
  return hashSecret(JSON.stringify(published === undefined ? shown : [...shown, published.digest]))
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
