import { type Answer, ask, headerOf, NoAnswer } from './ask.ts'
import { excerpt, membersOf } from './difference.ts'
import { type Finding, ok, problem, setting, warning } from './finding.ts'
import type { Reference } from './reference.ts'
import { isDirect, type Setup, upstreamOf } from './setup.ts'

/**
 * Checks what a proxy changes in requests and responses, by a page that has no effect: the sign-out page without a
 * session. `answer` is that page.
 */
export async function examineProxy(
  setup: Setup,
  reference: Reference,
): Promise<{ readonly findings: readonly Finding[]; readonly answer?: Answer }> {
  const { issuer } = setup.config
  const url = `${issuer}/oauth/logout`
  const answer = await askAsBrowser(url)
  const expected = await reference.answer(url)
  if (answer.status !== expected.status) {
    const change = [`location / { proxy_pass ${upstreamOf(setup)}; }   (in nginx)`]
    const found = `${answer.status}: ${excerpt(answer)}`
    const detail = { expected: `${expected.status}`, found, change }
    return { findings: [problem('pages', `${url} does not arrive`, detail)] }
  }
  const findings = [
    ...examineHeaders(answer, expected),
    ...examineCookies(answer, expected),
    ...examineCaching(await askAsBrowser(url), await askMissing(issuer), await askMissing(issuer)),
    ...examineCompression(answer),
    ...(await examineAuthorization(issuer, reference)),
    await examineBody(setup, url),
    examineForwarding(setup),
  ]
  return { findings, answer }
}

function askAsBrowser(url: string): Promise<Answer> {
  return ask(url, { headers: { accept: 'text/html', 'accept-encoding': 'gzip, br' } })
}

/** Asks for what no server has: each such response has a new request id, and no store keeps a record of it. */
function askMissing(issuer: string): Promise<Answer> {
  return ask(`${issuer}/oauth/doctor`)
}

/**
 * Checks who may name the address a request counts for. Behind a proxy that is not trusted, all clients count as one
 * network, and rate limits reject all of them at once. What the proxy sends cannot be seen from outside.
 */
function examineForwarding(setup: Setup): Finding {
  const check = 'forwarded address'
  const { trustProxy } = setup.config
  if (trustProxy.length > 0) return ok(check, `X-Forwarded-For counts when ${trustProxy.join(', ')} sends it`)
  if (isDirect(setup)) return ok(check, 'there is no proxy, and none is trusted')
  const said = 'no proxy is trusted: all clients count as the proxy, one network for rate limits'
  return problem(check, said, {
    expected: 'the address the proxy connects from, 127.0.0.1 on the same machine',
    found: 'trustProxy is empty',
    change: setting('trustProxy', ['127.0.0.1']),
  })
}

/** Those that protect a page; without them it can be framed, sniffed or cached. */
const pageHeaders = [
  'content-security-policy',
  'x-frame-options',
  'x-content-type-options',
  'referrer-policy',
  'cache-control',
  'strict-transport-security',
]

function* examineHeaders(answer: Answer, reference: Answer): Generator<Finding> {
  let arrived = 0
  for (const name of pageHeaders) {
    const [expected, found] = [headerOf(reference, name), headerOf(answer, name)]
    if (expected === undefined || isAsGood(name, found, expected)) arrived++
    else if (found === undefined) {
      yield problem('headers', `${name} is lost on the way`, {
        expected,
        found: 'no such header',
        change: [`remove the line that hides it, in nginx: proxy_hide_header ${titled(name)};`],
      })
    } else {
      const isAdded = found.includes(expected)
      yield (isAdded ? warning : problem)('headers', `${name} is ${isAdded ? 'sent twice' : 'replaced'}`, {
        expected,
        found,
        change: [`remove the line that sets it, in nginx: add_header ${titled(name)} …;`],
      })
    }
  }
  if (arrived === pageHeaders.length) yield ok('headers', 'arrive as they were sent')
}

/** A proxy may well have browsers insist on https for longer; of several values they take the first, RFC 6797 §8.1. */
function isAsGood(name: string, found: string | undefined, expected: string): boolean {
  if (found === expected || name !== 'strict-transport-security') return found === expected
  const [age = 0, expectedAge = 0] = [found, expected].map((text) =>
    Number(/max-age="?(\d+)/i.exec(text ?? '')?.[1] ?? 0),
  )
  return age >= expectedAge
}

function* examineCookies(answer: Answer, reference: Answer): Generator<Finding> {
  const [expected, found] = [reference, answer].map(({ headers }) =>
    (headers['set-cookie'] ?? []).map(withoutValue),
  )
  const missing = (expected ?? []).filter((cookie) => !found?.includes(cookie))
  if (missing.length === 0) {
    yield ok('cookies', 'arrive with every attribute')
    return
  }
  const isLost = found?.length === 0
  yield problem('cookies', isLost ? 'are lost on the way: nobody can sign in' : 'are changed on the way', {
    expected: missing.join(', '),
    found: found?.join(', ') || 'no Set-Cookie',
    change: [
      isLost
        ? 'remove the line that drops them, in nginx: proxy_hide_header Set-Cookie; proxy_ignore_headers Set-Cookie;'
        : 'remove the lines that change them, in nginx: proxy_cookie_path, proxy_cookie_domain, proxy_cookie_flags',
    ],
  })
}

/** Name and attributes, in one order; values and instants differ by nature. */
function withoutValue(cookie: string): string {
  const [pair = '', ...attributes] = cookie.split(';').map((part) => part.trim())
  const kept = attributes.filter((attribute) => !/^(expires|max-age)=/i.test(attribute))
  return [`${pair.split('=')[0]}=…`, ...kept.sort()].join('; ')
}

/** RFC 9111 §5.2.2.5: a response with no-store is not stored. Two rejected requests with one id are one response. */
function* examineCaching(page: Answer, ...missing: readonly [Answer, Answer]): Generator<Finding> {
  const [first, second] = missing.map((answer) => headerOf(answer, 'x-request-id'))
  const isOld = first !== undefined && first === second
  const age = headerOf(page, 'age')
  // Some proxies send the age of every response, also of one that is new.
  if (isOld || Number(age ?? 0) > 0) {
    yield problem('caching', 'the proxy keeps answers that say no-store: people get the pages of others', {
      expected: 'an answer of the server to every request',
      found: isOld ? 'the same answer twice' : `age: ${age}`,
      change: ['proxy_cache off;   (in nginx; and no proxy_ignore_headers Cache-Control)'],
    })
  } else yield ok('caching', 'every answer comes from the server')
}

function* examineCompression(page: Answer): Generator<Finding> {
  const encoding = headerOf(page, 'content-encoding')
  if (encoding === undefined) yield ok('compression', 'pages are not compressed')
  else {
    yield warning('compression', 'pages with secrets in them are compressed: their length tells of them', {
      expected: 'no Content-Encoding on pages',
      found: encoding,
      change: ['gzip off;   (in nginx; in Caddy no encode)'],
    })
  }
}

/** RFC 6750 §3.1: UserInfo names an error only if a token arrived. */
async function examineAuthorization(issuer: string, reference: Reference): Promise<readonly Finding[]> {
  const metadata = await reference.answer(`${issuer}/.well-known/openid-configuration`)
  const url = membersOf(metadata.body)?.['userinfo_endpoint']
  if (typeof url !== 'string') return []
  const answer = await ask(url, { headers: { authorization: 'Bearer lychgate-doctor' } })
  if (headerOf(answer, 'www-authenticate')?.includes('invalid_token'))
    return [ok('request headers', 'Authorization reaches the server')]
  const detail = {
    expected: 'Authorization as the client sent it',
    found: 'no such header',
    change: ['remove the line that drops it, in nginx: proxy_set_header Authorization "";'],
  }
  return [problem('request headers', 'Authorization does not reach the server', detail)]
}

/** A form as large as this server takes. */
async function examineBody({ config }: Setup, url: string): Promise<Finding> {
  const { tokenBodyBytes, parameterBytes, parameters } = config.limits
  const values = Array.from({ length: parameters }, (_, index) => `p${index}=${'x'.repeat(parameterBytes)}`)
  const body = values.join('&').slice(0, tokenBodyBytes)
  const change = [
    `client_max_body_size ${Math.ceil(config.limits.registrationBodyBytes / 1024)}k;   (in nginx)`,
  ]
  const expected = `an answer of the server to ${body.length} bytes (limits.tokenBodyBytes)`
  try {
    const answer = await ask(url, { method: 'POST', body })
    if (answer.status === 200 || answer.status === 303) return ok('body size', `${body.length} bytes arrive`)
    const found = `${answer.status}: ${excerpt(answer)}`
    return problem('body size', 'the proxy refuses forms that the server takes', { expected, found, change })
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error
    const found = error.message
    return problem('body size', 'the proxy ends the connection over a large form', {
      expected,
      found,
      change,
    })
  }
}

function titled(name: string): string {
  return name.replaceAll(/(^|-)[a-z]/g, (initial) => initial.toUpperCase())
}
