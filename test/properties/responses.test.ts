import t from 'tap'
import { authorize, register } from '../helpers/flow.ts'
import { fc } from '../helpers/generated.ts'
import { startServer } from '../helpers/server.ts'

const server = await startServer(t)
const registered = [
  'http://127.0.0.1/cb',
  'http://127.0.0.1/cb?',
  'http://127.0.0.1/cb?tenant=a%20b&empty=&flag',
  'http://127.0.0.1/cb?x=%C3%A5&y=1+2&',
  'http://127.0.0.1/cb?a=b%26c=d&a=/?@:',
  "http://[::1]/~a;b=c/!$'()*,=?state2=%2B",
]
const client = await register(server, { redirect_uris: registered })

/** A form has no NUL, and lone surrogates have no encoding. */
const state = fc
  .oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }),
    fc.constantFrom(
      '&code=x',
      '=',
      '+',
      ' ',
      '%20',
      '#',
      '\r\nX: 1',
      '"><script>',
      '\u{1f600}',
      'x'.repeat(2000),
    ),
  )
  .filter((text) => !text.includes('\0') && text.isWellFormed())
const port = fc.constantFrom('', ':1', ':65535')

function withPort(uri: string, chosen: string): string {
  return uri.replace(/^http:\/\/(127\.0\.0\.1|\[::1\])/, (origin) => origin + chosen)
}

t.test(
  '[rfc6749-3.1.2-redirect-query-retained] [rfc6749-4.1.2.1-state-on-error] state and the query of any redirect URI are returned byte for byte',
  async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...registered), port, fc.option(state), async (uri, chosen, sent) => {
        const requested = withPort(uri, chosen)
        const fields = { redirect_uri: requested, prompt: 'none', state: sent ?? undefined }
        const response = await authorize(server, client, fields)
        const location = response.headers.get('location') ?? ''
        if (
          !location.startsWith(requested) ||
          location.split('?').length !== requested.split('?').length + (requested.includes('?') ? 0 : 1)
        )
          return false
        if (/[?&]&/.test(location.slice(requested.length - 1))) return false
        const before = [...new URL(requested).searchParams]
        const after = [...new URL(location).searchParams]
        const members = new Map(after.slice(before.length))
        return (
          JSON.stringify(after.slice(0, before.length)) === JSON.stringify(before) &&
          members.size === after.length - before.length &&
          members.get('state') === (sent ?? undefined) &&
          members.get('iss') === server.issuer &&
          members.get('error') === 'login_required' &&
          /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/.test(members.get('error_description') ?? '') &&
          members.size === (sent === null ? 3 : 4)
        )
      }),
      { numRuns: 300 },
    )
    t.pass()
  },
)

t.test('form_post carries the same members, escaped and with nothing else in the page', async (t) => {
  const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
  const decode = (html: string) =>
    html.replaceAll(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => entities[name] ?? '')
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...registered), state, async (uri, sent) => {
      const fields = { redirect_uri: uri, prompt: 'none', state: sent, response_mode: 'form_post' }
      const response = await authorize(server, client, fields)
      const html = await response.text()
      const inputs = [...html.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)]
      const members = new Map(inputs.map(([, name = '', value = '']) => [decode(name), decode(value)]))
      const action = decode(/<form method="post" action="([^"]*)"/.exec(html)?.[1] ?? '')
      return (
        response.status === 200 &&
        action === uri &&
        members.size === 4 &&
        members.get('state') === sent &&
        members.get('iss') === server.issuer &&
        members.get('error') === 'login_required' &&
        html.split('<script').length === 2 &&
        html.split('<input').length === 5
      )
    }),
    { numRuns: 150 },
  )
  t.pass()
})
