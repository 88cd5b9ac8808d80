import { createServer, type Server } from 'node:http'
import type { TestClient } from './flow.ts'
import { freePort } from './free-port.ts'
import type { Json } from './wire.ts'

/** How a document is sent; a test may change it at any time. */
export interface Published {
  body: unknown
  status: number
  headers: Record<string, string>
  /** The text that is sent instead of the body as JSON. */
  text?: string | Buffer
  /** It never responds. */
  silent?: boolean
}

/** A stand-in for the web site of a client: it publishes metadata documents on loopback. */
export interface StandInDocuments {
  readonly origin: string
  readonly server: Server
  /** The paths of the requests, in order. */
  readonly requests: string[]
  /** Publishes a document at a new URL; returns the client, and what the test may change. */
  publish(members?: Json, at?: string): { readonly client: TestClient; readonly document: Published }
}

export const webRedirect = 'https://client.example/callback'

export async function startStandInDocuments(t: {
  teardown(end: () => unknown): unknown
}): Promise<StandInDocuments> {
  const origin = `http://127.0.0.1:${await freePort()}`
  const published = new Map<string, Published>()
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(request.url ?? '')
    const document = published.get(request.url ?? '')
    if (document?.silent) return
    // The clock of the server that fetches is not ours.
    response.sendDate = false
    const { status, headers, body, text } = document ?? { status: 404, headers: {}, body: {} }
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(text ?? JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(Number(new URL(origin).port), '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  let count = 0
  return {
    origin,
    server,
    requests,
    publish(members = {}, at) {
      count += 1
      const path = at ?? `/clients/${count}.json`
      const id = origin + path
      const redirectUris = (members['redirect_uris'] as string[] | undefined) ?? [webRedirect]
      const body = { client_id: id, client_name: 'Course Agent', redirect_uris: redirectUris, ...members }
      const document: Published = { body, status: 200, headers: {} }
      published.set(path, document)
      const [first = webRedirect] = redirectUris
      return { client: { id, method: 'none', redirectUri: first }, document }
    },
  }
}
