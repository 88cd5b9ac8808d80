import t from 'tap'
import type { Client } from '../../src/domain/model.ts'
import { parseParameters } from '../../src/domain/parameters.ts'
import { parseLogoutRequest } from '../../src/specs/oidc-logout/rules.ts'
import { passedDuring } from '../helpers/checks.ts'
import { operatorClient, publicClient } from '../helpers/samples.ts'

const uri = 'https://app.example/out'
const client: Client = { ...operatorClient, postLogoutRedirectUris: [uri] }
const hinted = { sub: 'alice', aud: client.id }
const hint = 'id_token_hint=eyJ'
const to = (text: string) => `post_logout_redirect_uri=${encodeURIComponent(text)}`
const parse = (query: string, claims?: Record<string, unknown>, of?: Client) =>
  parseLogoutRequest(parseParameters(query, { parameters: 100, parameterBytes: 8192 }), claims, of)

t.test('a request without a redirect asks to sign out', async (t) => {
  t.strictSame(parse(''), { isHinted: false })
  t.strictSame(parse('state=s'), { state: 's', isHinted: false })
  t.strictSame(parse(hint, hinted, client), { sub: 'alice', client, isHinted: true })
  t.strictSame(parse(hint, { aud: client.id, sub: 5 }, client), { client, isHinted: true })
})

t.test('a registered redirect of the hinted client is accepted', async (t) => {
  t.strictSame(parse(`${hint}&${to(uri)}&state=s`, hinted, client), {
    sub: 'alice',
    client,
    redirectUri: uri,
    state: 's',
    isHinted: true,
  })
  t.strictSame(
    parse(`client_id=${client.id}&${to(uri)}`, undefined, client),
    { client, redirectUri: uri, isHinted: false },
    'without an ID Token the user has to agree',
  )
  const native = { ...publicClient, postLogoutRedirectUris: ['http://127.0.0.1/out'] }
  const anyPort = 'http://127.0.0.1:5/out'
  t.match(parse(`${hint}&${to(anyPort)}`, { aud: native.id }, native), { redirectUri: anyPort })
  const both = { ...client, postLogoutRedirectUris: ['https://app.example/first', uri] }
  const named = `${hint}&client_id=${client.id}&${to(uri)}`
  t.match(parse(named, hinted, both), { redirectUri: uri })
  t.strictSame(
    passedDuring(() => void parse(named, hinted, both)).map(({ rule, found }) => [rule, found]),
    [
      ['oidc-rpl-2-hint-validated', 'id_token_hint is absent or an ID Token of this server'],
      ['oidc-rpl-2-client-id-match', 'client_id agrees with id_token_hint'],
      ['oidc-rpl-3-no-hint-no-redirect', 'client_id or id_token_hint names the client'],
      ['oidc-rpl-3-registered-redirect', 'post_logout_redirect_uri is registered'],
    ],
  )
  t.strictSame(
    parse('client_id=another'),
    { isHinted: false },
    'without a hint there is nothing to agree with',
  )
})

const rejections = {
  'oidc-rpl-2-hint-validated': 'id_token_hint is not an ID Token of this server',
  'oidc-rpl-2-client-id-match': 'client_id is not the client of id_token_hint',
  'oidc-rpl-3-no-hint-no-redirect':
    'post_logout_redirect_uri needs the client_id of a known client, or an id_token_hint',
  'oidc-rpl-3-registered-redirect':
    'post_logout_redirect_uri is not registered for this client (lychgate client set --post-logout-redirect-uri)',
}

t.test('what is not valid is not used, and its rule is returned', async (t) => {
  const anyPort = 'http://127.0.0.1:5/out'
  const ofWeb: Client = { ...client, postLogoutRedirectUris: ['http://127.0.0.1/out'] }
  const rows: [string, Record<string, unknown> | undefined, Client | undefined, keyof typeof rejections][] = [
    [hint, undefined, client, 'oidc-rpl-2-hint-validated'],
    [`${hint}&client_id=another`, hinted, client, 'oidc-rpl-2-client-id-match'],
    [`${hint}&client_id=another`, { sub: 'alice' }, client, 'oidc-rpl-2-client-id-match'],
    [to(uri), undefined, undefined, 'oidc-rpl-3-no-hint-no-redirect'],
    [`client_id=unknown&${to(uri)}`, undefined, undefined, 'oidc-rpl-3-no-hint-no-redirect'],
    [`${hint}&${to(uri)}`, hinted, undefined, 'oidc-rpl-3-no-hint-no-redirect'],
    [`${hint}&${to(`${uri}?x=1`)}`, hinted, client, 'oidc-rpl-3-registered-redirect'],
    [`${hint}&${to(`${uri}/`)}`, hinted, client, 'oidc-rpl-3-registered-redirect'],
    [`${hint}&${to('https://evil.example')}`, hinted, client, 'oidc-rpl-3-registered-redirect'],
    [`${hint}&${to(client.redirectUris[0] ?? '')}`, hinted, client, 'oidc-rpl-3-registered-redirect'],
    [`${hint}&${to(anyPort)}`, hinted, ofWeb, 'oidc-rpl-3-registered-redirect'],
  ]
  for (const [query, claims, of, rule] of rows) {
    const { fault, redirectUri, ...rest } = parse(query, claims, of)
    t.match(fault, { code: 'invalid_request', message: rejections[rule], detail: { rule } }, query)
    t.equal(redirectUri, undefined, query)
    if (rule === 'oidc-rpl-2-client-id-match') t.strictSame(rest, { isHinted: false }, 'neither is used')
  }
  const lost = parse(`${hint}&client_id=${client.id}&${to(uri)}`, undefined, client)
  t.match(lost, { client, redirectUri: uri, isHinted: false }, 'an unusable hint counts as none')
  t.equal(lost.sub, undefined)
  t.equal(lost.fault?.detail.rule, 'oidc-rpl-2-hint-validated')
  for (const [query, name] of [
    [`${hint}&${to(uri)}&${to(uri)}`, 'post_logout_redirect_uri'],
    [`${hint}&state=a&state=b`, 'state'],
    [`${hint}&${hint}`, 'id_token_hint'],
    [`${hint}&client_id=a&client_id=a`, 'client_id'],
  ] as const) {
    const message = `${name} must not be repeated`
    t.throws(() => parse(query, hinted, client), { code: 'invalid_request', message }, query)
  }
})
