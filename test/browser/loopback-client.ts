import formbody from '@fastify/formbody'
import Fastify from 'fastify'
import { authorizationUrl, type Fields, register, type TestClient } from '../helpers/flow.ts'
import type { TestServer } from '../helpers/server.ts'

/** The part of tap's `t` that a teardown needs. */
interface Test {
  teardown(end: () => unknown): unknown
}

/** The parameters with which the browser returned. */
export interface Call {
  readonly method: string
  readonly parameters: Readonly<Record<string, string>>
}

/** A program on this computer that opens a browser and listens on a loopback port. */
export interface LoopbackClient extends TestClient {
  /** Every return of the browser so far. */
  readonly calls: readonly Call[]
  /** The URL to open; the state is `a-state` and the verifier 43 times `v`. */
  url(fields?: Fields): string
}

/**
 * Listens where the browser returns to. Playwright routes no redirect, so a test without a listener would send the browser
 * to a page of its own for a connection that failed, which may still arrive when the test has moved on.
 */
export async function listenForCallback(
  t: Test,
  { host = '127.0.0.1', port = 0 } = {},
): Promise<{ readonly redirectUri: string; readonly calls: readonly Call[] }> {
  const calls: Call[] = []
  const app = Fastify()
  await app.register(formbody)
  app.route({
    method: ['GET', 'POST'],
    url: '/callback',
    handler: async ({ method, query, body }, reply) => {
      calls.push({ method, parameters: { ...(query as object), ...(body as object) } })
      return reply
        .type('text/html')
        .send('<!doctype html><title>Back</title><h1>You may close this page</h1>')
    },
  })
  t.teardown(() => app.close())
  return { redirectUri: `${await app.listen({ port, host })}/callback`, calls }
}

/** Registers a client at the server, listening on this loopback address. */
export async function startLoopbackClient(
  t: Test,
  server: TestServer,
  { host = '127.0.0.1', name = 'Course Sync CLI' } = {},
): Promise<LoopbackClient> {
  const { redirectUri, calls } = await listenForCallback(t, { host })
  const client = await register(server, { client_name: name, redirect_uris: [redirectUri] })
  return {
    ...client,
    calls,
    url: (fields = {}) => authorizationUrl(server, client, { scope: 'openid profile', ...fields }),
  }
}
