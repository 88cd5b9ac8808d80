import { Type } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { coreResponseModes, type ProvenRedirect } from '../../domain/authorization-request.ts'
import { check } from '../../domain/check.ts'
import { accept, type Decision } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import {
  consentRule,
  denialError,
  errorOf,
  isBinding,
  nextStep,
  noProgress,
  promptNoneError,
  type Step,
  signInStep,
} from '../../domain/interaction.ts'
import { parseUiLocales } from '../../domain/language.ts'
import type { AuthorizationRequest, Client, Consent, Seconds, Session } from '../../domain/model.ts'
import { formatParameters, type Parameters, single } from '../../domain/parameters.ts'
import type { LoadedRequest } from '../../feature/contributions.ts'
import type { Plugin } from '../../feature/deps.ts'
import { addressPrefix } from '../../http/address-prefix.ts'
import { toOAuthError } from '../../http/errors.ts'
import { type HeldRequest, heldRequests, withoutHint } from '../../http/held-requests.ts'
import { formBodies, longestUrl, parametersOf } from '../../http/parameters.ts'
import { badFormPages, pageResponses } from '../../http/schema.ts'
import { RecordExists, type SessionConsent, sessionConsentKey } from '../../storage/store.ts'
import { loadAvailableAcrs } from '../../users/factors.ts'
import { endSessionOfLockedUser, whileSignedIn } from '../../users/sessions.ts'
import type { Approval } from './approval.ts'

const unknownClient =
  'client_id is unknown; add the client (lychgate client add) or register it again: ' +
  'one that is never used is removed after lifetimes.unusedClientSeconds'

/**
 * RFC 6749 §3.1, RFC 6749 §4.1.1 and OpenID Connect Core §3.1.2.1: the authorization endpoint. Until the client and
 * its redirect URI are proven a rejection is a page, RFC 6749 §3.1.2.4 and RFC 6749 §10.15; from there on it is a
 * redirect. What the user has to do is decided by domain/interaction.ts and shown by the interaction pages.
 */
export const authorize: Plugin<'config' | 'store' | 'clock' | 'random' | 'service' | 'declared'> = async (
  app,
  deps,
) => {
  const { config, service, store, clock, declared } = deps
  const held = heldRequests(deps)
  app.seams.metadata.add({
    response_types_supported: ['code'],
    response_modes_supported: [...coreResponseModes, ...Object.keys(declared.responseModes)],
    code_challenge_methods_supported: ['S256'],
    prompt_values_supported: ['none', 'login', 'consent', 'select_account'],
    claims_parameter_supported: true,
  })
  await app.register(formBodies, { config })

  const respond = async (request: FastifyRequest, reply: FastifyReply, parameters: Parameters) => {
    const requests = app.authorizationRequests
    const from = addressPrefix(request.ip)
    const taking = request.method === 'POST' ? undefined : held.take(parameters)
    const loading = taking ? taking.then(asHeld) : requests.load(parameters, from)
    const loaded = loading instanceof Promise ? await loading : loading
    request.uiLocales = parseUiLocales(loaded.parameters)
    const reading = app.browser.readSessionAhead(request)
    const client = await provenClient(loaded.parameters, from)
    request.client = client
    const redirect = requests.proveRedirect(loaded, client)
    try {
      requests.assert(client, loaded)
      const parsed = await requests.parse(loaded, client, redirect)
      if (request.method === 'POST' && !app.browser.hasSessionCookie(request)) {
        // SameSite=Lax cookies are not sent on a cross-site POST, so redirect to the same request as GET.
        const query = (await heldInstead(loaded, client, parsed)) ?? parameters
        const again = `${service.prefix}/oauth/authorize?${formatParameters(query)}`
        if (again.length < longestUrl) return reply.redirect(again, 303)
      }
      return await begin(request, reply, client, parsed, redirect, reading)
    } catch (error) {
      const rejection = error instanceof RecordExists ? endedBefore() : toOAuthError(error, request)
      return await reply.authorizationError(redirect, client, rejection)
    }
  }

  /** Holds a request whose hint, plain or in a request object, must not be in a URL. */
  const heldInstead = async (
    { parameters, extra }: LoadedRequest,
    client: Client,
    parsed: AuthorizationRequest,
  ) => {
    const { requiredSub: sub } = parsed
    if (parameters['id_token_hint'] === undefined || sub === undefined) return undefined
    const request = { parameters: withoutHint(parameters), ...(extra && { extra }) }
    return held.hold({ ...request, hint: { sub, aud: client.id } })
  }

  const begin = async (
    request: FastifyRequest,
    reply: FastifyReply,
    client: Client,
    parsed: AuthorizationRequest,
    redirect: ProvenRedirect,
    reading?: Promise<Session | undefined>,
    attempt = 1,
  ): Promise<FastifyReply> => {
    const now = clock()
    const session = await app.browser.session(request, now, reading)
    const availableAcrs = await loadAvailableAcrs({ store, service }, parsed, session)
    const next = (consent?: Consent) =>
      nextStep(parsed, noProgress, client, session, consent, now, availableAcrs)
    const signIn = signInStep(parsed, noProgress, session, now, availableAcrs)
    if (session === undefined || signIn !== 'respond') return show(reply, parsed, session, next())
    const denying = app.seams.userChecks.collect(client, session)
    const denial = denying && (await denying)
    if (isBinding(denial)) {
      const { remedy } = denial
      if (parsed.prompt.includes('none')) throw remedy ? promptNoneError(remedy.step) : denialError(denial)
      return reply.startInteraction(parsed, remedy === undefined ? 'consent' : 'login')
    }
    if (consentRule(parsed, client) === 'asked') return show(reply, parsed, session, next())
    const approval = await app.approve(parsed, client, session, parsed.scope, now)
    const step = await insertGrant(approval, parsed, client, session, now, next)
    if (step === 'inserted') return reply.authorizationResponse(redirect, client, { code: approval.code })
    if (step !== 'respond' && (await isSignedIn(request, session, now)))
      return show(reply, parsed, session, step)
    if (attempt < attempts) return begin(request, reply, client, parsed, redirect, undefined, attempt + 1)
    throw overtakenTooOften()
  }

  /** Inserts a grant if its user need not be asked. Otherwise returns the next step: `respond` if the session ended. */
  const insertGrant = async (
    { inserts }: Approval,
    parsed: AuthorizationRequest,
    client: Client,
    session: Session,
    now: Seconds,
    next: (consent?: Consent) => Step,
  ): Promise<Step | 'inserted'> => {
    if (consentRule(parsed, client) === 'remembered') {
      // The consent is read once, where it cannot end before the grant is inserted.
      const decide = (consented?: SessionConsent): Decision<Step | 'inserted'> => {
        const step = next(consented?.consent)
        if (consented === undefined || step !== 'respond') return accept(step)
        return accept('inserted', ...inserts({ owners: consented.owners }))
      }
      const step = await store.transact('sessionConsent', sessionConsentKey(session, client.id), decide)
      if (step !== 'respond') return step
    } else next()
    const basis = { sessionId: session.id }
    const isInserted = await whileSignedIn(store, session, now, () => store.write(...inserts({ basis })))
    return isInserted ? 'inserted' : 'respond'
  }

  /** Shows the page of a step, or tells the client that it allows none. */
  const show = (
    reply: FastifyReply,
    parsed: AuthorizationRequest,
    session: Session | undefined,
    step: Step,
  ): FastifyReply | Promise<FastifyReply> => {
    if (step === 'reject') throw errorOf(parsed, session)
    if (step !== 'respond' && parsed.prompt.includes('none')) throw promptNoneError(step)
    return reply.startInteraction(parsed, step === 'consent' ? 'consent' : 'login')
  }

  /** Whether a session has not ended in the meantime. It ends here if its user is locked or removed. */
  const isSignedIn = async (request: FastifyRequest, session: Session, now: Seconds): Promise<boolean> => {
    await endSessionOfLockedUser(store, session, now)
    return (await app.browser.session(request, now)) !== undefined
  }

  const provenClient = async (parameters: Parameters, from: string): Promise<Client> => {
    const clientId = single(parameters, 'client_id')
    check(
      clientId !== undefined,
      'rfc6749-4.1.2.1-client-error-page',
      'invalid_request',
      'client_id is missing',
      { passed: 'client_id is present' },
    )
    const client = await app.resolveClient(clientId, 'authorization', from)
    check(client !== undefined, 'rfc6749-4.1.2.1-client-error-page', 'invalid_client', unknownClient, {
      status: 400,
      received: clientId.slice(0, 100),
      passed: 'client_id is known',
    })
    check(
      client.lockedAt === undefined,
      'lychgate-client-locked',
      'invalid_client',
      'an operator locked the client',
      { status: 400, stored: client.lockedAt ?? 'nothing', passed: 'no operator locked the client' },
    )
    return client
  }

  const schema = {
    tags: ['authorization'],
    description:
      'Redirects once the client and its redirect URI are verified; before that, errors are pages.',
    response: {
      303: {
        description:
          'To the sign-in or consent page, or to the redirect URI with code or error, state and iss.',
        type: 'null',
      },
      ...pageResponses,
    },
  } as const
  const parameters = Type.Object({ ...declared.authorizationParameters })
  // Each request inserts an interaction, a HEAD request too.
  const route = { endpoint: 'authorization', limit: 'authorization' } as const
  app.get(
    '/oauth/authorize',
    {
      attachValidation: true,
      config: route,
      schema: {
        ...schema,
        operationId: 'authorize',
        summary: 'Authorization request',
        querystring: parameters,
      },
    },
    (request, reply) => respond(request, reply, parametersOf(request.query)),
  )
  app.post(
    '/oauth/authorize',
    {
      attachValidation: true,
      config: route,
      schema: {
        ...schema,
        response: { ...schema.response, ...badFormPages },
        operationId: 'authorizeByForm',
        summary: 'Authorization request as a form',
        consumes: [form],
        body: parameters,
      },
    },
    (request, reply) => respond(request, reply, parametersOf(request.body)),
  )
}

const form = 'application/x-www-form-urlencoded'

/** How often a request is decided again if its session or consent ended in the meantime. */
const attempts = 3

function asHeld(request: HeldRequest | undefined): LoadedRequest {
  check(
    request !== undefined,
    'lychgate-held-request-once',
    'invalid_request',
    'this request was continued already, or too late; begin again at the app',
    { passed: 'the request is held' },
  )
  const { parameters, extra, hint } = request
  return { parameters, hintedSub: hint.sub, ...(extra && { extra }) }
}

function endedBefore(): OAuthError {
  return new OAuthError('invalid_request', 'this authorization request has ended already', {
    rule: 'lychgate-interaction-open',
  })
}

function overtakenTooOften(): OAuthError {
  return new OAuthError('temporarily_unavailable', 'the sign-in or the consent keeps changing; try again', {
    rule: 'rfc6749-4.1.2.1-temporarily-unavailable',
  })
}
