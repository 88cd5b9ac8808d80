import type { FastifyRequest } from 'fastify'
import { check } from '../domain/check.ts'
import { OAuthError } from '../domain/errors.ts'
import { msg } from './i18n/catalogue.ts'

/** Whether the browser says that another site led here. */
export function isFromElsewhere({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site']
  return site !== undefined && site !== 'same-origin' && site !== 'none'
}

/** Browsers say where a request comes from: a form of another site is rejected before it is read, RFC 6749 §10.12. */
export async function assertSameSite(request: FastifyRequest): Promise<void> {
  check(
    request.method !== 'POST' || !isFromElsewhere(request),
    'rfc6749-10.12-csrf-approval',
    'access_denied',
    'the form was sent by another site',
    { status: 403, received: request.headers['sec-fetch-site'], passed: 'no other site sent the request' },
  )
}

/** A form that was not sent by our page in this browser for this sign-in, RFC 6749 §10.12. */
export function forged(pageUrl: string): OAuthError {
  return new OAuthError('access_denied', 'the form does not belong to this browser and sign-in', {
    rule: 'rfc6749-10.12-csrf-approval',
    status: 403,
    page: {
      title: msg('error.outdated'),
      advice: msg('error.outdated.advice'),
      link: { url: pageUrl, label: msg('error.outdated.again') },
    },
  })
}
