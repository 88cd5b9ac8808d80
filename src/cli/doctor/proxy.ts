import { arrivalPath, proofBy, proofHeader } from '../../doctor/arrival.ts'
import { isDirect, ok, problem, type Setup, setting, upstreamOf, warning } from '../../doctor/finding.ts'
import { arrivalFinding, claimedAddress } from '../../doctor/forwarding.ts'
import type { Finding } from '../../domain/finding.ts'
import { systemClock } from '../../system/system.ts'
import { secretOf } from '../open.ts'
import { ask, excerptOf, type HttpResponse, headerOf, membersOf, NoResponse, type Reference } from './http.ts'

/**
 * Checks what a proxy changes in requests and responses, by a page that has no effect: the sign-out page without a
 * session. `response` is that page.
 */
export async function examineProxy(
  setup: Setup,
  reference: Reference,
): Promise<{ readonly findings: readonly Finding[]; readonly response?: HttpResponse }> {
  const { issuer } = setup.config
  const url = `${issuer}/oauth/logout`
  const askAsBrowser = () => ask(url, { headers: { accept: 'text/html', 'accept-encoding': 'gzip, br' } })
  const response = await askAsBrowser()
  const expected = await reference.responseTo(url)
  if (response.status !== expected.status) {
    const finding = problem`pages: ${url} does not arrive
      expected  ${expected.status}
      found  ${response.status}: ${excerptOf(response)}
      change  location / { proxy_pass ${upstreamOf(setup)}; }   (in nginx)`
    return { findings: [finding] }
  }
  const findings = [
    ...examineHeaders(response, expected),
    examineCookies(response, expected),
    await examineCaching(issuer, await askAsBrowser()),
    examineCompression(response),
    ...(await examineAuthorization(issuer, reference)),
    await examineBody(setup, url),
    await examineForwarding(setup),
  ]
  return { findings, response }
}

/** The headers that protect a page; without them it can be framed, sniffed or cached. */
const pageHeaders = [
  'content-security-policy',
  'x-frame-options',
  'x-content-type-options',
  'referrer-policy',
  'cache-control',
  'strict-transport-security',
]

function* examineHeaders(response: HttpResponse, reference: HttpResponse): Generator<Finding> {
  const changed = pageHeaders.filter(
    (name) => !isAsGood(name, headerOf(response, name), headerOf(reference, name)),
  )
  if (changed.length === 0) yield ok`headers: arrive as they were sent`
  for (const name of changed) {
    const title = name.replaceAll(/(^|-)[a-z]/g, (initial) => initial.toUpperCase())
    const [expected = '', value] = [headerOf(reference, name), headerOf(response, name)]
    if (value === undefined) {
      yield problem`headers: ${name} is lost on the way
        expected  ${expected}
        found  no such header
        change  remove the line that hides it, in nginx: proxy_hide_header ${title};`
    } else {
      const isAdded = value.includes(expected)
      yield (isAdded ? warning : problem)`headers: ${name} is ${isAdded ? 'sent twice' : 'replaced'}
        expected  ${expected}
        found  ${value}
        change  remove the line that sets it, in nginx: add_header ${title} …;`
    }
  }
}

/** A proxy may require https for longer; of several values browsers take the first, RFC 6797 §8.1. */
function isAsGood(name: string, value: string | undefined, expected: string | undefined): boolean {
  if (expected === undefined || value === expected) return true
  if (name !== 'strict-transport-security') return false
  const [age = 0, expectedAge = 0] = [value, expected].map((text) =>
    Number(/max-age="?(\d+)/i.exec(text ?? '')?.[1] ?? 0),
  )
  return age >= expectedAge
}

function examineCookies(response: HttpResponse, reference: HttpResponse): Finding {
  const [expected, cookies] = [cookiesOf(reference), cookiesOf(response)]
  const missing = expected.filter((cookie) => !cookies.includes(cookie))
  if (missing.length === 0) return ok`cookies: arrive with every attribute`
  if (cookies.length > 0) {
    return problem`cookies: are changed on the way
      expected  ${missing}
      found  ${cookies}
      change  remove the lines that change them, in nginx: proxy_cookie_path, proxy_cookie_domain, proxy_cookie_flags`
  }
  return problem`cookies: are lost on the way: users cannot sign in
    expected  ${missing}
    found  no Set-Cookie
    change  remove the line that drops them, in nginx: proxy_hide_header Set-Cookie; proxy_ignore_headers Set-Cookie;`
}

/** Returns the name and the sorted attributes of each cookie; values and instants differ in every response. */
function cookiesOf({ headers }: HttpResponse): readonly string[] {
  return [headers['set-cookie'] ?? []].flat().map((cookie) => {
    const [pair = '', ...attributes] = String(cookie)
      .split(';')
      .map((part) => part.trim())
    const kept = attributes.filter((attribute) => !/^(expires|max-age)=/i.test(attribute))
    return [`${pair.split('=')[0]}=…`, ...kept.sort()].join('; ')
  })
}

/**
 * A response with no-store is not stored, RFC 9111 §5.2.2.5. Requests for a path that does not exist have no effect,
 * and each response has a new request id: two with the same id are one response.
 */
async function examineCaching(issuer: string, page: HttpResponse): Promise<Finding> {
  const missing = [await ask(`${issuer}/oauth/doctor`), await ask(`${issuer}/oauth/doctor`)]
  const [first, second] = missing.map((response) => headerOf(response, 'x-request-id'))
  const isOld = first !== undefined && first === second
  const age = headerOf(page, 'age')
  // Some proxies send the age of every response, also of one that is new.
  if (!isOld && !(Number(age ?? 0) > 0)) return ok`caching: every response comes from the server`
  return problem`caching: the proxy keeps responses that say no-store: users get the pages of other users
    found  ${isOld ? 'the same response twice' : `age: ${age}`}
    change  proxy_cache off;   (in nginx; and no proxy_ignore_headers Cache-Control)`
}

function examineCompression(page: HttpResponse): Finding {
  const encoding = headerOf(page, 'content-encoding')
  if (encoding === undefined) return ok`compression: pages are not compressed`
  return warning`compression: pages that contain secrets are compressed: their length reveals something about them
    found  ${encoding}
    change  gzip off;   (in nginx; in Caddy no encode)`
}

/** UserInfo names an error only if a token arrived, RFC 6750 §3.1. */
async function examineAuthorization(issuer: string, reference: Reference): Promise<readonly Finding[]> {
  const metadata = membersOf(await reference.responseTo(`${issuer}/.well-known/openid-configuration`))
  const url = metadata?.['userinfo_endpoint']
  if (typeof url !== 'string') return []
  const response = await ask(url, { headers: { authorization: 'Bearer lychgate-doctor' } })
  if (headerOf(response, 'www-authenticate')?.includes('invalid_token'))
    return [ok`request headers: Authorization reaches the server`]
  const lost = problem`request headers: Authorization does not reach the server
    change  remove the line that drops it, in nginx: proxy_set_header Authorization "";`
  return [lost]
}

/** Sends the largest form that this server accepts. */
async function examineBody({ config: { limits } }: Setup, url: string): Promise<Finding> {
  const { tokenBodyBytes, parameterBytes, parameters, registrationBodyBytes } = limits
  const values = Array.from({ length: parameters }, (_, index) => `p${index}=${'x'.repeat(parameterBytes)}`)
  const form = values.join('&').slice(0, tokenBodyBytes)
  const rejected = (said: string, found: string) => problem`body size: ${said}
    expected  a response of the server to ${form.length} bytes (limits.tokenBodyBytes)
    found  ${found}
    change  client_max_body_size ${Math.ceil(registrationBodyBytes / 1024)}k;   (in nginx)`
  try {
    const response = await ask(url, { form })
    if (response.status === 200 || response.status === 303) return ok`body size: ${form.length} bytes arrive`
    return rejected(
      'the proxy rejects forms that the server accepts',
      `${response.status}: ${excerptOf(response)}`,
    )
  } catch (error) {
    if (!(error instanceof NoResponse)) throw error
    return rejected('the proxy closes the connection when it gets a large form', error.message)
  }
}

/**
 * Checks who may name the address a request counts for: otherwise rate limits reject all clients at once. What a proxy
 * sends is seen by the server alone, which is asked.
 */
async function examineForwarding(setup: Setup): Promise<Finding> {
  const { issuer, trustProxy } = setup.config
  if (isDirect(setup))
    return ok`forwarded address: there is no proxy; ${trustProxy.length === 0 ? 'none' : trustProxy} is trusted`
  if (trustProxy.length === 0) {
    return problem`forwarded address: no proxy is trusted: all clients count as the proxy, one network for rate limits
      expected  the address the proxy connects from, 127.0.0.1 on the same machine
      found  trustProxy is empty
      change  ${setting('trustProxy', ['127.0.0.1'])}`
  }
  const proof = await proofBy(secretOf(setup.config) ?? '', systemClock())
  const arrivalOf = async (headers: Readonly<Record<string, string>> = {}) =>
    membersOf(await ask(issuer + arrivalPath, { headers: { [proofHeader]: proof, ...headers } })) ?? {}
  return arrivalFinding(await arrivalOf(), await arrivalOf({ 'x-forwarded-for': claimedAddress }))
}
