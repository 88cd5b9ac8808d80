/** What each request passes. A hook, parser or header that is added to a route shows here: `npm run routes` prints it. */
import t from 'tap'
import { everyRoute, grouped, type Passed, routeCollector } from '../../scripts/routes.ts'
import { startServer } from '../helpers/server.ts'

const every = 'followDefinitions setSecurityHeaders noteForwarding assertWellFormedHttp'
const page = `${every} rejectLatePage`
const [form, json] = ['application/x-www-form-urlencoded', 'text/plain application/json']

/** What the requests of a kind of route pass. A route with less is no fault. */
const allowed = new Set([
  '(sent before routing)',
  // Health, assets, preflights.
  `${json} ${every} logRequest`,
  // Endpoints that authenticate a client.
  `${form} ${every} rateLimit assertForm requireClient logRequest`,
  // Registration.
  `application/json ${every} rateLimit logRequest`,
  // UserInfo, and APIs.
  `${form} */* ${every} requireAccess logRequest`,
  `${form} */* ${every} assertFormUnlessToken requireAccess logRequest`,
  `${json} ${every} requireAccess logRequest`,
  `${json} ${every} rateLimit requireAccess assertAllowed logRequest`,
  `${json} ${every} rateLimit requireAccess assertAllowed assertSignIn logRequest`,
  // Pages.
  `${json} ${page} replaceFormerCookies logRequest`,
  `${json} ${page} rateLimit replaceFormerCookies logRequest`,
  `${form} ${page} replaceFormerCookies logRequest`,
  `${form} ${page} rateLimit replaceFormerCookies logRequest`,
  `${form} ${page} assertSameSite assertForm replaceFormerCookies logRequest`,
  `${form} ${page} rateLimit assertSameSite assertForm replaceFormerCookies logRequest`,
])

/** The headers that every response of a kind has, with their value, and those that some have. */
const everyResponse = {
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}
const policy = { 'content-security-policy': "default-src 'none';frame-ancestors 'none'" }
const someResponses =
  'cache-control connection content-length content-type date etag keep-alive location pragma x-request-id'
const limited = 'x-ratelimit-limit x-ratelimit-remaining x-ratelimit-reset'
const kinds = {
  others: {
    always: { ...everyResponse, ...policy },
    sometimes: `${someResponses} cross-origin-resource-policy`,
  },
  clients: {
    always: { ...everyResponse, ...policy, 'access-control-allow-origin': '*' },
    sometimes: `${someResponses} ${limited} access-control-allow-headers access-control-allow-methods access-control-expose-headers access-control-max-age vary www-authenticate`,
  },
  pages: {
    always: { ...everyResponse, 'cache-control': 'no-store', pragma: 'no-cache' },
    sometimes: `${someResponses} ${limited} content-language content-security-policy permissions-policy set-cookie vary`,
  },
}

const { observe, walk } = routeCollector()
const { origin } = await startServer(t, { ...everyRoute, observe })
const walked = await walk(origin)

t.test('a request passes only the hooks and parsers of its kind of route', async (t) => {
  t.ok(walked.size > 200, 'all routes were walked')
  const others = [...grouped(walked)].filter(([line]) => !allowed.has(line))
  t.strictSame(others, [])
})

t.test('a response has the headers of its kind of route, and no others', async (t) => {
  for (const [route, one] of walked) {
    const { always, sometimes } = kinds[kindOf(one)]
    const missing = Object.entries(always).filter(([name, value]) => one.headers[name] !== value)
    t.strictSame(missing, [], `${route}: each header`)
    const known = new Set([...Object.keys(always), ...sometimes.split(' ')])
    t.strictSame(
      Object.keys(one.headers).filter((name) => !known.has(name)),
      [],
      `${route}: no other header`,
    )
  }
})

function kindOf({ hooks, headers }: Passed): keyof typeof kinds {
  if (hooks.includes('rejectLatePage')) return 'pages'
  return 'access-control-allow-origin' in headers ? 'clients' : 'others'
}
