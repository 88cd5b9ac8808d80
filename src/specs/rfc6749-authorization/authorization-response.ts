import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import type { ProvenRedirect } from '../../domain/authorization-request.ts'
import type { OAuthError } from '../../domain/errors.ts'
import { recordRejection } from '../../http/errors.ts'

declare module 'fastify' {
  interface FastifyReply {
    /** The only redirect to a client: RFC 6749 §4.1.2 or §4.1.2.1, with `state` and what features add. */
    authorizationResponse(redirect: ProvenRedirect, members: AuthorizationResponse): FastifyReply
    /** The error response, RFC 6749 §4.1.2.1, which is also kept for the log line. */
    authorizationError(redirect: ProvenRedirect, rejection: OAuthError): FastifyReply
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

/** The members besides `state` and what features add. */
export type AuthorizationResponse =
  | { readonly code: string }
  | { readonly error: string; readonly error_description: string }

/** RFC 6749 §4.1.2: the authorization response. */
export const authorizationResponse = fp(
  async (app) => {
    app.decorateReply('authorizationResponse', function (redirect, members) {
      const added = app.seams.responseMembers.all()
      const state = redirect.state === undefined ? {} : { state: redirect.state }
      return answer(this, redirect, { ...members, ...state, ...added })
    })
    app.decorateReply('authorizationError', function (redirect, rejection) {
      recordRejection(rejection, this)
      return this.authorizationResponse(redirect, {
        error: rejection.code,
        error_description: rejection.message,
      })
    })
  },
  { name: 'authorization-response', dependencies: ['pages', 'error-mapper'] },
)

function answer(
  reply: FastifyReply,
  redirect: ProvenRedirect,
  members: Readonly<Record<string, string>>,
): FastifyReply {
  const { redirectUri, responseMode } = redirect
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
