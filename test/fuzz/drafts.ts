import { assertionType } from '../../src/specs/rfc7523-client-assertions/rules/assertion.ts'
import { administer } from './administration.ts'
import { makeAssertion, wrongRequests } from './assertions.ts'
import { byClient, clientFor, resources } from './by-client.ts'
import { deviceDrafts, typedCode, usualDecision } from './devices.ts'
import type { Dice } from './dice.ts'
import { nearlyDocument, publishDocument } from './documents.ts'
import { register } from './initial-tokens.ts'
import { metadata } from './metadata.ts'
import { proveDraft } from './proofs.ts'
import { bearer, type Draft, type Pair } from './request.ts'
import { signFields } from './request-objects.ts'
import { liveValue, markup, verifierOf } from './values.ts'
import { addClient, type LiveClient, type LiveTokens, passwords, type World } from './world.ts'

/** The intents of requests, by weight. */
const intents = {
  authorize: 18,
  publish: 2,
  follow: 14,
  response: 16,
  exchange: 10,
  refresh: 6,
  machine: 5,
  assert: 4,
  push: 3,
  startDevice: 4,
  openDevice: 5,
  pollDevice: 4,
  administer: 8,
  revoke: 3,
  introspect: 6,
  userinfo: 5,
  api: 6,
  register: 4,
  configure: 5,
  logout: 3,
  document: 4,
  nowhere: 3,
}

const areas = ['courses', 'orders', 'account', 'storage', 'comments'] as const
const documents = [
  '/.well-known/oauth-authorization-server',
  '/.well-known/openid-configuration',
  '/.well-known/oauth-protected-resource',
  '/api/oauth/jwks',
  '/openapi.json',
  '/assets/style.css',
  '/assets/icon.svg',
  '/assets/form-post.js',
  '/livez',
  '/readyz',
  '/',
] as const
const nowhere = [
  '/nowhere',
  '/api',
  '/api/oauth',
  '/.well-known/',
  '/assets/',
  '/favicon.ico',
  '//',
  '/*',
] as const
const plain = { query: [], headers: [] } as const

/** A request that the server may well grant: correct names, valid values, in the right place. */
export function draftRequest(world: World, dice: Dice): Draft {
  const intent = dice.weighted(intents)
  return proveDraft(drafts[intent](world, dice) ?? authorize(world, dice), world, dice)
}

const drafts: Readonly<Record<keyof typeof intents, (world: World, dice: Dice) => Draft | undefined>> = {
  ...deviceDrafts,
  administer,
  authorize,
  publish: (world, dice) => {
    const client = publishDocument(world, dice)
    if (world.site.usable.has(client.id)) addClient(world, client)
    const id = dice.oneIn(3) ? nearlyDocument(client, dice) : client.id
    return authorize(world, dice, { ...client, id })
  },
  push: (world, dice) => {
    const { form, query } = authorize(world, dice)
    const fields = form ?? query
    const id = fields.find(([name]) => name === 'client_id')?.[1]
    const client = clientFor({ clientId: id ?? '' }, world, dice)
    const others = fields.filter(([name]) => name !== 'client_id')
    return client && byClient(client, '/api/oauth/par', others)
  },
  follow: (world, dice) => {
    const step = world.steps.splice(dice.below(world.steps.length), 1)[0]
    if (step === undefined) return undefined
    const { pathname, searchParams } = new URL(step.target, world.issuer)
    return { method: 'GET', path: pathname, query: [...searchParams], headers: [], browser: step.browser }
  },
  response: (world, dice) => {
    // Mostly the newest page once; sometimes an old one again.
    const page = dice.oneIn(4) ? dice.draw(world.pages) : world.pages.pop()
    if (page === undefined) return undefined
    const { browser, path, fields, decisions } = page
    const kept = fields.filter(([name]) => name !== 'scope' || !dice.oneIn(4))
    const username = dice.weighted({ bob: 40, carol: 20, alice: 2, nobody: 2 })
    const isRight = username !== 'alice' && username !== 'nobody' && !dice.oneIn(5)
    const password = isRight ? passwords[username] : 'wrong-password'
    const said: Pair[] =
      path === '/login' && decisions.length === 0
        ? [
            ['username', username === 'nobody' ? dice.pick(markup) : username],
            ['password', password],
          ]
        : path === '/device'
          ? [['user_code', typedCode(world, dice)]]
          : [['decision', dice.oneIn(5) ? (dice.draw(decisions) ?? 'x') : usualDecision(path, decisions)]]
    return { method: 'POST', path, query: [], headers: [], form: [...kept, ...said], browser }
  },
  exchange: (world, dice) => {
    // A used code ends its grant, so mostly a fresh one.
    const fresh = world.codes.filter(({ code }) => !world.redeemed.has(code))
    const code = dice.draw(dice.oneIn(8) ? world.codes : fresh)
    const client = code && clientFor(code, world, dice)
    if (code === undefined || client === undefined) return undefined
    const fields: Pair[] = [
      ['grant_type', 'authorization_code'],
      ['code', code.code],
      ...(code.redirectUri === undefined ? [] : [['redirect_uri', code.redirectUri] as const]),
      ...(code.verifier === undefined ? [] : [['code_verifier', code.verifier] as const]),
    ]
    return byClient(client, '/api/oauth/token', fields)
  },
  refresh: (world, dice) => {
    const tokens = latestTokens(world, dice)
    const client = tokens && clientFor(tokens, world, dice)
    if (tokens?.refresh === undefined || client === undefined) return undefined
    const scope: Pair[] = dice.oneIn(4)
      ? [['scope', dice.pick(['openid', 'courses:read', 'openid email'])]]
      : []
    const fields: Pair[] = [['grant_type', 'refresh_token'], ['refresh_token', tokens.refresh], ...scope]
    return byClient(client, '/api/oauth/token', [...fields, ...resources(world, dice)])
  },
  machine: (world, dice) => {
    const client = dice.draw(world.clients.filter(({ isMachine }) => isMachine || dice.oneIn(8)))
    const scope = dice.pick(['courses:read', 'courses:read orders:read', 'openid', 'courses:write'])
    const fields: Pair[] = [
      ['grant_type', 'client_credentials'],
      ...(dice.oneIn(2) ? [['scope', scope] as const] : []),
      ...resources(world, dice),
    ]
    return client && byClient(client, '/api/oauth/token', fields)
  },
  assert: (world, dice) => {
    const { token } = tokenAndClient(world, dice)
    const [path, fields] = dice.pick([
      ['/api/oauth/token', [['grant_type', 'client_credentials']]],
      ['/api/oauth/token', [['grant_type', 'client_credentials']]],
      ['/api/oauth/introspect', [['token', token]]],
      ['/api/oauth/revoke', [['token', token]]],
    ] as const)
    const id: Pair[] = dice.oneIn(3) ? [['client_id', world.signer.id]] : []
    const proof: Pair[] = [
      ['client_assertion_type', assertionType],
      ['client_assertion', makeAssertion(world, dice)],
    ]
    return { ...plain, method: 'POST', path, form: [...fields, ...id, ...proof] }
  },
  revoke: (world, dice) => {
    const { token, client } = tokenAndClient(world, dice)
    return client && byClient(client, '/api/oauth/revoke', [['token', token]])
  },
  introspect: (world, dice) => {
    const { token, client } = tokenAndClient(world, dice)
    const hint: Pair[] = dice.oneIn(3) ? [['token_type_hint', 'refresh_token']] : []
    return client && byClient(client, '/api/oauth/introspect', [['token', token], ...hint])
  },
  userinfo: (world, dice) => {
    const path = '/api/oauth/userinfo'
    const access = latestTokens(world, dice)?.access ?? liveValue(world, dice)
    if (dice.oneIn(4)) return { ...plain, method: 'POST', path, form: [['access_token', access]] }
    return { method: dice.pick(['GET', 'POST']), path, query: [], headers: [bearer(access)] }
  },
  api: (world, dice) => {
    const access = latestTokens(world, dice)?.access
    return {
      method: dice.pick(['GET', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
      path: `/api/${dice.pick(areas)}`,
      query: [],
      headers: access === undefined || dice.oneIn(6) ? [] : [bearer(access)],
    }
  },
  register,
  configure: (world, dice) => {
    const client = dice.draw(world.clients.filter(({ registrationToken }) => registrationToken))
    if (client?.registrationToken === undefined) return undefined
    const method = dice.weighted({ GET: 6, PUT: 6, DELETE: 1 })
    const json = { client_id: client.id, ...metadata(dice), token_endpoint_auth_method: undefined }
    // Sometimes a value of another owner, such as the canary.
    const id = dice.oneIn(6) ? (dice.draw([...world.registrations.keys()]) ?? '') : client.id
    const path = `/api/oauth/register/${id}`
    return {
      method,
      path,
      query: [],
      headers: [bearer(client.registrationToken)],
      ...(method === 'PUT' && { json }),
    }
  },
  logout: (world, dice) => {
    const client = dice.draw(world.clients)
    const idToken = dice.draw(world.tokens)?.idToken
    const query: Pair[] = [
      ...(idToken !== undefined && dice.oneIn(2) ? [['id_token_hint', idToken] as const] : []),
      ...(client && dice.oneIn(2) ? [['client_id', client.id] as const] : []),
      ['post_logout_redirect_uri', dice.pick(['https://client.example/bye', 'http://127.0.0.1:9/bye'])],
      ['state', 'bye'],
    ]
    const some = dice.oneIn(2) ? dice.some(query) : query
    const browser = dice.draw(world.browsers)
    const from = { path: '/oauth/logout', ...(browser && { browser }) }
    return dice.oneIn(2)
      ? { ...plain, ...from, method: 'GET', query: some }
      : { ...plain, ...from, method: 'POST', form: some }
  },
  document: (_world, dice) => ({
    ...plain,
    method: dice.pick(['GET', 'GET', 'HEAD']),
    path: dice.pick(documents),
  }),
  nowhere: (_world, dice) => ({
    ...plain,
    method: dice.pick(['GET', 'POST', 'PUT']),
    path: dice.pick(nowhere),
  }),
}

function authorize(world: World, dice: Dice, known?: LiveClient): Draft {
  const [requestUri, pushed] =
    known === undefined && dice.oneIn(12) ? (dice.draw([...world.pushed]) ?? []) : []
  if (requestUri !== undefined && pushed !== undefined) {
    const browser = dice.draw(world.browsers)
    const query: Pair[] = [
      ['client_id', pushed.clientId],
      ['request_uri', requestUri],
    ]
    return { method: 'GET', path: '/oauth/authorize', query, headers: [], ...(browser && { browser }) }
  }
  const client = known ?? dice.draw(world.clients.filter(({ redirectUris }) => redirectUris.length > 0))
  const redirectUri = dice.draw(client?.redirectUris ?? [])
  const challenge = dice.draw([...verifierOf.keys()]) ?? ''
  const optional: Pair[] = [
    ['nonce', 'n-0S6_WzA2Mj'],
    ['prompt', dice.pick(['none', 'login', 'consent', 'select_account', 'login consent'])],
    ['max_age', dice.pick(['0', '1', '10000'])],
    ['claims', '{"userinfo":{"name":{"essential":true}},"id_token":{"auth_time":null,"email":null}}'],
    ['response_mode', dice.pick(['query', 'form_post'])],
    ['login_hint', dice.pick(['bob', ...markup])],
    ['ui_locales', 'se'],
    ['dpop_jkt', dice.draw([...world.prover.keys.keys()]) ?? ''],
    dice.pick([['display', 'popup'], ...wrongRequests(world, dice)]),
    ['id_token_hint', dice.draw(world.tokens)?.idToken ?? ''],
  ]
  const fields: Pair[] = [
    ['response_type', 'code'],
    ['client_id', client?.id ?? ''],
    ['redirect_uri', anotherPort(redirectUri ?? '', dice)],
    [
      'scope',
      dice.pick(['openid', 'openid profile email', 'courses:read', 'openid courses:read courses:write']),
    ],
    ['state', `state-${dice.below(1_000_000)}`],
    ['code_challenge', challenge],
    ['code_challenge_method', 'S256'],
    ...optional.filter(() => dice.oneIn(8)),
    ...resources(world, dice),
  ]
  const browser = dice.draw(world.browsers)
  const from = { path: '/oauth/authorize', ...(browser && { browser }) }
  const sent = known === undefined && dice.oneIn(10) ? signFields(fields, world, dice) : fields
  return dice.oneIn(5)
    ? { ...plain, ...from, method: 'POST', form: sent }
    : { ...plain, ...from, method: 'GET', query: sent }
}

function tokenAndClient(
  world: World,
  dice: Dice,
): { readonly token: string; readonly client: LiveClient | undefined } {
  const tokens = latestTokens(world, dice)
  const token = dice.oneIn(2) ? tokens?.access : tokens?.refresh
  const client = dice.oneIn(4)
    ? dice.draw(world.clients)
    : world.clients.find(({ id }) => id === tokens?.clientId)
  return { token: token ?? liveValue(world, dice), client }
}

/** Mostly still valid. */
function latestTokens(world: World, dice: Dice): LiveTokens | undefined {
  return dice.oneIn(4) ? dice.draw(world.tokens) : world.tokens.at(-1 - dice.below(3))
}

/** RFC 8252 §7.3: the port of a loopback redirect is free. */
function anotherPort(uri: string, dice: Dice): string {
  const [whole, host, rest] = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]))(?::\d+)?(\/.*)$/.exec(uri) ?? []
  return whole === undefined || dice.oneIn(2) ? uri : `${host}:${1 + dice.below(65_535)}${rest}`
}
