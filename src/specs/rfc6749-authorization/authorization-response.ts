import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import type { ProvenRedirect } from '../../domain/authorization-request.ts'
import { type OAuthError, referenceOf } from '../../domain/errors.ts'
import type { Client } from '../../domain/model.ts'
import type { Needs } from '../../feature/deps.ts'
import { recordRejection } from '../../http/errors.ts'

declare module 'fastify' {
  interface FastifyReply {
    /** The only redirect to a client: RFC 6749 §4.1.2 or §4.1.2.1, with `state` and what features add. */
    authorizationResponse(
      redirect: ProvenRedirect,
      client: Client,
      members: AuthorizationResponse,
    ): FastifyReply | Promise<FastifyReply>
    /** The error response, RFC 6749 §4.1.2.1, which is also kept for the log line. */
    authorizationError(
      redirect: ProvenRedirect,
      client: Client,
      rejection: OAuthError,
    ): FastifyReply | Promise<FastifyReply>
  }
}

declare module '../../pages/pages.ts' {
  interface Pages {
    /** OAuth 2.0 Form Post Response Mode: posted by script, or by a button without one. */
    'form-post': {
      readonly redirectUri: string
      readonly redirectHost: string
      readonly members: readonly { readonly name: string; readonly value: string }[]
    }
  }
}

/** The members of the response, without `state` and what features add. */
export type AuthorizationResponse =
  | { readonly code: string }
  | { readonly error: string; readonly error_description: string }

/** RFC 6749 §4.1.2: the authorization response. */
export const authorizationResponse = fp<Needs<'config' | 'declared'>>(
  async (app, { config, declared }) => {
    app.decorateReply('authorizationResponse', function (redirect, client, members) {
      const added = app.seams.responseMembers.all()
      const state = redirect.state === undefined ? {} : { state: redirect.state }
      const all = { ...members, ...state, ...added }
      const { redirectUri, responseMode } = redirect
      const carrier = declared.responseModes[responseMode]
      if (carrier === undefined) return redirectOrPost(this, redirectUri, responseMode, all)
      const encode = app.seams.responseModes.added.get(responseMode)
      if (encode === undefined) throw new TypeError(`the response mode ${responseMode} is declared alone`)
      return encode(all, client).then((encoded) => redirectOrPost(this, redirectUri, carrier, encoded))
    })
    app.decorateReply('authorizationError', function (redirect, client, rejection) {
      recordRejection(rejection, this)
      const { request } = this
      request.client ??= client
      const { code: error, message, detail } = rejection
      // Users see no header, and some apps show them this text.
      const isStored = config.rejectionsKept > 0 && !detail.isRoutine
      return this.authorizationResponse(redirect, client, {
        error,
        error_description: isStored ? `${message} (reference ${referenceOf(request.id)})` : message,
      })
    })
  },
  { name: 'authorization-response', dependencies: ['pages', 'error-mapper'] },
)

function redirectOrPost(
  reply: FastifyReply,
  redirectUri: string,
  responseMode: string,
  members: Readonly<Record<string, string>>,
): FastifyReply {
  if (responseMode === 'form_post') {
    const fields = Object.entries(members).map(([name, value]) => ({ name, value }))
    const page = { redirectUri, redirectHost: new URL(redirectUri).host, members: fields }
    reply.request.leadsToClient = true
    return reply.page('form-post', page, { isOnce: true })
  }
  // RFC 6749 §3.1.2: appended to the text as registered; parsing and serialising it would change it.
  const separator = !redirectUri.includes('?') ? '?' : /[?&]$/.test(redirectUri) ? '' : '&'
  const location = `${redirectUri}${separator}${new URLSearchParams(members)}`
  // 303, so that no browser repeats a POST with credentials in it, RFC 9700 §4.12.
  return reply.code(303).header('location', location).send()
}
