/** A single-page application on another origin with oidc-client-ts and DPoP, RFC 9449, in a real browser. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import Fastify from 'fastify'
import type { User } from 'oidc-client-ts'
import t, { type Test } from 'tap'
import { launchBrowser } from '../helpers/chromium.ts'
import { startServer } from '../helpers/server.ts'
import { introspect } from '../helpers/wire.ts'
import { signIn, visit } from './visitor.ts'

const browser = await launchBrowser()
t.teardown(() => browser.close())
const files = {
  '/oidc-client-ts.js': new URL('../browser/oidc-client-ts.min.js', import.meta.resolve('oidc-client-ts')),
  '/app.js': new URL('single-page-app.js', import.meta.url),
}
const html = `<!doctype html><title>Course Board</title>${Object.keys(files)
  .map((path) => `<script src="${path}"></script>`)
  .join('')}`

/** Serves the same page with the application in it at every path. @returns Its origin. */
async function startApplication(t: Test): Promise<string> {
  const app = Fastify()
  for (const [path, url] of Object.entries(files)) {
    const script = readFileSync(fileURLToPath(url), 'utf8')
    app.get(path, (_request, reply) => reply.type('text/javascript').send(script))
  }
  app.get('/*', (_request, reply) => reply.type('text/html').send(html))
  t.teardown(() => app.close())
  return app.listen({ port: 0, host: '127.0.0.1' })
}

for (const nonce of ['off', 'always'] as const) {
  t.test(`an application signs a user in, calls, refreshes and revokes, nonce ${nonce}`, async (t) => {
    const server = await startServer(t, { dpop: { nonce } })
    const origin = await startApplication(t)
    const { page } = await visit(t, browser, `${origin}/`)
    const id = await page.evaluate<string>(`app.register('${server.issuer}')`)
    const client = { id, method: 'none', redirectUri: `${origin}/callback` }
    // The page is left before this is done.
    await page.evaluate('void app.manager.signinRedirect()')
    await signIn(page)
    await page.getByRole('button', { name: 'Allow', exact: true }).click()
    await page.waitForURL(`${origin}/callback?*`)

    const user = await page.evaluate<User>('app.manager.signinCallback()')
    t.match(user, { token_type: 'DPoP', profile: { iss: server.issuer, aud: id } })
    const { access_token: issued } = user
    const cnf = { jkt: /^[\w-]{43}$/ }
    t.match(await introspect(server, client, issued), { active: true, token_type: 'DPoP', cnf })

    const api = `${server.issuer}/api/courses`
    const call = (scheme: string) => page.evaluate(`app.call('${api}', '${scheme}')`)
    const served = { statuses: nonce === 'off' ? [200, 200] : [401, 200] }
    t.match(await call('DPoP'), served)
    t.match(await call('Bearer'), { statuses: [401, 401], challenge: /error="invalid_token"/ })

    const { access_token: next } = await page.evaluate<User>('app.manager.signinSilent()')
    t.not(next, issued)
    t.match(await introspect(server, client, next), { active: true, token_type: 'DPoP', cnf })
    t.match(await call('DPoP'), served)

    await page.evaluate('app.manager.revokeTokens()')
    t.strictSame(await introspect(server, client, next), { active: false })
    t.match(await call('DPoP'), { challenge: /error="invalid_token"/ })
  })
}
