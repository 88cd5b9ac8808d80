import type { FastifyInstance, FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import { assertRegisteredRedirect } from '../../domain/authorization-request.ts'
import { consentKey, consentKind } from '../../domain/connections.ts'
import { currentRequest } from '../../domain/current-grant.ts'
import { accept, insert, remove, update, type Write } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import {
  interactionKind,
  isBinding,
  nextStep,
  noProgress,
  type Remedy,
  type Step,
  signInStep,
  type UserDenial,
} from '../../domain/interaction.ts'
import type {
  AuthorizationRequest,
  Client,
  Consent,
  Interaction,
  PageRequest,
  Seconds,
  Session,
} from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import { hashSecret } from '../../domain/secret.ts'
import type { AppDeps, Needs } from '../../feature/deps.ts'
import { addressPrefix } from '../../http/address-prefix.ts'
import { parametersOf } from '../../http/parameters.ts'
import { RecordExists } from '../../storage/store.ts'
import { loadAvailableAcrs } from '../../users/factors.ts'
import { msg } from '../i18n/i18n.ts'
import { handleOf, openRule } from './way-back.ts'

declare module 'fastify' {
  interface FastifyReply {
    /** Stores a request that waits for the user in this browser, and redirects to its page. */
    startInteraction(wanted: Interaction['request'], page: 'login' | 'consent'): Promise<FastifyReply>
  }
}

/** A pending request, and the visit of the user who is to continue it. */
export type Pending = PendingAuthorization | PendingPage

/** The authorization request of a client. */
export interface PendingAuthorization extends Visit {
  readonly request: AuthorizationRequest
  readonly client: Client
  readonly consent: Consent | undefined
  readonly step: Step | Remedy['step']
  /** Set if the user may not use the client; the consent page shows it. */
  readonly denial: UserDenial | undefined
  /** Why the client may not have it any more; the step is `reject` then. */
  readonly lost?: OAuthError
}

/** A page that the user has to sign in for. */
export interface PendingPage extends Visit {
  readonly request: PageRequest
  readonly client?: undefined
  readonly step: Exclude<Step, 'consent'> | Remedy['step']
}

interface Visit {
  readonly interaction: Interaction
  readonly session: Session | undefined
  /** What the user has to do first, or is asked to, because of a policy of sign-ins. */
  readonly remedy?: Remedy
  /** The browser's secret, from which CSRF tokens are made. */
  readonly browserSecret: string
  /** The query or the form. */
  readonly sent: Parameters
  readonly reply: FastifyReply
  readonly now: Seconds
}

/** Continues a pending request: redirects to its next page, or to the client with the response. */
export type ContinueFlow = (pending: Pending) => Promise<FastifyReply>

/** Returns the client of a pending request for an audit event; a page of the user has none. */
export function clientOf({ client }: Pending): { readonly clientId?: string } {
  return client === undefined ? {} : { clientId: client.id }
}

/** Returns the address of a page for a pending request. */
export function interactionUrl(prefix: string, page: 'login' | 'consent', interaction: Interaction): string {
  return `${prefix}/${page}?${new URLSearchParams(handleOf(interaction))}`
}

/** Decorates `reply.startInteraction`. The browser has only a handle of its request. */
export const interactionStarter = fp<Needs<'config' | 'service' | 'store' | 'clock' | 'random'>>(
  async (app, { config, service, store, clock, random }) => {
    app.decorateReply('startInteraction', async function (this: FastifyReply, request, page) {
      const now = clock()
      const interaction = {
        id: random(16).toString('base64url'),
        browserHash: hashSecret(app.browser.ensureSecret(this.request, this)),
        request,
        ...noProgress,
        createdAt: now,
        expiresAt: now + config.lifetimes.interactionSeconds,
      }
      await store.write(insert(interactionKind, interaction))
      return this.redirect(interactionUrl(service.prefix, page, interaction), 303)
    })
  },
  { name: 'waiting', dependencies: ['browser'] },
)

/** Loads the pending request that a query or form names. Its handle works only with the cookie it is bound to. */
export function pendingLoader(app: FastifyInstance, deps: Needs<'store' | 'service' | 'clock'>) {
  const { store, clock } = deps
  return async (parsed: unknown, reply: FastifyReply): Promise<Pending> => {
    const sent = parametersOf(parsed)
    const now = clock()
    const { request } = reply
    const browserSecret = app.browser.secret(request)
    const id = single(sent, 'interaction')
    if (id === undefined) throw interactionExpired()
    if (browserSecret === undefined) throw noCookies()
    const interaction = id.length > 64 ? undefined : await store.find(interactionKind, id)
    if (interaction === undefined || now >= interaction.expiresAt) throw interactionExpired()
    if (interaction.browserHash !== hashSecret(browserSecret)) throw interactionExpired()
    const pendingRequest = interaction.request
    request.uiLocales = pendingRequest.uiLocales
    const [client, session] = await Promise.all([
      'page' in pendingRequest
        ? undefined
        : app.resolveClient(pendingRequest.clientId, 'pending', addressPrefix(request.ip)),
      app.browser.session(request, now),
    ])
    const visit = { interaction, session, browserSecret, sent, reply, now }
    const availableAcrs = await loadAvailableAcrs(deps, pendingRequest, session)
    const denialOf = async (step: Step, client: Client | undefined) => {
      if (session === undefined || (step !== 'respond' && step !== 'consent')) return undefined
      const denial = await app.seams.userChecks.collect(client, session)
      // What is not required yet is asked for once, after a sign-in.
      const isNews = interaction.authenticatedSessionId === session.id && interaction.enrolsLater !== true
      return isBinding(denial) || isNews ? denial : undefined
    }
    if ('page' in pendingRequest) {
      const step = signInStep(pendingRequest, interaction, session, now, availableAcrs)
      const { clientId } = pendingRequest.policy ?? {}
      const asked = clientId === undefined ? undefined : await app.resolveClient(clientId)
      const remedy = pendingRequest.policy && (await denialOf(step, asked))?.remedy
      return { ...visit, request: pendingRequest, step: remedy?.step ?? step, ...(remedy && { remedy }) }
    }
    if (client === undefined) throw interactionExpired()
    // The client may have replaced its redirect URIs since the request came.
    assertRegisteredRedirect(pendingRequest.redirectUri, client)
    // An operator may have taken some of it from the client since the request came.
    const current = currentRequest(pendingRequest, client, deps.service)
    if (current instanceof OAuthError)
      return {
        ...visit,
        request: pendingRequest,
        client,
        consent: undefined,
        step: 'reject',
        denial: undefined,
        lost: current,
      }
    request.leadsToClient = true
    const consent =
      session && client.consent === 'remember'
        ? await store.find(consentKind, consentKey(session.userId, client.id))
        : undefined
    const step = nextStep(current, interaction, client, session, consent, now, availableAcrs)
    const { remedy, ...denied } = (await denialOf(step, client)) ?? {}
    const denial = remedy === undefined && 'rule' in denied ? denied : undefined
    const shown = remedy?.step ?? (denial === undefined ? step : 'consent')
    return { ...visit, request: current, client, consent, step: shown, denial, ...(remedy && { remedy }) }
  }
}

/**
 * Changes a pending request, and writes `others` with it. Returns the request before the change.
 * @throws {OAuthError} if the request has ended.
 */
export function changeInteraction(
  store: AppDeps['store'],
  { interaction }: Pending,
  change: (current: Interaction) => Interaction,
  ...others: readonly Write[]
): Promise<Interaction> {
  return store.transact(interactionKind, interaction.id, (current) => {
    if (current === undefined) throw interactionExpired()
    return accept(current, update(interactionKind, change(current)), ...others)
  })
}

/**
 * Ends a pending request without a grant, and writes `others` with it.
 * @throws {OAuthError} if the request has ended: in one of two tabs that end it.
 */
export function endInteraction(
  app: FastifyInstance,
  store: AppDeps['store'],
  pending: Pending,
  ...others: readonly Write[]
): Promise<void> {
  const { client, request } = pending
  const ending = client === undefined ? [] : (app.seams.requestEnds.collect(request) ?? [])
  return removeInteraction(store, pending, ...others, ...ending)
}

/** The same with the writes that insert the grant and so end the client's request. */
export async function removeInteraction(
  store: AppDeps['store'],
  { interaction: { id } }: Pending,
  ...writes: readonly Write[]
): Promise<void> {
  try {
    await store.transact(interactionKind, id, (current) => {
      if (current === undefined) throw interactionExpired()
      return accept(undefined, remove(interactionKind, id), ...writes)
    })
  } catch (error) {
    throw error instanceof RecordExists ? interactionExpired() : error
  }
}

/** Returns the error of a request that was completed, has expired or belongs to another browser. */
export function interactionExpired(): OAuthError {
  return new OAuthError('invalid_request', 'the authorization request has expired or was completed already', {
    rule: openRule,
    page: { title: msg('error.ended'), advice: msg('error.ended.advice') },
  })
}

function noCookies(): OAuthError {
  return new OAuthError('invalid_request', 'the browser sent no cookie', {
    rule: 'rfc6749-10.12-csrf-approval',
    page: { title: msg('error.noCookie'), advice: msg('error.noCookie.advice') },
  })
}
