import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { cookieName } from '../../src/http/cookies.ts'
import { grantType } from '../../src/specs/rfc8628-device-grant/rules/codes.ts'
import type { HttpResponse } from './connection.ts'
import { faultOfForm } from './form-faults.ts'
import type { Sent } from './request.ts'
import { faultOfRights } from './rights.ts'
import { type RunResult, runFuzz } from './run.ts'
import { makeKeys, startWorld } from './world.ts'

/** A busy machine can be slow. */
const patient = { timeout: 300_000 }

t.test(
  '3000 generated requests get well-formed responses, and no client gets what belongs to another',
  patient,
  async (t) => {
    const { sent, finding, statuses } = await runFuzz({ seed: 1, requests: 3000 })
    t.equal(finding, undefined, JSON.stringify(finding))
    t.equal(sent, 3000)
    // A run in which nothing succeeds proves nothing.
    for (const reached of [
      '/oauth/authorize 303',
      '/login 303',
      '/consent 200',
      '/consent 303',
      '/api/oauth/token 200',
      '/api/oauth/token 400',
      '/api/oauth/introspect 200',
      '/api/oauth/revoke 200',
      '/api/oauth/userinfo 200',
      '/api/oauth/userinfo 401',
      '/api/oauth/register 201',
      '/api/oauth/register/:client_id 200',
      '/oauth/logout 303',
      '/oauth/device_authorization 200',
      '/device 303',
      '/device/confirm 200',
      '/device/confirm 303',
      '/api/oauth/par 201',
      '/api/admin/v1/users 200',
      '/api/admin/v1/users 201',
      '/api/admin/v1/explain 200',
      '/api/admin/v1/grants 200',
      '/api/admin/v1/clients 200',
      '/api/admin/v1/clients 201',
      '/api/admin/v1/clients 403',
      '/api/courses 403',
      '(malformed) 400',
    ]) {
      t.ok(statuses.has(reached), reached)
    }
  },
)

t.test(
  'the same seed sends the same requests and gets the same responses, also one by one',
  patient,
  async (t) => {
    const run = async (options: { readonly requests: number; readonly only?: number }) => {
      const lines: string[] = []
      const result: RunResult = await runFuzz({
        seed: 7,
        ...options,
        observe: (index, { method, target, bytes }, responses) => {
          const what = bytes ? 'malformed' : `${method} ${target.split('?')[0]}`
          lines.push(`${index} ${what} ${responses.map(({ status }) => status)}`)
        },
      })
      t.equal(result.finding, undefined)
      return lines
    }
    const [once, again] = [await run({ requests: 300 }), await run({ requests: 300 })]
    t.strictSame(once, again)
    t.strictSame(await run({ requests: 300, only: 120 }), once.slice(0, 121))
  },
)

const world = await startWorld('planted', await makeKeys('planted'))
const sessionCookie = `${cookieName(world.issuer, 'session')}=x`
t.teardown(() => world.close())
world.secrets.push('a-planted-secret')
world.redirectUris.set('client_1', new Set(['http://127.0.0.1/cb']))
world.registrations.set('client_1', 'lyc_registration_1')
world.clientSecrets.set('client_3', 'lyc_secret_3')
world.wanted.set('i', {
  clientId: 'client_1',
  redirectUri: 'http://127.0.0.1:5/cb',
  state: 's',
  verifier: undefined,
})
world.owners.set('lyc_code_1', 'client_1').set('lyc_access_1', 'client_1')
world.owners.set('lyc_access_b', 'client_1').set('lyc_refresh_b', 'client_1').set('lyc_code_b', 'client_1')
const [jkt = '', otherJkt = ''] = world.prover.keys.keys()
for (const name of ['lyc_access_b', 'lyc_refresh_b', 'lyc_code_b']) world.prover.bound.set(name, jkt)
world.boundClients.add('client_4')
for (const [proof, key, method, path, token] of [
  ['p.1', jkt, 'POST', '/api/oauth/token', undefined],
  ['p.2', otherJkt, 'POST', '/api/oauth/token', undefined],
  ['p.3', jkt, 'GET', '/api/oauth/userinfo', 'lyc_access_b'],
  ['p.4', jkt, 'GET', '/api/oauth/userinfo', 'lyc_access_1'],
  ['p.5', jkt, 'POST', '/api/oauth/userinfo', 'lyc_access_b'],
] as const)
  world.prover.good.set(proof, { jkt: key, method, path, token })
world.prover.used.add('p.1.used')
const device = { clientId: 'client_1', verifier: undefined, isDenied: false, isRedeemed: false }
world.devices.push(
  { ...device, deviceCode: 'lyc_device_1', userCode: 'BBBB-BBBB', isApproved: true },
  { ...device, deviceCode: 'lyc_device_2', userCode: 'CCCC-CCCC', isApproved: false },
  { ...device, deviceCode: 'lyc_device_3', userCode: 'DDDD-DDDD', isApproved: true, verifier: 'v' },
  { ...device, deviceCode: 'lyc_device_4', userCode: 'FFFF-FFFF', isApproved: true, isRedeemed: true },
)
world.administrator.tokens.set('lyc_access_a', ['admin:users:read'])
world.owners.set('lyc_refresh_1', 'client_1').set('lyc_refresh_3', 'client_3')

const get = (target: string, headers: Sent['headers'] = []): Sent => ({
  method: 'GET',
  target,
  headers,
  body: Buffer.alloc(0),
})
const post = (target: string, form: string, headers: Sent['headers'] = []): Sent => ({
  method: 'POST',
  target,
  headers: [['Content-Type', 'application/x-www-form-urlencoded'], ...headers],
  body: Buffer.from(form),
})
const headers = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'x-request-id': 'x',
}
const rejected: HttpResponse = {
  status: 400,
  headers,
  cookies: [],
  body: '{"error":"invalid_grant","error_description":"the code is unknown"}',
}
const page: HttpResponse = {
  status: 200,
  headers: {
    ...headers,
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy':
      "default-src 'none'; script-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
  },
  cookies: [],
  body: '<!doctype html><html><body><p>x</p></body></html>',
}
const token = post('/api/oauth/token', 'grant_type=authorization_code&code=lyc_code_1&client_id=client_1')
const without = (name: string) =>
  Object.fromEntries(Object.entries(headers).filter(([each]) => each !== name))

t.test('a malformed response is detected', async (t) => {
  const login = get('/login')
  t.equal(faultOfForm(token, rejected, world), undefined)
  t.equal(faultOfForm(login, page, world), undefined)
  const wrong: Readonly<Record<string, readonly [Sent, HttpResponse]>> = {
    'a 500': [token, { ...rejected, status: 500 }],
    'a code of another endpoint': [token, { ...rejected, body: rejected.body.replace('grant', 'token') }],
    'a description out of its characters': [
      token,
      { ...rejected, body: rejected.body.replace('the', 'the \u00e9') },
    ],
    'a description that quotes': [token, { ...rejected, body: rejected.body.replace('the', 'zqx') }],
    'another member': [token, { ...rejected, body: rejected.body.replace('{', '{"statusCode":400,') }],
    'an error that may be cached': [token, { ...rejected, headers: without('cache-control') }],
    'no nosniff': [token, { ...rejected, headers: without('x-content-type-options') }],
    'no policy': [token, { ...rejected, headers: without('content-security-policy') }],
    'its software': [token, { ...rejected, headers: { ...headers, 'x-powered-by': 'x' } }],
    'a 401 without a challenge': [token, { ...rejected, status: 401 }],
    'two challenges': [
      token,
      { ...rejected, status: 401, headers: { ...headers, 'www-authenticate': 'Basic x\nBearer y' } },
    ],
    'a 405 without Allow': [token, { ...rejected, status: 405 }],
    'a stack trace': [token, { ...rejected, body: rejected.body.replace('the code', 'at f (/x/y.ts:1:2)') }],
    'a secret': [token, { ...rejected, headers: { ...headers, x: 'a-planted-secret' } }],
    'a plain error': [token, { ...rejected, headers: { ...headers, 'content-type': 'text/plain' } }],
    'markup of the request': [login, { ...page, body: page.body.replace('x<', '<img src=zqx><') }],
    'an event handler': [login, { ...page, body: page.body.replace('<p>', '<p onclick=x>') }],
    'a script link': [login, { ...page, body: page.body.replace('x<', '<a href="javascript:x">x</a><') }],
    'a script': [login, { ...page, body: page.body.replace('x<', '<script>x</script><') }],
    'a page that may be framed': [
      login,
      { ...page, headers: { ...page.headers, 'x-frame-options': 'SAMEORIGIN' } },
    ],
    'a cookie for scripts': [login, { ...page, cookies: [`${sessionCookie}; SameSite=Lax`] }],
  }
  for (const [about, [sent, response]] of Object.entries(wrong))
    t.ok(faultOfForm(sent, response, world), about)
})

t.test('a response with forbidden contents is detected', async (t) => {
  const asked = get(
    '/oauth/authorize?client_id=client_1&redirect_uri=http%3A%2F%2F127.0.0.1%3A5%2Fcb&state=s',
  )
  const signedIn = get(asked.target, [['Cookie', sessionCookie]])
  const to = (location: string): HttpResponse => ({
    status: 303,
    headers: { location },
    cookies: [],
    body: '',
  })
  const iss = `iss=${encodeURIComponent(world.issuer)}`
  const tokens: HttpResponse = {
    ...rejected,
    status: 200,
    body: '{"access_token":"x","token_type":"Bearer","expires_in":5}',
  }
  const json = (body: string): HttpResponse => ({ ...rejected, status: 200, body })
  t.equal(faultOfRights(signedIn, to(`http://127.0.0.1:5/cb?code=x&state=s&${iss}`), world), undefined)
  t.equal(faultOfRights(token, tokens, world), undefined)
  const machine: HttpResponse = { ...tokens, body: tokens.body.replace('{', '{"scope":"courses:read",') }
  const assert = (assertion: string) =>
    post(token.target, `grant_type=client_credentials&client_assertion=${assertion}`)
  world.signer.good.set('a.b', 'jti-1')
  t.equal(faultOfRights(assert('a.b.c'), machine, world), undefined, 'an assertion names its client')
  const refreshBy = (name: string) => post(token.target, `grant_type=refresh_token&refresh_token=${name}`)
  t.equal(
    faultOfRights(refreshBy('lyc_refresh_1'), tokens, world),
    undefined,
    'a public client is named by it',
  )
  const bound: HttpResponse = { ...tokens, body: tokens.body.replace('Bearer', 'DPoP') }
  const proven = (by: string, proof?: string) =>
    post(token.target, by, proof === undefined ? [] : [['DPoP', proof]])
  const byBound = 'grant_type=refresh_token&refresh_token=lyc_refresh_b&client_id=client_1'
  t.equal(faultOfRights(proven(byBound, 'p.1.x'), bound, world), undefined, 'a refresh token with its key')
  const byDevice = (name: string, client = 'client_1') =>
    post(token.target, `grant_type=${grantType}&device_code=${name}&client_id=${client}`)
  t.equal(faultOfRights(byDevice('lyc_device_1'), tokens, world), undefined, 'a device that was approved')
  const access = (authorization: string, proof?: string) =>
    get('/api/oauth/userinfo', [
      ['Authorization', authorization],
      ...(proof === undefined ? [] : [['DPoP', proof] as const]),
    ])
  const user = json('{"sub":"x"}')
  t.equal(faultOfRights(access('DPoP lyc_access_b', 'p.3.x'), user, world), undefined, 'a bound token')
  const users = get('/api/admin/v1/users', [['Authorization', 'Bearer lyc_access_a']])
  t.equal(
    faultOfRights(users, json('{"items":[]}'), world),
    undefined,
    'users for a client that may read them',
  )
  const byDelegate: Sent['headers'] = [['Authorization', `Bearer ${world.delegate.token}`]]
  t.equal(
    faultOfRights(get('/api/admin/v1/users', byDelegate), json(`["${world.delegate.memberId}"]`), world),
    undefined,
    'members for an administrator of their group',
  )
  const document = (name: string) =>
    get(`/oauth/authorize?client_id=${encodeURIComponent(`${world.site.origin}/${name}`)}`)
  world.site.usable.add(`${world.site.origin}/right`)
  const begun = to('/login?interaction=aaaaaaaaaaaaaaaaaaaaaa')
  t.equal(faultOfRights(document('right'), begun, world), undefined, 'a document that can be used')
  const { requester } = world
  const inside = {
    clientId: requester.id,
    redirectUri: requester.redirectUri,
    state: 'in',
    verifier: undefined,
  }
  requester.good.set('r.1.x', inside)
  const signed = (object: string, client = requester.id, beside = '') =>
    get(`/oauth/authorize?client_id=${client}&request=${object}${beside}`, signedIn.headers)
  const codeAt = (state: string) => to(`${requester.redirectUri}?code=x&state=${state}&${iss}`)
  t.equal(faultOfRights(signed('r.1.x'), begun, world), undefined, 'a request object that can be used')
  t.equal(
    faultOfRights(signed('r.1.x', requester.id, '&state=out'), codeAt('in'), world),
    undefined,
    'its state',
  )
  const registering = (token: string) =>
    post('/api/oauth/register', '{}', [['Authorization', `Bearer ${token}`]])
  const registered: HttpResponse = { ...json('{"redirect_uris":["https://a.example/"]}'), status: 201 }
  world.admission.usesLeft = 1
  t.equal(faultOfRights(registering(world.admission.token), registered, world), undefined, 'admitted')
  const wrong: Readonly<Record<string, readonly [Sent, HttpResponse]>> = {
    'a document with a fault': [document('wrong'), begun],
    'a pushed request by a document with a fault': [
      post('/api/oauth/par', `client_id=${world.site.origin}/wrong`),
      { ...json('{"request_uri":"x"}'), status: 201 },
    ],
    'a request object with a fault': [signed('r.2.x'), begun],
    'a request object of another client': [signed('r.1.x', 'client_1'), begun],
    'a code for a request object with a fault': [signed('r.2.x', requester.id, '&state=out'), codeAt('out')],
    'a state beside a request object': [signed('r.1.x', requester.id, '&state=out'), codeAt('out')],
    'a pushed request object with a fault': [
      post('/api/oauth/par', `client_id=${requester.id}&request=r.2.x`),
      { ...json('{"request_uri":"x"}'), status: 201 },
    ],
    'https redirects without an initial access token': [registering('x'), registered],
    'an initial access token once more': [registering(world.admission.token), registered],
    'tokens for the same device again': [byDevice('lyc_device_4'), tokens],
    'tokens for a device that nobody approved': [byDevice('lyc_device_2'), tokens],
    'tokens for the device of another client': [byDevice('lyc_device_1', 'client_2'), tokens],
    'tokens for a device without its verifier': [byDevice('lyc_device_3'), tokens],
    'a device for a client that may have none': [
      post('/oauth/device_authorization', 'client_id=client_1'),
      json('{"device_code":"x"}'),
    ],
    'bound tokens without a proof': [proven(byBound), bound],
    'bound tokens with a proof that was used': [proven(byBound, 'p.1.used'), bound],
    'bound tokens with a faulty proof': [proven(byBound, 'p.0.x'), bound],
    'tokens that ignore a proof': [proven(refreshBy('lyc_refresh_1').body.toString(), 'p.1.x'), tokens],
    'tokens by a refresh token without its key': [proven(byBound), tokens],
    'tokens by a refresh token with another key': [proven(byBound, 'p.2.x'), bound],
    'tokens by a code with another key': [
      proven('grant_type=authorization_code&code=lyc_code_b&client_id=client_1', 'p.2.x'),
      bound,
    ],
    'tokens without a key for a client that must have one': [
      proven('grant_type=client_credentials&client_id=client_4'),
      machine,
    ],
    'a bound token as a bearer token': [access('Bearer lyc_access_b', 'p.3.x'), user],
    'a bound token without a proof': [access('DPoP lyc_access_b'), user],
    'a bound token with the proof of another request': [access('DPoP lyc_access_b', 'p.5.x'), user],
    'a bound token with the proof for another token': [access('DPoP lyc_access_b', 'p.4.x'), user],
    'a token that is not bound as one that is': [access('DPoP lyc_access_1', 'p.4.x'), user],
    'clients for a client that may read users': [get('/api/admin/v1/clients', users.headers), json('{}')],
    'settings for a client that may read users': [get('/api/admin/v1/settings', users.headers), json('{}')],
    'a user that an administrator of a group cannot see': [
      get('/api/admin/v1/users?search=c', byDelegate),
      json(`{"items":[{"sub":"${world.delegate.hidden[1]}"}]}`),
    ],
    'the audit log for an administrator of a group': [get('/api/admin/v1/audit', byDelegate), json('{}')],
    'links for an administrator of a group': [get('/api/admin/v1/users/x/links', byDelegate), json('{}')],
    'a secret among settings': [
      get('/api/admin/v1/settings', users.headers),
      json(JSON.stringify({ value: world.secrets[0] })),
    ],
    'a change by a client that may read': [
      { ...users, method: 'POST' },
      { ...json('{}'), status: 201 },
    ],
    'a pushed request without the secret': [
      post('/api/oauth/par', 'client_id=client_3'),
      { ...json('{"request_uri":"x"}'), status: 201 },
    ],
    'the same code again': [token, tokens],
    'the same assertion again': [assert('a.b.c'), machine],
    'an assertion with a fault': [assert('a.d.c'), machine],
    'the client that signs, without an assertion': [
      post(token.target, `grant_type=client_credentials&client_id=${world.signer.id}`),
      machine,
    ],
    'tokens for another client': [
      post(token.target, 'grant_type=authorization_code&code=lyc_code_1&client_id=client_2'),
      tokens,
    ],
    'tokens for a confidential client that is not named': [refreshBy('lyc_refresh_3'), tokens],
    'a code without a client': [post(token.target, 'grant_type=authorization_code&code=lyc_code_1'), tokens],
    'a token without a user for a public client': [
      post(token.target, 'grant_type=client_credentials&client_id=client_1'),
      tokens,
    ],
    'a code for no request': [asked, to(`http://127.0.0.1:5/cb?code=x&state=s&${iss}`)],
    'another port than asked': [signedIn, to(`http://127.0.0.1:6/cb?code=x&state=s&${iss}`)],
    'another host': [signedIn, to(`http://evil.example/cb?code=x&state=s&${iss}`)],
    'another state': [signedIn, to(`http://127.0.0.1:5/cb?code=x&state=t&${iss}`)],
    'no iss': [signedIn, to('http://127.0.0.1:5/cb?code=x&state=s')],
    'a redirect to another server': [get('/login'), to('//evil.example/')],
    'a 302': [signedIn, { ...to(`http://127.0.0.1:5/cb?code=x&state=s&${iss}`), status: 302 }],
    'tokens without the secret': [
      post(token.target, 'grant_type=refresh_token&client_id=client_3&client_secret=x'),
      tokens,
    ],
    'a code by a form that was not shown': [
      post('/consent', 'interaction=i&csrf=x&decision=approve', [['Cookie', sessionCookie]]),
      to(`http://127.0.0.1:5/cb?code=x&state=s&${iss}`),
    ],
    'a registration read without its token': [get('/api/oauth/register/client_1'), json('{}')],
    'access with no such token': [
      get('/api/oauth/userinfo', [['Authorization', 'Bearer lyc_access_2']]),
      json('{"sub":"x"}'),
    ],
    "a look at another client's token": [
      post('/api/oauth/introspect', 'token=lyc_access_1&client_id=client_2'),
      json('{"active":true}'),
    ],
  }
  for (const [about, [sent, response]] of Object.entries(wrong))
    t.ok(faultOfRights(sent, response, world), about)
})

t.test('the command prints its options, and rejects what is no number', patient, async (t) => {
  const script = fileURLToPath(new URL('../../scripts/fuzz.ts', import.meta.url))
  const run = (...given: string[]) => spawnSync(process.execPath, [script, ...given], { encoding: 'utf8' })
  const done = run('--seed', '5', '--requests', '50')
  t.match(
    done,
    { status: 0, stdout: /^seed 5, 50 requests\n[\s\S]*\n50 requests, each with a well-formed response/ },
    done.stderr,
  )
  t.match(run('--seed', 'x'), {
    status: 64,
    stderr: /'--seed <number>' argument 'x' is invalid. It must be a whole number/,
  })
})
