/** Behaviour of pages that only a real browser shows. */

import formbody from '@fastify/formbody'
import Fastify, { type FastifyInstance } from 'fastify'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { pages } from '../../src/pages/pages.ts'
import { launchBrowser } from '../helpers/chromium.ts'
import { ordinary } from '../pages/samples/pages.ts'
import { sampleConfig } from '../pages/samples/read-page.ts'

const browser = await launchBrowser()
t.teardown(() => browser.close())

/** A client's loopback listener, which shows how it was called. */
async function listenAsClient(t: Test, host: string): Promise<string> {
  const client = Fastify()
  await client.register(formbody)
  client.route({
    method: ['GET', 'POST'],
    url: '/callback',
    handler: async (request) => ({ method: request.method, query: request.query, body: request.body ?? {} }),
  })
  t.teardown(() => client.close())
  return `${await client.listen({ port: 0, host })}/callback`
}

interface Posted {
  readonly body: unknown
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

/** A server whose consent page redirects to the client after its POST. */
async function listenAsServer(
  t: Test,
  redirectUri: string,
  leadsToClient = true,
): Promise<{ address: string; posted: Posted[] }> {
  const posted: Posted[] = []
  const app: FastifyInstance = Fastify()
  await app.register(formbody)
  await app.register(pages, { config: sampleConfig, prefix: '' })
  app.addHook('onRequest', async (request) => {
    request.leadsToClient = leadsToClient
  })
  app.get('/consent', async (_request, reply) => reply.page('consent', ordinary.consent.model))
  app.post('/consent', async (request, reply) => {
    posted.push({ body: request.body, headers: request.headers })
    return reply.redirect(`${redirectUri}?code=abc`, 303)
  })
  app.get('/form-post', async (_request, reply) => {
    const model = { redirectUri, redirectHost: 'client', members: [{ name: 'code', value: 'a"b&c' }] }
    return reply.page('form-post', model)
  })
  t.teardown(() => app.close())
  return { address: await app.listen({ port: 0, host: '127.0.0.1' }), posted }
}

async function open(t: Test, address: string, javaScriptEnabled = false): Promise<Page> {
  const context = await browser.newContext({ javaScriptEnabled })
  t.teardown(() => context.close())
  const page = await context.newPage()
  await page.goto(address)
  return page
}

for (const host of ['127.0.0.1', '::1']) {
  t.test(`the redirect after the consent POST reaches a client on ${host}`, async (t) => {
    const redirectUri = await listenAsClient(t, host)
    const { address } = await listenAsServer(t, redirectUri)
    const page = await open(t, `${address}/consent`)
    await page.getByRole('button', { name: 'Allow', exact: true }).click()
    await page.waitForURL(`${redirectUri}?code=abc`)
  })

  t.test(`the form_post page posts itself to a client on ${host}`, async (t) => {
    const redirectUri = await listenAsClient(t, host)
    const { address } = await listenAsServer(t, redirectUri)
    const page = await open(t, `${address}/form-post`, true)
    await page.waitForURL(redirectUri)
    t.match(await page.locator('body').textContent(), '"method":"POST"')
    t.match(await page.locator('body').textContent(), '"code":"a\\"b&c"')
  })
}

t.test('a page of no pending request leads nowhere but to this server', async (t) => {
  const redirectUri = await listenAsClient(t, '127.0.0.1')
  const { address } = await listenAsServer(t, redirectUri, false)
  const page = await open(t, `${address}/consent`)
  await page.getByRole('button', { name: 'Allow', exact: true }).click()
  await page.waitForTimeout(500)
  t.notOk(page.url().startsWith(redirectUri))
})

t.test('a form_post page waits for its button in a browser without script', async (t) => {
  const redirectUri = await listenAsClient(t, '127.0.0.1')
  const { address } = await listenAsServer(t, redirectUri)
  const page = await open(t, `${address}/form-post`)
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.waitForURL(redirectUri)
})

t.test('Enter in a checkbox of the consent page decides nothing', async (t) => {
  const redirectUri = await listenAsClient(t, '127.0.0.1')
  const { address, posted } = await listenAsServer(t, redirectUri)
  const page = await open(t, `${address}/consent`)
  await page.getByRole('checkbox', { name: 'Read: Courses' }).press('Enter')
  await page.waitForTimeout(500)
  t.equal(page.url(), `${address}/consent`)
  t.same(posted, [])
})

t.test('the consent form submits what is ticked, and the decision', async (t) => {
  const redirectUri = await listenAsClient(t, '127.0.0.1')
  const { address, posted } = await listenAsServer(t, redirectUri)
  const page = await open(t, `${address}/consent`)
  await page.getByRole('checkbox', { name: 'Change: Courses' }).uncheck()
  await page.getByRole('button', { name: 'Deny' }).click()
  await page.waitForURL(`${redirectUri}?code=abc`)
  t.same(posted[0]?.body, {
    interaction: 'lyi_3vQ8',
    csrf_token: 'nQ2Vd0',
    scope: [
      'profile',
      'courses:read',
      'students:read',
      'students:write',
      'orders:read',
      'coupons:read',
      'coupons:write',
      'storage:write',
    ],
    decision: 'deny',
  })
})

t.test(
  'a page without a referrer posts with Origin null, so only Sec-Fetch-Site identifies the site',
  async (t) => {
    const redirectUri = await listenAsClient(t, '127.0.0.1')
    const { address, posted } = await listenAsServer(t, redirectUri)
    const page = await open(t, `${address}/consent`)
    await page.getByRole('button', { name: 'Allow', exact: true }).click()
    await page.waitForURL(`${redirectUri}?code=abc`)
    t.match(posted[0]?.headers, { origin: 'null', 'sec-fetch-site': 'same-origin' })
  },
)
