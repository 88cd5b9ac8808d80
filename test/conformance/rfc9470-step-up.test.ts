/** Step-up authentication: an API demands a recent sign-in, or one of a class (RFC 9470). */
import Fastify, { type FastifyRequest } from 'fastify'
import t from 'tap'
import { guard, introspectedBy, signedBy } from '../../src/guard/guard.ts'
import { claimsOf, type Fields, obtainTokens, postAs, register } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { addResourceServer, callAt } from '../helpers/guarded-api.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { addClient, introspect, json } from '../helpers/wire.ts'

const [opaque, signed] = await Promise.all(
  ['opaque', 'jwt'].map(async () => `http://127.0.0.1:${await freePort()}`),
)
if (opaque === undefined || signed === undefined) throw new Error('no ports')
const scopes = ['courses:read']
const server = await startServer(t, {
  resources: [
    { identifier: opaque, name: 'Notes', scopes, tokenFormat: 'opaque' },
    { identifier: signed, name: 'Grades', scopes, tokenFormat: 'jwt' },
  ],
})
const client = await register(server)
const agent = new UserAgent(server.issuer)
const mfa = 'https://refeds.org/profile/mfa'
const byPassword = 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport'

for (const [resource, verifyToken] of [
  [opaque, introspectedBy(await addResourceServer(server, opaque))],
  [signed, signedBy({ issuer: server.issuer, jwksUri: `${server.issuer}/api/oauth/jwks` })],
] as const) {
  const app = Fastify()
  await app.register(guard, { resource, verifyToken, anonymous: 'allow', clock: server.now })
  const caller = async ({ access }: FastifyRequest) => ({ caller: access ?? 'anonymous' })
  for (const [path, demand] of [
    ['/recent', { maxAgeSeconds: 60 }],
    ['/factors', { acrValues: [mfa, 'phr'] }],
    ['/password', { acrValues: [mfa, byPassword], maxAgeSeconds: 3600 }],
  ] as const)
    app.get(
      path,
      { preHandler: [app.requireScope('courses:read'), app.requireAuthentication(demand)] },
      caller,
    )
  t.teardown(() => app.close())
  await app.listen({ host: '127.0.0.1', port: Number(new URL(resource).port) })
}

for (const resource of [opaque, signed]) {
  const tokens = (fields: Fields = {}) =>
    obtainTokens(server, client, { agent, fields: { scope: 'courses:read', resource, ...fields } })
  const about = resource === opaque ? 'by introspection' : 'by signature'

  t.test(
    `[rfc9470-3-challenge] [rfc9470-3-acr-values-max-age] [rfc9470-5-authorization-response] an old sign-in is challenged, and a new one passes, ${about}`,
    async (t) => {
      await tokens({ prompt: 'login' })
      server.advance(61)
      const { access_token: old } = await tokens()
      const { status, challenge, body } = await callAt(`${resource}/recent`, old)
      t.equal(status, 401, '[rfc9470-3-challenge]')
      t.equal(body['error'], 'insufficient_user_authentication', '[rfc9470-3-challenge]')
      t.match(challenge, /^Bearer error="insufficient_user_authentication", error_description="[^"]+", /)
      t.match(challenge, ', max_age="60"', '[rfc9470-3-acr-values-max-age]')
      t.notMatch(challenge, 'acr_values')
      t.equal((await callAt(`${resource}/password`, old)).status, 200, 'it is recent enough elsewhere')
      const { access_token: fresh } = await tokens({ max_age: '60' })
      const passed = await callAt(`${resource}/recent`, fresh)
      t.equal(passed.status, 200, '[rfc9470-5-authorization-response]')
      t.match(passed.body['caller'], { authentication: { acr: byPassword, authTime: Number } })
      const classes = await callAt(`${resource}/factors`, fresh)
      t.match(classes, { status: 401, body: { error: 'insufficient_user_authentication' } })
      t.match(classes.challenge, `, acr_values="${mfa} phr"`, '[rfc9470-3-acr-values-max-age]')
      t.notMatch(classes.challenge, 'max_age')
    },
  )

  t.test(`a caller without a token or a user does not pass, ${about}`, async (t) => {
    const none = await callAt(`${resource}/recent`)
    t.equal(none.status, 401)
    t.notMatch(none.challenge, 'error=')
    const machine = await addClient(server, {
      grantTypes: ['client_credentials'],
      redirectUris: [],
      scope: ['courses:read'],
      resources: [resource],
    })
    const response = await postAs(server, machine, '/api/oauth/token', {
      grant_type: 'client_credentials',
      resource,
    })
    const { access_token: token } = await json(response)
    t.match(await callAt(`${resource}/recent`, String(token)), {
      status: 401,
      body: { error: 'insufficient_user_authentication' },
    })
    const about = await introspect(server, machine, String(token))
    t.equal(about['active'], true)
    t.notOk('auth_time' in about || 'acr' in about, 'no user signed in')
  })
}

t.test(
  '[rfc9470-6.1-jwt-claims] [rfc9470-6.2-introspection] both kinds of token say how the user signed in',
  async (t) => {
    const fields = { scope: 'courses:read', prompt: 'login' }
    const said = { acr: byPassword, auth_time: Number }
    const jwt = await obtainTokens(server, client, { agent, fields: { ...fields, resource: signed } })
    t.match(claimsOf(jwt.access_token), said, '[rfc9470-6.1-jwt-claims]')
    const { access_token: token } = await obtainTokens(server, client, {
      agent,
      fields: { ...fields, resource: opaque },
    })
    t.match(await introspect(server, client, token), said, '[rfc9470-6.2-introspection]')
  },
)
