import t from 'tap'
import { obtainTokens, post, register } from '../helpers/flow.ts'
import { faultOfRejection, send, sendBytes } from '../helpers/raw.ts'
import { startServer } from '../helpers/server.ts'

/* Faults that runs of `npm run fuzz` found, as plain requests. */

const server = await startServer(t)

t.test('an error before any route has the security headers too', async (t) => {
  for (const response of [
    await send(server, { path: '/consent%ff?interaction=x' }),
    await send(server, { path: '/api/oauth/token%', method: 'POST' }),
    await send(server, { path: '/livez', headers: [['X-Long', 'a'.repeat(20_000)]] }),
    await sendBytes(server, 'hello\r\n\r\n'),
  ]) {
    t.equal(faultOfRejection(response), undefined)
    t.equal(response.headers['x-content-type-options'], 'nosniff', response.text)
    t.equal(response.headers['content-security-policy'], "default-src 'none';frame-ancestors 'none'")
  }
})

t.test('an access token with a space around it is invalid, in a form too', async (t) => {
  const { access_token: token } = await obtainTokens(server, await register(server))
  for (const value of [`${token} `, ` ${token}`, `${token}\t`]) {
    const response = await post(server, '/api/oauth/userinfo', { access_token: value })
    t.equal(response.status, 401, JSON.stringify(value))
    t.match(response.headers.get('www-authenticate'), /^Bearer error="invalid_token"/)
  }
  t.equal((await post(server, '/api/oauth/userinfo', { access_token: token })).status, 200)
})
