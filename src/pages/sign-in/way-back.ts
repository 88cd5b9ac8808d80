import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type ErrorDetail, OAuthError } from '../../domain/errors.ts'
import { hmacText } from '../../domain/hmac.ts'
import { clientWords } from '../../domain/localized.ts'
import type { Client, Hash, Interaction } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import { privateUseScheme } from '../../domain/redirect-uri.ts'
import { hashSecret, isSameText } from '../../domain/secret.ts'
import type { Needs } from '../../feature/deps.ts'
import { addressPrefix } from '../../http/address-prefix.ts'
import { parametersOf } from '../../http/parameters.ts'
import { startUrl } from '../describe.ts'
import { msg } from '../i18n/i18n.ts'

/** The rule by which a page rejects a request that is no longer pending. */
export const openRule = 'lychgate-interaction-open'
/** Longer names are left out: addresses stay short, and the page of an ended request has no link then. */
const longestTarget = 1024
const form = /^(?<mac>[\w-]{22})\.(?<target>(?<kind>app|page)\.(?<expiresAt>\d{1,12})\.(?<name>.+))$/

/**
 * Returns what names a pending request in the addresses and forms of its pages: its id, and what is still known of it
 * once nothing of it is stored, which is when it expires and which app or page of this server it is for. The MAC binds
 * that to this request in this browser: a link on another site cannot make an error page lead to an app of its choice.
 */
export function handleOf({
  id,
  browserHash,
  request,
  expiresAt,
}: Interaction): Readonly<Record<string, string>> {
  const target =
    'page' in request ? `page.${expiresAt}.${request.page}` : `app.${expiresAt}.${request.clientId}`
  if (target.length > longestTarget) return { interaction: id }
  return { interaction: id, from: `${macOf(id, browserHash, target)}.${target}` }
}

/** The key is derived from the browser's secret, which only that browser has. */
function macOf(id: string, browserHash: Hash, target: string): string {
  return hmacText(browserHash, JSON.stringify(['from', id, target])).slice(0, 22)
}

/**
 * Adds to the error of a request that has ended what happened, where that is known, and a link that starts again: to
 * the app, by its registered metadata alone, or to the page of this server; to the account page if no request is named.
 * Other errors are unchanged.
 */
export function wayBack(app: FastifyInstance, { service, clock }: Needs<'service' | 'clock'>) {
  return async (error: OAuthError, request: FastifyRequest): Promise<OAuthError> => {
    if (error.detail.rule !== openRule) return error
    const sent = parametersOf(request.body ?? request.query)
    const from = openHandle(sent, app.browser.secret(request))
    if (from === undefined) {
      // Such as a bookmark of the page.
      const link = { url: `${service.prefix}/account`, label: msg('sections.overview') }
      const { page } = error.detail
      if (single(sent, 'interaction') !== undefined || page === undefined) return error
      return new OAuthError(error.code, error.message, { ...error.detail, page: { ...page, link } })
    }
    const isExpired = clock() >= from.expiresAt
    const page =
      from.kind === 'page' ? ownPage(from.name, isExpired) : await appPage(from.name, isExpired, request)
    const description = isExpired ? 'the authorization request has expired' : error.message
    return new OAuthError(error.code, description, { ...error.detail, page })
  }

  function ownPage(path: string, isExpired: boolean): NonNullable<ErrorDetail['page']> {
    return {
      title: msg(isExpired ? 'error.expired' : 'error.outdated'),
      advice: msg(isExpired ? 'error.expired.page' : 'error.outdated.advice'),
      link: { url: service.prefix + path, label: msg('error.outdated.again') },
    }
  }

  async function appPage(clientId: string, isExpired: boolean, request: FastifyRequest) {
    const client = await app.resolveClient(clientId, 'seen', addressPrefix(request.ip))
    const opensApp = client?.redirectUris.some((uri) => privateUseScheme(uri) !== undefined)
    const link = client === undefined ? undefined : linkTo(client, request.language, service.issuer)
    return {
      title: msg(isExpired ? 'error.expired' : 'error.ended'),
      advice: msg(isExpired ? 'error.expired.advice' : opensApp ? 'error.ended.app' : 'error.ended.advice'),
      ...(link && { link }),
    }
  }
}

/** Opens what `handleOf` made for this browser. */
function openHandle(sent: Parameters, browserSecret: string | undefined) {
  const { mac, target = '', kind, expiresAt, name = '' } = form.exec(single(sent, 'from') ?? '')?.groups ?? {}
  if (browserSecret === undefined || mac === undefined) return undefined
  const expected = macOf(single(sent, 'interaction') ?? '', hashSecret(browserSecret), target)
  return isSameText(mac, expected) ? { kind, expiresAt: Number(expiresAt), name } : undefined
}

/** Returns the link to an app, if there is a page to start it at. */
function linkTo(client: Client, language: string, issuer: string): NonNullable<ErrorDetail['page']>['link'] {
  const url = startUrl(client, language, issuer)
  if (url === undefined) return undefined
  const { name } = clientWords(client, language)
  return { url: url.href, host: url.host, label: msg('error.back', { client: name ?? { host: url.host } }) }
}
