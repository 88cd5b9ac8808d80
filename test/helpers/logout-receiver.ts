import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRemoteJWKSet, type JWTHeaderParameters, type JWTPayload, jwtVerify } from 'jose'
import type { Issuer, TestClient } from './flow.ts'

/** The part of tap's `t` that is used here. */
interface Test {
  teardown(end: () => unknown): unknown
}

/** A logout request as a client got it, OpenID Connect Back-Channel Logout §2.5. */
export interface LogoutRequest {
  readonly method: string
  readonly url: string
  readonly contentType: string
  readonly form: URLSearchParams
}

/** How the client responds: a status, or never, or by closing the connection. */
export type Conduct = number | 'redirect' | 'silent' | 'closed'

export interface LogoutReceiver {
  /** What a client registers. */
  readonly uri: string
  readonly requests: readonly LogoutRequest[]
  /** How it responds from now on. */
  conduct: Conduct
  /** The next request that was not waited for yet, waited for. */
  next(): Promise<LogoutRequest>
}

const eventType = 'http://schemas.openid.net/event/backchannel-logout'

/** The back-channel logout endpoint of a client: a web server on this computer. */
export async function startLogoutReceiver(t: Test, path = '/backchannel-logout'): Promise<LogoutReceiver> {
  const requests: LogoutRequest[] = []
  const waiting: (() => void)[] = []
  let seen = 0
  const server = createServer(async (request, response) => {
    requests.push(await read(request))
    respond(response, receiver.conduct)
    for (const wake of waiting.splice(0)) wake()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const receiver: LogoutReceiver = {
    uri: `http://127.0.0.1:${port}${path}`,
    requests,
    conduct: 200,
    next: async () => {
      seen += 1
      for (;;) {
        const request = requests[seen - 1]
        if (request !== undefined) return request
        await new Promise<void>((wake) => waiting.push(wake))
      }
    },
  }
  return receiver
}

async function read(request: IncomingMessage): Promise<LogoutRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const { method = '', url = '', headers } = request
  const form = new URLSearchParams(Buffer.concat(chunks).toString())
  return { method, url, contentType: headers['content-type'] ?? '', form }
}

function respond(response: ServerResponse, conduct: Conduct): void {
  if (conduct === 'silent') return
  if (conduct === 'closed') return void response.destroy()
  if (conduct === 'redirect') response.writeHead(302, { location: '/elsewhere' }).end()
  else response.writeHead(conduct, { 'cache-control': 'no-store' }).end()
}

/** Verifies a logout token as a client must, OpenID Connect Back-Channel Logout §2.6, with jose. */
export async function verifyLogoutToken(
  server: Issuer,
  client: TestClient,
  { form }: LogoutRequest,
  options: { readonly currentDate?: Date } = {},
): Promise<{ readonly header: JWTHeaderParameters; readonly claims: JWTPayload }> {
  const keys = createRemoteJWKSet(new URL(`${server.issuer}/api/oauth/jwks`))
  const { payload, protectedHeader } = await jwtVerify(form.get('logout_token') ?? '', keys, {
    issuer: server.issuer,
    audience: client.id,
    typ: 'logout+jwt',
    algorithms: ['RS256', 'ES256', 'EdDSA'],
    requiredClaims: ['iat', 'exp', 'jti', 'events'],
    ...options,
  })
  const { events, sub, sid, nonce } = payload
  if (typeof events !== 'object' || events === null || !(eventType in events)) throw new Error('no event')
  if (sub === undefined && sid === undefined) throw new Error('neither sub nor sid')
  if (nonce !== undefined) throw new Error('there is a nonce')
  return { header: protectedHeader, claims: payload }
}
