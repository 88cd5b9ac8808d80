import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { auditEvent } from '../../domain/audit.ts'
import { narrowClaims } from '../../domain/claims.ts'
import { consentKind } from '../../domain/connections.ts'
import { put, type Write } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { askedScope, narrowByUser, rememberConsent, wantedScope } from '../../domain/interaction.ts'
import { clientWords, resourceName } from '../../domain/localized.ts'
import type { Scope, Seconds, Session, User } from '../../domain/model.ts'
import { every, single } from '../../domain/parameters.ts'
import { isLoopbackUri } from '../../domain/redirect-uri.ts'
import { narrowScope } from '../../domain/scope.ts'
import type { CatalogueScope } from '../../domain/scope-catalogue.ts'
import { hashSecret, isSameText } from '../../domain/secret.ts'
import type { Text } from '../../domain/text.ts'
import { addressPrefix, userContext } from '../../http/address-prefix.ts'
import { parametersOf } from '../../http/parameters.ts'
import { forged } from '../forgery.ts'
import { msg } from '../i18n/catalogue.ts'
import { fromPlace } from '../i18n/place.ts'
import { scopesFor } from '../i18n/scopes.ts'
import type { ConsentPage } from '../page-models.ts'
import { layOutScope } from './consent-areas.ts'
import { codeIssuer } from './issue-code.ts'
import {
  type ContinueFlow,
  deleteInteraction,
  formActionOf,
  interactionExpired,
  type Pending,
  type PendingAuthorization,
  pendingLoader,
} from './pending.ts'

/**
 * Consent, RFC 6749 §10.2 and §4.1.1: the user sees who asks for what, narrows it, and decides. What is granted
 * comes from the stored request; the form only takes away.
 */
export function consentPage(app: FastifyInstance, deps: AppDeps, continueFlow: ContinueFlow): void {
  const { config, service, store, clock } = deps
  const load = pendingLoader(app, deps)
  const issueCode = codeIssuer(app, deps)
  const scopesIn = scopesFor(service.catalogue, app.texts)
  const action = `${service.prefix}/consent`

  app.get('/consent', { schema: { hide: true } }, async (request, reply) => {
    const query = parametersOf(request.query)
    const now = clock()
    const pending = await load(request, single(query, 'interaction'), now)
    const { session } = pending
    if (pending.client === undefined || pending.step !== 'consent' || session === undefined)
      return continueFlow(pending, reply)
    if (app.shortcuts?.agrees) return agree(pending, session, wantedScope(pending.request), now, reply)
    const user = await store.find('user', session.userId)
    if (user === undefined) throw interactionExpired()
    const onlyRead = single(query, 'only') === 'read'
    const changed = single(query, 'changed') !== undefined
    return show(pending, session, user, { onlyRead, changed }, now, reply)
  })

  app.post('/consent', { schema: { hide: true } }, async (request, reply) => {
    const form = parametersOf(request.body)
    const now = clock()
    const pending = await load(request, single(form, 'interaction'), now)
    const { session } = pending
    const approved = single(form, 'decision') === 'approve'
    // A rejection counts even where the same was allowed in another tab in the meantime.
    const isOver = approved && pending.step !== 'consent'
    if (pending.client === undefined || session === undefined || isOver) return continueFlow(pending, reply)
    if (!isSameText(single(form, 'csrf'), csrfOf(pending, session))) throw forged(pageUrl(pending))
    // A client that registered itself can rename itself while its page is open: consent is for what the page showed.
    // The page always sends `shown`; a script that leaves it out has shown no page.
    const shown = single(form, 'shown') ?? shownOf(pending)
    if (approved && shown !== shownOf(pending)) return reply.redirect(`${pageUrl(pending)}&changed=1`, 303)
    const allowed = approved ? narrowByUser(pending.request, askedOf(pending), every(form, 'scope')) : []
    return agree(pending, session, allowed, now, reply)
  })

  /** Ends the request by what the user left of it. */
  const agree = async (
    pending: PendingAuthorization,
    session: Session,
    allowed: Scope,
    now: Seconds,
    reply: FastifyReply,
  ) => {
    const scope = narrowScope(pending.request.scope, allowed)
    const context = userContext(reply.request, now)
    if (scope.length === 0) {
      await deleteInteraction(
        app,
        deps,
        pending,
        auditEvent('consent-refused', context, partiesOf(pending, session)),
      )
      return reply.authorizationError(pending.request, denied())
    }
    const claims = narrowClaims(pending.request.claims, allowed, service.scopeClaims)
    const agreed = auditEvent('consent', context, { ...partiesOf(pending, session), scope: scope.join(' ') })
    const writes = [...remember(pending, session, allowed, now), agreed]
    return issueCode(pending, { session, scope, claims, writes }, now, reply)
  }

  const show = (
    pending: PendingAuthorization,
    session: Session,
    user: User,
    { onlyRead, changed }: { readonly onlyRead: boolean; readonly changed: boolean },
    now: Seconds,
    reply: FastifyReply,
  ) => {
    const { interaction, client, request } = pending
    const { language } = reply.request
    const isChecked = ({ access }: CatalogueScope) => !onlyRead || access !== 'write'
    const asked = askedOf(pending)
    const { identity, areas } = layOutScope(asked, scopesIn(language), isChecked)
    const canChange = areas.some(({ write }) => write !== undefined)
    const outlives = client.grantTypes.includes('refresh_token')
    const model: ConsentPage = {
      action,
      hidden: { interaction: interaction.id, csrf: csrfOf(pending, session), shown: shownOf(pending) },
      ...(canChange && !onlyRead && { onlyReadUrl: `${pageUrl(pending)}&only=read` }),
      ...(canChange && onlyRead && { allUrl: pageUrl(pending) }),
      user: { name: String(user.claims['name'] ?? user.username), username: user.username },
      switchUrl: `${service.prefix}/login?interaction=${interaction.id}&switch=1`,
      client: describeClient(pending, registeredFrom(pending, reply), language, now),
      resources: foreignResources(request.resource, language),
      identity,
      areas,
      changed,
      onlyNew: asked.length < wantedScope(request).length,
      ...(outlives && { accessLastsSeconds: config.lifetimes.refreshTokenAbsoluteSeconds }),
      accountUrl: `${service.prefix}/account/apps`,
    }
    return reply.page('consent', model, formActionOf(pending))
  }

  const registeredFrom = ({ client }: PendingAuthorization, { request }: FastifyReply) =>
    client.registeredFrom === undefined
      ? undefined
      : fromPlace(client.registeredFrom, addressPrefix(request.ip), !service.https)

  const foreignResources = (identifiers: readonly string[], language: string) =>
    identifiers.every((identifier) => identifier === service.resources.own.identifier)
      ? []
      : identifiers.map((identifier) => {
          const resource = service.resources.find(identifier)
          return { identifier, name: resource ? resourceName(resource, language) : identifier }
        })

  const pageUrl = ({ interaction }: Pending) => `${action}?interaction=${interaction.id}`
  /** Bound to the login too: a page shown to one user cannot be answered as another. */
  const csrfOf = ({ browserSecret, interaction }: Pending, session: Session) =>
    app.browser.csrfToken(browserSecret, 'consent', interaction.id, session.id)
}

/** The user and the client of a consent. */
function partiesOf({ client }: PendingAuthorization, { userId }: Session) {
  return { userId, clientId: client.id }
}

/** Identifies what the page shows of a client: it differs as soon as the client changes any of it. */
function shownOf({ client }: PendingAuthorization): string {
  const { name, localized, clientUri, policyUri, tosUri, redirectUris, grantTypes } = client
  return hashSecret(JSON.stringify([name, localized, clientUri, policyUri, tosUri, redirectUris, grantTypes]))
}

function askedOf({ request, client, consent }: PendingAuthorization): Scope {
  return askedScope(request, client, consent)
}

/** An integration's consent is kept and grows; a client that registered itself asks every time, RFC 8252 §8.6. */
function remember(
  { client, consent, request }: PendingAuthorization,
  session: Session,
  allowed: Scope,
  now: Seconds,
): readonly Write[] {
  if (client.origin !== 'integration' || client.consent !== 'remember') return []
  const kept = rememberConsent(request, session.userId, allowed, consent, now)
  return [put(consentKind, kept)]
}

function denied(): OAuthError {
  return new OAuthError('access_denied', 'the user denied the request', {
    rule: 'rfc6749-4.1.2.1-access-denied',
  })
}

function describeClient(
  { client, request }: PendingAuthorization,
  registeredFrom: Text | undefined,
  language: string,
  now: Seconds,
): ConsentPage['client'] {
  const { redirectUri } = request
  const { name, clientUri, policyUri, tosUri } = clientWords(client, language)
  const links = [
    { label: msg('consent.website'), url: clientUri },
    { label: msg('consent.privacy'), url: policyUri },
    { label: msg('consent.terms'), url: tosUri },
  ].flatMap(({ label, url }) => (url === undefined ? [] : [{ label, url, host: new URL(url).host }]))
  return {
    ...(name !== undefined && { name }),
    id: client.id,
    selfRegistered: client.origin === 'registered',
    registeredAgoSeconds: Math.max(1, now - client.issuedAt),
    ...(registeredFrom !== undefined && { registeredFrom }),
    redirectUri,
    redirectHost: new URL(redirectUri).host,
    loopback: isLoopbackUri(redirectUri),
    links,
  }
}
