import t from 'tap'
import { startServer } from '../helpers/server.ts'

const { app } = await startServer(t)

t.test('a CSRF token is valid for one browser, one purpose and one request', async (t) => {
  const token = app.browser.csrfToken('a browser secret', 'login', 'a request')
  t.equal(app.browser.csrfToken('a browser secret', 'login', 'a request'), token)
  for (const other of [
    ['another browser secret', 'login', 'a request'],
    ['a browser secret', 'consent', 'a request'],
    ['a browser secret', 'login', 'another request'],
    ['a browser secret', 'login'],
    ['a browser secret', 'login', 'a request', 'a session'],
  ] as const) {
    const [secret, ...purpose] = other
    t.not(app.browser.csrfToken(secret, ...purpose), token, other.join(', '))
  }
})
