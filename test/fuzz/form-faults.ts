import type { HttpResponse } from './connection.ts'
import type { Pair, Sent } from './request.ts'
import { marker } from './values.ts'
import type { World } from './world.ts'

/** The error codes that each endpoint's RFC registers; `invalid_request` may come from any. */
const codes: Readonly<Record<string, readonly string[]>> = {
  '/api/oauth/token': [
    'invalid_client',
    'invalid_grant',
    'unauthorized_client',
    'unsupported_grant_type',
    'invalid_scope',
    'invalid_target',
    'access_denied',
    'authorization_pending',
    'slow_down',
    'expired_token',
    'invalid_dpop_proof',
  ],
  '/oauth/device_authorization': ['invalid_client', 'unauthorized_client', 'invalid_scope', 'invalid_target'],
  // RFC 9126 §2.3: also what the authorization endpoint would respond.
  '/api/oauth/par': [
    'invalid_client',
    'unauthorized_client',
    'unsupported_response_type',
    'invalid_scope',
    'invalid_target',
    'registration_not_supported',
    'invalid_request_object',
    'invalid_dpop_proof',
  ],
  '/api/admin/': [
    'invalid_token',
    'insufficient_scope',
    'invalid_dpop_proof',
    'access_denied',
    'not_found',
    'conflict',
    'precondition_failed',
    'precondition_required',
    'idempotency_key_reused',
    'invalid_redirect_uri',
    'invalid_client_metadata',
  ],
  '/api/oauth/revoke': ['invalid_client', 'invalid_grant'],
  '/api/oauth/introspect': ['invalid_client', 'invalid_token'],
  '/api/oauth/register': [
    'invalid_redirect_uri',
    'invalid_client_metadata',
    'invalid_token',
    'invalid_dpop_proof',
  ],
  '/api/': ['invalid_token', 'insufficient_scope', 'invalid_dpop_proof'],
}
const statuses = [
  200, 201, 204, 303, 304, 400, 401, 403, 404, 405, 409, 412, 413, 414, 415, 417, 422, 428, 429, 431,
]
const description = /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/
const leaks =
  /\bat (?:[\w.<>]+ \()?\S*:\d+:\d+|node_modules|\/src\/|SQLITE_|FST_ERR|ERR_[A-Z]|TypeError|RangeError|"statusCode"|\[object |\$argon2/
const tags = new Set(
  'html head meta title link script body div header svg path span main h1 h2 p form input label button section dl dt dd code bdi ul li a footer table thead tbody tr th td fieldset legend select option strong small em br details summary caption'.split(
    ' ',
  ),
)

/** What is wrong with the form of a response to any request; undefined if nothing is. */
export function faultOfForm(sent: Sent, response: HttpResponse, world: World): string | undefined {
  const { status, headers, body } = response
  if (sent.bytes && status === 0) return undefined
  if (!statuses.includes(status)) return `status ${status}`
  const all = `${JSON.stringify(headers)} ${response.cookies.join(' ')} ${body.length < 50_000 ? body : ''}`
  const leak = leaks.exec(all)?.[0] ?? world.secrets.find((secret) => all.includes(secret))
  if (leak !== undefined) return `it leaks ${leak}`
  if (headers['x-powered-by'] ?? headers['server']) return 'it names its software'
  if (headers[`x-${marker}`] ?? headers[marker]) return 'a header was injected'
  const type = headers['content-type'] ?? ''
  if (type.startsWith('application/json'))
    return faultOfJson(sent, response) ?? faultOfHeaders(sent, response)
  if (type.startsWith('text/html')) return faultOfPage(response) ?? faultOfHeaders(sent, response)
  const isBodyless = body === '' || sent.method === 'HEAD'
  if (status >= 400 && !isBodyless) return `an error of type ${type}`
  if (status >= 400 && type === '' && sent.method !== 'HEAD') return 'an error without content'
  return faultOfHeaders(sent, response)
}

function faultOfJson(
  { target, method, bytes }: Sent,
  { status, headers, body }: HttpResponse,
): string | undefined {
  if (method === 'HEAD') return undefined
  let content: unknown
  try {
    content = JSON.parse(body)
  } catch {
    return 'not JSON'
  }
  if (status < 400) return undefined
  const { error, error_description: text, ...others } = content as Record<string, unknown>
  if (Object.keys(others).length > 0) return `other members: ${Object.keys(others)}`
  if (typeof text !== 'string' || !description.test(text)) return 'error_description is not in its characters'
  if (text.includes(marker)) return 'error_description quotes the request'
  if (headers['cache-control'] !== 'no-store') return 'an error may be cached'
  const endpoint = Object.keys(codes).find((path) => target.toLowerCase().includes(path))
  const registered = ['invalid_request', ...(endpoint === undefined ? [] : (codes[endpoint] ?? []))]
  if (bytes === undefined && !registered.includes(String(error)))
    return `error ${error} is not one of this endpoint`
  return undefined
}

function faultOfPage({ status, headers, body, cookies }: HttpResponse): string | undefined {
  if (body === '') return undefined
  if (!/^\s*<!doctype html>/i.test(body)) return 'not a page'
  const foreign = [...body.matchAll(/<\/?([a-z!][\w-]*)/gi)].find(
    ([, name = '']) => name !== '!doctype' && !tags.has(name.toLowerCase()),
  )
  if (foreign) return `a tag ${foreign[0]} that is not ours`
  if (/<[^>]*\son[a-z]+\s*=/i.test(body.replaceAll(/"[^"]*"/g, ''))) return 'an event handler'
  if (/\s(?:href|src|action)="(?!\/|https?:\/\/)/i.test(body)) return 'a link that is no http link'
  const scripts = [...body.matchAll(/<script\b[^>]*>/g)].map(([tag]) => tag)
  if (
    scripts.some((tag) => !/^<script src="\/assets\/(?:form-post|passkeys)\.js\?v=[\w-]+" defer>$/.test(tag))
  )
    return 'a script'
  const policy = headers['content-security-policy'] ?? ''
  // Only a page with one of these forms may be part of a client's request.
  const mayLeadToClient =
    /<form method="post" action="(?:[^"]*\/(?:login|consent|oauth\/logout)"|https?:)/.test(body)
  const stays = mayLeadToClient && !policy.includes('form-action') ? [] : ["form-action 'self'"]
  for (const directive of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", ...stays]) {
    if (!policy.includes(directive)) return `no ${directive} in its policy`
  }
  if (!policy.includes(scripts.length > 0 ? "script-src 'self'" : "script-src 'none'")) return 'script-src'
  if (policy.split(';').length !== 6 + stays.length || policy.includes(marker))
    return `a policy of another shape: ${policy}`
  if (headers['x-frame-options'] !== 'DENY' || headers['referrer-policy'] !== 'no-referrer')
    return 'page headers'
  if (status >= 400 && headers['location'] !== undefined) return 'an error page that redirects'
  return cookies.find((cookie) => !/^lychgate_\w+=[^;]*;.*\bHttpOnly\b.*\bSameSite=Lax/i.test(cookie))
}

/** Whether a field has one as it is sent: of each character its last byte. */
function hasControlCharacter([, value]: Pair): boolean {
  return /[^\P{Cc}\t\x80-\x9f]/u.test(Buffer.from(value, 'latin1').toString('latin1'))
}

function faultOfHeaders(
  { target, method, headers: sentHeaders, bytes }: Sent,
  { status, headers, cookies }: HttpResponse,
): string | undefined {
  const cacheable =
    /^(?:http:\/\/[^/]*)?\/(?:\.well-known\/|api\/oauth\/jwks|openapi\.json|api\/admin\/v1\/openapi\.json|assets\/)/i.test(
      target,
    )
  const mayBeCached = cacheable && status < 400 && method !== 'OPTIONS'
  if (bytes === undefined && (headers['cache-control'] === 'no-store') === mayBeCached) {
    return `cache-control is ${headers['cache-control']}`
  }
  if (headers['x-content-type-options'] !== 'nosniff') return 'no nosniff'
  if (headers['content-security-policy'] === undefined) return 'no content-security-policy'
  if (status === 401 && !/^(?:Bearer|DPoP|Basic)\b/.test(headers['www-authenticate'] ?? ''))
    return '401 without a challenge'
  if (/\n/.test(headers['www-authenticate'] ?? '')) return 'two challenges'
  if (status === 405 && !headers['allow']) return '405 without Allow'
  if (
    status >= 400 &&
    bytes === undefined &&
    // RFC 9110 §5.5: what has one is no request, and is rejected before it has an id.
    !sentHeaders.some(hasControlCharacter) &&
    status !== 431 &&
    !headers['x-request-id'] &&
    !headers['content-type']?.startsWith('text/html')
  )
    return 'no x-request-id'
  if (headers['access-control-allow-credentials'] !== undefined) return 'CORS with credentials'
  if (cookies.length > 0 && target.includes('/api/')) return 'a cookie from the API'
  return undefined
}
