import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import type { AppDeps } from '../deps.ts'
import type { ProvenRedirect } from '../domain/authorization-request.ts'
import type { OAuthError } from '../domain/errors.ts'
import { recordRejection } from '../http/errors.ts'
import { formActionSource } from '../http/pages.ts'

declare module 'fastify' {
  interface FastifyReply {
    /** The only exit to a client: RFC 6749 §4.1.2 or §4.1.2.1, with `state` and `iss`. */
    authorizationResponse(redirect: ProvenRedirect, members: AuthorizationResponse): FastifyReply
    /** The error response, RFC 6749 §4.1.2.1, left for the log line too. */
    authorizationError(redirect: ProvenRedirect, rejection: OAuthError): FastifyReply
  }
}

/** What goes to the client beside `state` and `iss`. */
export type AuthorizationResponse =
  | { readonly code: string }
  | { readonly error: string; readonly error_description: string }

/**
 * RFC 9207 §2: `iss` on every answer of the authorization endpoint, success and error alike, and RFC 9207 §2.3: the
 * metadata says so.
 */
export const issuerIdentification = fp<Pick<AppDeps, 'service'>>(
  async (app, { service }) => {
    app.advertise({ authorization_response_iss_parameter_supported: true })
    app.decorateReply('authorizationResponse', function (redirect, members) {
      const state = redirect.state === undefined ? {} : { state: redirect.state }
      return answer(this, redirect, { ...members, ...state, iss: service.issuer })
    })
    app.decorateReply('authorizationError', function (redirect, rejection) {
      recordRejection(rejection, this)
      return this.authorizationResponse(redirect, {
        error: rejection.code,
        error_description: rejection.message,
      })
    })
  },
  { name: 'issuer-identification', dependencies: ['metadata', 'pages', 'error-mapper'] },
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
    return reply.page('form-post', page, { formAction: formActionSource(redirectUri) })
  }
  // RFC 6749 §3.1.2: appended to the text as registered; parsing and writing it again would change it.
  const separator = !redirectUri.includes('?') ? '?' : /[?&]$/.test(redirectUri) ? '' : '&'
  const location = `${redirectUri}${separator}${new URLSearchParams(members)}`
  // 303, so that no browser repeats a POST with credentials in it, RFC 9700 §4.12.
  return reply.code(303).header('location', location).send()
}
