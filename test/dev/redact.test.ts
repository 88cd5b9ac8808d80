import fc from 'fast-check'
import t from 'tap'
import { showBody } from '../../src/dev/flows/message.ts'
import { redactForm, redactHeader, redactUrl } from '../../src/dev/flows/redact.ts'

const secret = 'correct-horse-battery'

t.test('a secret is marked by its kind everywhere', async (t) => {
  const code = `lyc_code_${'a'.repeat(90)}`
  for (const [shown, kind] of [
    [redactForm(`grant_type=authorization_code&code=${secret}&scope=openid`), 'code'],
    [redactForm(`code%5Fverifier=x&code_verifier=${secret}`), 'code-verifier'],
    [redactForm(`username=alice&password=correct%2Dhorse%2Dbattery`), 'password'],
    [redactUrl(`/callback?state=s&code=${code}#access_token=${secret}`), 'access-token'],
    [redactUrl(`/link/lyc_invitation_${'b'.repeat(43)}?ui_locales=de`), 'invitation'],
    [redactHeader('Authorization', `Bearer ${secret}`), 'credentials'],
    [
      redactHeader('Authorization', `Basic ${Buffer.from(`me:${secret}`).toString('base64')}`),
      'client-secret',
    ],
    [redactHeader('Cookie', `lychgate_session=${secret}; theme=dark`), 'cookie'],
    [redactHeader('Set-Cookie', `lychgate_session=${secret}; Path=/; HttpOnly`), 'cookie'],
    [redactHeader('Referer', `https://app.example/?code=${secret}`), 'code'],
    [showBody('application/json', JSON.stringify({ a: [{ client_secret: secret }] }))?.text, 'client-secret'],
    [showBody('text/plain', JSON.stringify({ refresh_token: secret }))?.text, 'refresh-token'],
    [showBody('application/json', `refresh_token=${secret}&client_id=c`)?.text, 'refresh-token'],
    [showBody('application/json', `{"refresh_token":"${secret}`)?.text, 'unreadable'],
  ] as const) {
    t.match(shown, new RegExp(`\\(${kind}~[0-9a-f]{6}\\)`))
    t.notMatch(shown, secret)
    t.notMatch(shown, /lyc_/)
  }
})

t.test('text without secrets is unchanged', async (t) => {
  const form = 'grant_type=refresh_token&scope=openid%20email&code_challenge=abc&token_type_hint=access_token'
  t.equal(redactForm(form), form)
  const url = '/oauth/authorize?response_type=code&state=af0ifjs&nonce=n-0S6&login_hint=alice'
  t.equal(redactUrl(url), url)
  t.equal(redactHeader('User-Agent', 'curl/8'), 'curl/8')
  t.equal(redactHeader('Set-Cookie', 'lychgate_session=; Max-Age=0'), 'lychgate_session=; Max-Age=0')
})

t.test('of a page only its title is kept, of other texts their size', async (t) => {
  const html = `<html><title>Sign in · School</title><input name="csrf" value="${secret}">`
  t.equal(showBody('text/html; charset=utf-8', html)?.text, 'page: Sign in · School')
  t.equal(showBody('text/plain', `a text with ${secret}`)?.text, '33 characters that are not shown')
})

t.test('a long body is truncated', async (t) => {
  const body = showBody('application/json', JSON.stringify({ name: 'x'.repeat(20_000) }))
  t.equal(body?.cut, true)
  t.equal(body?.text.length, 8192)
})

t.test('no spelling of its name lets a secret through a form, a URL or JSON', async (t) => {
  const names = fc.constantFrom(
    'code',
    'client_secret',
    'password',
    'new_password',
    'token',
    'id_token_hint',
    'otp',
  )
  const secrets = fc.string({ unit: 'binary', minLength: 12, maxLength: 40 }).map((text) => `S3CRET${text}`)
  fc.assert(
    fc.property(names, secrets, fc.boolean(), (name, value, plus) => {
      const encoded = encodeURIComponent(value.toWellFormed()).replaceAll('%20', plus ? '+' : '%20')
      const shown = [
        redactForm(`a=b&${name}=${encoded}&c=d`),
        redactUrl(`/p?${name}=${encoded}`),
        showBody('application/json', JSON.stringify({ [name]: value }))?.text ?? '',
      ]
      return shown.every((text) => !text.includes('S3CRET') && text.includes('~'))
    }),
    { numRuns: 300, seed: 7 },
  )
  t.pass('300 of them')
})
