import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { accept, type Write } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import { nextStep, type Step } from '../domain/interaction.ts'
import type { Client, Consent, Interaction, Seconds, Session } from '../domain/model.ts'
import { hashSecret } from '../domain/secret.ts'
import { formActionSource } from '../http/pages.ts'
import { consentKey } from '../storage/store.ts'

/** A pending authorization request as it stands in this browser now. */
export interface Pending {
  readonly interaction: Interaction
  readonly client: Client
  readonly session: Session | undefined
  readonly consent: Consent | undefined
  readonly step: Step
  /** The browser's secret: CSRF tokens are made from it. */
  readonly browserSecret: string
}

/** Goes where the pending request stands now: to a page, or to the client with the answer. */
export type GoOn = (pending: Pending, reply: FastifyReply) => Promise<FastifyReply>

/** Where the form of a page may end: the redirect URI its POST may lead to. */
export function formActionOf({ interaction }: Pending): { readonly formAction: string } {
  return { formAction: formActionSource(interaction.request.redirectUri) }
}

/** Loads the pending request a page or form names; the handle is useless without the cookie it was bound to. */
export function pendingLoader(app: FastifyInstance, { store }: Pick<AppDeps, 'store'>) {
  return async (request: FastifyRequest, id: string | undefined, now: Seconds): Promise<Pending> => {
    const browserSecret = app.browser.secret(request)
    if (browserSecret === undefined) throw noCookies()
    const interaction = id === undefined || id.length > 64 ? undefined : await store.find('interaction', id)
    if (interaction === undefined || now >= interaction.expiresAt) throw ended()
    if (interaction.browserHash !== hashSecret(browserSecret)) throw ended()
    const client = await store.find('client', interaction.request.clientId)
    if (client === undefined) throw ended()
    const session = await app.browser.session(request, now)
    const consent =
      session && client.origin === 'integration'
        ? await store.find('consent', consentKey(session.accountId, client.id))
        : undefined
    const step = nextStep(interaction.request, interaction, client, session, consent, now)
    return { interaction, client, session, consent, step, browserSecret }
  }
}

/** Takes a pending request away to refuse it, and writes `others` with it; of two tabs that answer it, one finds it gone. */
export function takeAway(
  { store }: Pick<AppDeps, 'store'>,
  { interaction }: Pending,
  ...others: readonly Write[]
): Promise<void> {
  return store.transact('interaction', interaction.id, (current) => {
    if (current === undefined) throw ended()
    return accept(undefined, { op: 'deleteInteraction', interactionId: interaction.id }, ...others)
  })
}

/** The request is gone: answered already, expired, or of another browser. */
export function ended(): OAuthError {
  return new OAuthError('invalid_request', 'the authorization request has expired or was answered already', {
    rule: 'lychgate-interaction-open',
    page: {
      title: 'This page was already used, or it has expired',
      advice: 'Nothing was changed. Go back to the app you came from and start again there.',
    },
  })
}

/** A form that was not sent by our page in this browser for this sign-in, RFC 6749 §10.12. */
export function forged(pageUrl: string): OAuthError {
  return new OAuthError('access_denied', 'the form does not belong to this browser and sign-in', {
    rule: 'rfc6749-10.12-csrf-approval',
    status: 403,
    page: {
      title: 'This page is out of date',
      advice:
        'You may have signed in or out in another tab. Nothing was changed; look at the page again as it is now.',
      link: { url: pageUrl, label: 'Show the page again' },
    },
  })
}

function noCookies(): OAuthError {
  return new OAuthError('invalid_request', 'the browser sent no cookie', {
    rule: 'rfc6749-10.12-csrf-approval',
    page: {
      title: 'This browser did not send our cookie',
      advice: 'Allow cookies for this site, then go back to the app you came from and start again there.',
    },
  })
}
