/** The misbehaving issuers of a development server, as upstreams: what a sign-in meets of them, it notices. */
import t from 'tap'
import { profiles } from '../../src/dev/issuers/catalogue.ts'
import type { Profile } from '../../src/dev/issuers/profile.ts'
import { issuerOf, reportOf } from '../dev/issuers/results.ts'
import { authorizationUrl, register, signInAndApprove } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { recordOf } from '../helpers/rejection.ts'
import { startServer } from '../helpers/server.ts'
import { buttonOf, pageOf, UserAgent, upstreamOf } from '../helpers/stand-in-upstream.ts'

/** The rule that rejects the sign-in, for each issuer that it meets. */
const rejected: Readonly<Record<string, readonly string[]>> = {
  'oidc-disc-4.3-rp-issuer-exact': ['metadata-other-issuer', 'metadata-issuer-with-slash'],
  'oidc-disc-3-rp-endpoints': ['metadata-http-endpoint', 'metadata-without-token-endpoint'],
  'rfc9207-2.4-client-compares-iss': ['iss-missing', 'iss-wrong', 'iss-with-slash'],
  'rfc6749-10.12-client-state': ['state-missing', 'state-changed', 'code-in-fragment'],
  'rfc6749-3.1-no-duplicate-request-params': ['code-twice'],
  'oidc-core-3.1.2.6-rp-error': ['code-and-error'],
  'oidc-core-3.1.3.7-rp-signature': [
    'id-token-bad-signature',
    'id-token-alg-none',
    'id-token-unknown-kid',
    'keys-swapped',
  ],
  'oidc-core-3.1.3.7-rp-alg': ['id-token-hmac-with-public-key'],
  'oidc-core-3.1.3.7-rp-iss': ['id-token-wrong-iss'],
  'oidc-core-3.1.3.7-rp-aud': ['id-token-wrong-aud', 'id-token-second-aud'],
  'oidc-core-3.1.3.7-rp-azp': ['id-token-wrong-azp'],
  'oidc-core-3.1.3.7-rp-nonce': ['id-token-wrong-nonce', 'id-token-without-nonce'],
  'oidc-core-3.1.3.7-rp-exp': ['id-token-expired', 'id-token-without-exp'],
  'oidc-core-2-rp-sub': ['id-token-without-sub'],
  'oidc-core-3.1.3.8-rp-at-hash': ['id-token-wrong-at-hash'],
  'oidc-core-3.1.3.5-rp-token-response': [
    'id-token-missing',
    'token-type-odd',
    'token-type-missing',
    'error-as-200',
    'html-as-tokens',
  ],
  'oidc-core-5.3.2-rp-sub': ['userinfo-other-sub', 'userinfo-without-sub'],
}

/** Issuers where the sign-in works, and why that is right. */
const accepted: Readonly<Record<string, readonly string[]>> = {
  'nothing is wrong': ['reference'],
  'the request has an S256 challenge, whatever the metadata says': ['metadata-without-s256'],
  'what the metadata is wrong about is not used': [
    'metadata-without-documents',
    'assertion-hmac-only',
    'dpop-hmac-only',
    'request-object-hmac-only',
  ],
  'the access token is used once, at once: how long it lasts and what else it may do is not looked at': [
    'expires-in-string',
    'scope-narrowed-silently',
  ],
  'no API is called, and so nothing is read about one': [
    'resource-metadata-other-resource',
    'challenge-foreign-metadata',
    'step-up-endless',
  ],
  'tokens are not refreshed or introspected': [
    'refresh-empty',
    'refresh-without-access-token',
    'refresh-without-refresh-token',
    'refresh-other-sub',
    'introspection-active-text',
  ],
  'no token is requested without a user, or by a device': [
    'service-refresh-token',
    'service-token-type-missing',
    'service-without-access-token',
    'device-code-never-ends',
    'device-slow-down',
    'device-denied-goes-on',
  ],
  'this server authenticates there by its secret, pushes no request and has no DPoP key': [
    'assertion-other-audience',
    'dpop-nonce-endless',
    'dpop-token-as-bearer',
    'pushed-expires-at-once',
  ],
  'logout tokens of an upstream are not accepted': [
    'logout-token-with-nonce',
    'logout-token-without-event',
    'logout-token-other-audience',
    'logout-token-wrong-sid',
  ],
}

const issuers = await startServer(t, { mode: 'dev' })
const port = await freePort()
const callbackOf = (id: string) => `http://localhost:${port}/login/upstream/${id}/callback`
const upstreams = await Promise.all(
  profiles.map(async ({ id }) => {
    const issuer = issuerOf(issuers, id)
    const { id: clientId, secret = '' } = await register(
      { issuer },
      { redirect_uris: [callbackOf(id)], token_endpoint_auth_method: 'client_secret_basic' },
    )
    return upstreamOf(t, issuer, { id, name: id, clientId, secret, firstSignIn: 'any' })
  }),
)
const server = await startServer(t, {
  mode: 'dev',
  port,
  upstreams,
  fetch: { perOriginPerMinute: 6000 },
})
const client = await register(server)

/** Signs in at an issuer. Returns the rule that rejected it; undefined if it worked. */
async function signInAt({ id }: Profile): Promise<string | undefined> {
  const [here, there] = [new UserAgent(server.issuer), new UserAgent(issuerOf(issuers, id))]
  const login = pageOf(await here.open(authorizationUrl(server, client)))
  let landing = await here.open(buttonOf(login).replace(/upstream\/[^?]+/, `upstream/${id}`))
  if (landing.at === 'redirect') {
    const callback = await signInAndApprove(there, await there.open(landing.location.href))
    landing = await here.open(callback.href)
  }
  const page = pageOf(landing)
  if (page.html.includes('value="approve"')) return undefined
  t.equal(here.cookie('session'), undefined, id)
  return (await recordOf(server, page)).rule
}

const by = (outcomes: Readonly<Record<string, readonly string[]>>) =>
  new Map(Object.entries(outcomes).flatMap(([why, ids]) => ids.map((id) => [id, why] as const)))

t.test('each misbehaving issuer is rejected by its rule, or it is said why it is not', async (t) => {
  const [rules, reasons] = [by(rejected), by(accepted)]
  t.strictSame(
    profiles.map(({ id }) => id).toSorted(),
    [...rules.keys(), ...reasons.keys()].toSorted(),
    'each issuer of the catalogue is listed once',
  )
  for (const profile of profiles) t.equal(await signInAt(profile), rules.get(profile.id), profile.id)

  const { reference, profiles: reported } = await reportOf(issuers)
  t.equal(reference, 'passed')
  for (const { id, verdict } of reported.slice(1))
    t.ok(verdict === 'rejected' || (verdict === 'not reached' && reasons.has(id)), `${id}: ${verdict}`)
})
