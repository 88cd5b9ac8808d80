import t from 'tap'
import type { Client } from '../../src/domain/model.ts'
import { parseParameters } from '../../src/domain/parameters.ts'
import { parseLogoutRequest } from '../../src/oidc-logout/rules.ts'
import { integration, publicClient } from '../helpers/samples.ts'

const uri = 'https://app.example/out'
const client: Client = { ...integration, postLogoutRedirectUris: [uri] }
const hinted = { sub: 'alice', aud: client.id }
const hint = 'id_token_hint=eyJ'
const to = (text: string) => `post_logout_redirect_uri=${encodeURIComponent(text)}`
const parse = (query: string, claims?: Record<string, unknown>, of?: Client) =>
  parseLogoutRequest(parseParameters(query, { parameters: 100, parameterBytes: 8192 }), claims, of)

t.test('a request without a redirect asks to sign out', async (t) => {
  t.strictSame(parse(''), {})
  t.strictSame(parse('state=s'), { state: 's' })
  t.strictSame(parse(hint, hinted, client), { sub: 'alice', client })
  t.strictSame(parse(hint, { aud: client.id, sub: 5 }, client), { client })
})

t.test('a registered redirect of the hinted client is accepted', async (t) => {
  t.strictSame(parse(`${hint}&${to(uri)}&state=s`, hinted, client), {
    sub: 'alice',
    client,
    redirectUri: uri,
    state: 's',
  })
  const native = { ...publicClient, postLogoutRedirectUris: ['http://127.0.0.1/out'] }
  const anyPort = 'http://127.0.0.1:5/out'
  t.match(parse(`${hint}&${to(anyPort)}`, { aud: native.id }, native), { redirectUri: anyPort })
})

t.test('any other request is rejected', async (t) => {
  const rows: [string, Record<string, unknown> | undefined, Client | undefined][] = [
    [hint, undefined, client],
    [`${hint}&client_id=another`, hinted, client],
    [to(uri), undefined, undefined],
    [`client_id=${client.id}&${to(uri)}`, undefined, client],
    [`${hint}&${to(uri)}`, hinted, undefined],
    [`${hint}&${to(`${uri}?x=1`)}`, hinted, client],
    [`${hint}&${to(`${uri}/`)}`, hinted, client],
    [`${hint}&${to('https://evil.example')}`, hinted, client],
    [`${hint}&${to(client.redirectUris[0] ?? '')}`, hinted, client],
    [`${hint}&${to(uri)}&${to(uri)}`, hinted, client],
    [`${hint}&state=a&state=b`, hinted, client],
  ]
  for (const [query, claims, of] of rows) {
    t.throws(() => parse(query, claims, of), { code: 'invalid_request' }, query)
  }
})
