import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { assertRegisteredRedirect } from '../../domain/authorization-request.ts'
import { consentKey, consentKind } from '../../domain/connections.ts'
import { accept, remove, type Write } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { interactionKind, nextStep, type Step, signInStep } from '../../domain/interaction.ts'
import type {
  AuthorizationRequest,
  Client,
  Consent,
  Interaction,
  PageRequest,
  Seconds,
  Session,
} from '../../domain/model.ts'
import { hashSecret } from '../../domain/secret.ts'
import { RecordExists } from '../../storage/store.ts'
import { loadAvailableAcrs } from '../../users/factors.ts'
import { msg } from '../i18n/catalogue.ts'
import { formActionSource } from '../pages.ts'

/** What waits for a user, as it stands in this browser now. */
export type Pending = PendingAuthorization | PendingPage

/** A client's authorization request. */
export interface PendingAuthorization extends InBrowser {
  readonly request: AuthorizationRequest
  readonly client: Client
  readonly consent: Consent | undefined
  readonly step: Step
}

/** A page of the user's own. */
export interface PendingPage extends InBrowser {
  readonly request: PageRequest
  readonly client?: undefined
  readonly step: Exclude<Step, 'consent'>
}

interface InBrowser {
  readonly interaction: Interaction
  readonly session: Session | undefined
  /** The browser's secret: CSRF tokens are made from it. */
  readonly browserSecret: string
  /** Of its pages. */
  readonly language: string
}

/** Goes where the pending request stands now: to a page, or to the client with the response. */
export type ContinueFlow = (pending: Pending, reply: FastifyReply) => Promise<FastifyReply>

/** Where the form of a page may end: the redirect URI its POST may lead to. */
export function formActionOf(pending: Pending): { readonly formAction?: string } {
  return pending.client === undefined ? {} : { formAction: formActionSource(pending.request.redirectUri) }
}

/** Loads the pending request a page or form names; the handle is useless without the cookie it was bound to. */
export function pendingLoader(app: FastifyInstance, deps: Pick<AppDeps, 'store' | 'service'>) {
  const { store } = deps
  return async (request: FastifyRequest, id: string | undefined, now: Seconds): Promise<Pending> => {
    const browserSecret = app.browser.secret(request)
    if (browserSecret === undefined) throw noCookies()
    const interaction = id === undefined || id.length > 64 ? undefined : await store.find(interactionKind, id)
    if (interaction === undefined || now >= interaction.expiresAt) throw interactionExpired()
    if (interaction.browserHash !== hashSecret(browserSecret)) throw interactionExpired()
    const wanted = interaction.request
    request.uiLocales = wanted.uiLocales
    const client = 'page' in wanted ? undefined : await app.resolveClient(wanted.clientId)
    const session = await app.browser.session(request, now)
    const here = { interaction, session, browserSecret, language: request.language }
    const availableAcrs = await loadAvailableAcrs(deps, wanted, session)
    if ('page' in wanted)
      return { ...here, request: wanted, step: signInStep(wanted, interaction, session, now, availableAcrs) }
    if (client === undefined) throw interactionExpired()
    // The client may have replaced its redirect URIs since the request came.
    assertRegisteredRedirect(wanted.redirectUri, client)
    const consent =
      session && client.origin === 'integration'
        ? await store.find(consentKind, consentKey(session.userId, client.id))
        : undefined
    const step = nextStep(wanted, interaction, client, session, consent, now, availableAcrs)
    return { ...here, request: wanted, client, consent, step }
  }
}

/** The client that asks for the sign-in; a page of the user's own has none. */
export function clientOf({ client }: Pending): { readonly clientId?: string } {
  return client === undefined ? {} : { clientId: client.id }
}

/** Deletes a pending request to reject it, and writes `others` with it; of two tabs that answer it, one finds it gone. */
export async function deleteInteraction(
  app: FastifyInstance,
  { store }: Pick<AppDeps, 'store'>,
  { interaction, client, request }: Pending,
  ...others: readonly Write[]
): Promise<void> {
  const ending = client === undefined ? [] : app.authorizationRequests.endWrites(request)
  try {
    await store.transact(interactionKind, interaction.id, (current) => {
      if (current === undefined) throw interactionExpired()
      return accept(undefined, remove(interactionKind, interaction.id), ...ending, ...others)
    })
  } catch (error) {
    throw error instanceof RecordExists ? interactionExpired() : error
  }
}

/** The request is gone: answered already, expired, or of another browser. */
export function interactionExpired(): OAuthError {
  return new OAuthError('invalid_request', 'the authorization request has expired or was answered already', {
    rule: 'lychgate-interaction-open',
    page: {
      title: msg('error.ended'),
      advice: msg('error.ended.advice'),
    },
  })
}

function noCookies(): OAuthError {
  return new OAuthError('invalid_request', 'the browser sent no cookie', {
    rule: 'rfc6749-10.12-csrf-approval',
    page: { title: msg('error.noCookie'), advice: msg('error.noCookie.advice') },
  })
}
