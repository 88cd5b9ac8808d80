import type { FastifyReply, FastifyRequest } from 'fastify'
import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import { endSession } from '../../domain/decision.ts'
import { parseUiLocales } from '../../domain/language.ts'
import { clientWords } from '../../domain/localized.ts'
import type { Client, Session } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { assertNoneRepeated, formatParameters, type Parameters, single } from '../../domain/parameters.ts'
import { isSameText } from '../../domain/secret.ts'
import type { Plugin } from '../../feature/deps.ts'
import { addressPrefix } from '../../http/address-prefix.ts'
import { recordRejection } from '../../http/errors.ts'
import { type Hint, heldRequests, withoutHint } from '../../http/held-requests.ts'
import { formBodies, longestUrl, parametersOf } from '../../http/parameters.ts'
import { displayName, type NamedUser } from '../../pages/describe.ts'
import type { FormModel } from '../../pages/forms.ts'
import { type LogoutRequest, parseLogoutRequest } from './rules.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    logout: FormModel & {
      /** Absent if no user is signed in in this browser. */
      readonly user?: NamedUser
      readonly clientName?: string
    }
    'signed-out': {
      readonly clientName?: string
      /** The app's own page, if an ID Token proves that the user signed in to it. */
      readonly appUrl?: string
      /** The account page, which asks to sign in. */
      readonly againUrl: string
    }
  }
}

/**
 * Implements OpenID Connect RP-Initiated Logout 1.0: a client or the user asks to sign out. Without an ID Token of the
 * user signed in here, the user confirms; without any ID Token, a redirect follows only after that. Whatever is not valid
 * of a request costs its redirect, and never the sign-out.
 */
export const logout: Plugin<'config' | 'store' | 'keys' | 'clock' | 'random' | 'service'> = async (
  app,
  deps,
) => {
  const { config, service, store, keys, clock } = deps
  const held = heldRequests(deps)
  const action = `${service.prefix}/oauth/logout`
  await app.register(formBodies, { config })

  const respond = async (request: FastifyRequest, reply: FastifyReply, parameters: Parameters) => {
    request.uiLocales = parseUiLocales(parameters)
    assertNoneRepeated(parameters)
    const now = clock()
    const session = await app.browser.session(request, now)
    const confirmed = isConfirmed(request, parameters, session)
    if (single(parameters, 'decision') === 'stay') return reply.redirect(`${service.prefix}/`, 303)
    const hint = (await held.take(parameters))?.hint ?? (await verifiedHint(parameters))
    const logout = await logoutRequest(parameters, hint)
    if (request.method === 'POST' && !confirmed && !app.browser.hasSessionCookie(request)) {
      // SameSite=Lax cookies are not sent on a cross-site POST, so redirect to the same request as GET.
      const isUnusable = hint === undefined && parameters['id_token_hint'] !== undefined
      if (isUnusable && logout.fault !== undefined) recordRejection(logout.fault, reply)
      const instead = hint && (await held.hold({ parameters: {}, hint }))
      const again = `${action}?${formatParameters({ ...withoutHint(parameters), ...instead })}`
      if (again.length < longestUrl) return reply.redirect(again, 303)
    }
    if (logout.fault !== undefined) recordRejection(logout.fault, reply)
    const isOpen =
      session === undefined
        ? logout.redirectUri !== undefined && !logout.isHinted
        : logout.sub !== session.userId
    if (isOpen && !confirmed) return confirm(request, reply, parameters, session, logout, hint)
    if (session !== undefined) await end(session, logout, { at: now, from: addressPrefix(request.ip) })
    app.browser.dropSession(reply)
    const { redirectUri, state, client } = logout
    if (redirectUri === undefined) {
      const { clientUri: appUrl } = client && logout.isHinted ? clientWords(client, request.language) : {}
      const links = { againUrl: `${service.prefix}/account`, ...omitUndefined({ appUrl }) }
      // An app without a name is named by the host that the link leads to.
      const host = appUrl === undefined ? {} : { clientName: new URL(appUrl).host }
      return reply.page('signed-out', { ...host, ...nameOf(client, request), ...links }, { isOnce: true })
    }
    const query =
      state === undefined ? '' : `${redirectUri.includes('?') ? '&' : '?'}${new URLSearchParams({ state })}`
    return reply
      .code(303)
      .header('location', redirectUri + query)
      .send()
  }

  const end = async (
    { id, userId }: Session,
    { client }: LogoutRequest,
    context: Omit<AuditContext, 'by'>,
  ) => {
    const who = { userId, ...(client && { clientId: client.id }) }
    const event = auditEvent('sign-out', { ...context, by: 'user' }, who)
    await store.write(endSession(id, context.at), event)
  }

  const verifiedHint = async (parameters: Parameters): Promise<Hint | undefined> => {
    const hint = single(parameters, 'id_token_hint')
    const claims = hint === undefined ? undefined : await keys.verify(hint, 'JWT')
    if (claims?.['iss'] !== service.issuer) return undefined
    const { sub, aud } = claims
    return typeof sub === 'string' && typeof aud === 'string' ? { sub, aud } : undefined
  }

  const logoutRequest = async (parameters: Parameters, hint: Hint | undefined): Promise<LogoutRequest> => {
    const clientId = single(parameters, 'client_id') ?? hint?.aud
    const client = clientId === undefined ? undefined : await app.resolveClient(clientId)
    return parseLogoutRequest(parameters, hint, client)
  }

  const csrfOf = (secret: string, session: Session | undefined) =>
    app.browser.csrfToken(secret, 'logout', session?.id ?? 'no session')

  const isConfirmed = (request: FastifyRequest, parameters: Parameters, session: Session | undefined) => {
    const secret = app.browser.secret(request)
    if (secret === undefined || request.method !== 'POST') return false
    return isSameText(single(parameters, 'csrf'), csrfOf(secret, session))
  }

  const confirm = async (
    request: FastifyRequest,
    reply: FastifyReply,
    parameters: Parameters,
    session: Session | undefined,
    { client, redirectUri }: LogoutRequest,
    hint: Hint | undefined,
  ) => {
    const secret = app.browser.ensureSecret(request, reply)
    const user = session && (await store.find('user', session.userId))
    const fields = ['id_token_hint', 'client_id', 'post_logout_redirect_uri', 'state', 'ui_locales'].flatMap(
      (name) => {
        const value = single(parameters, name)
        return value === undefined ? [] : [[name, value] as const]
      },
    )
    const model = {
      action,
      hidden: {
        ...Object.fromEntries(fields),
        // A hint that was held is in no form either.
        ...(hint && parameters['id_token_hint'] === undefined && (await held.hold({ parameters: {}, hint }))),
        csrf: csrfOf(secret, session),
      },
      ...(user && { user: displayName(user) }),
      ...nameOf(client, request),
    }
    request.leadsToClient = redirectUri !== undefined
    return reply.page('logout', model)
  }

  app.get(
    '/oauth/logout',
    { config: { endpoint: 'end_session', endpointTitle: 'sign-out' }, schema: { hide: true } },
    (request, reply) => respond(request, reply, parametersOf(request.query)),
  )
  app.post(
    '/oauth/logout',
    { config: { limit: 'authorization' }, schema: { hide: true } },
    (request, reply) => respond(request, reply, parametersOf(request.body)),
  )
}

function nameOf(client: Client | undefined, { language }: FastifyRequest) {
  return client ? omitUndefined({ clientName: clientWords(client, language).name }) : {}
}
