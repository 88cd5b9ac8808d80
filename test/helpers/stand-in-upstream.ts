import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { accessTokenHash } from '../../src/domain/jws.ts'
import { type ClientKey, makeClientKey, signJws } from './assertions.ts'
import { type Issuer, register, type TestClient } from './flow.ts'
import { freePort } from './free-port.ts'
import { type ServerOptions, startServer, type TestServer } from './server.ts'
import { type Landing, type Page, UserAgent } from './user-agent.ts'

type Test = Parameters<typeof startServer>[0]
type Upstream = TestServer['deps']['config']['upstreams'][number]
type Members = Readonly<Record<string, unknown>>

/** An OpenID Provider that says what a test tells it to say. */
export interface StandInUpstream extends Issuer {
  readonly key: ClientKey
  /** What its responses have instead of the right members; undefined leaves a member out. */
  says: {
    metadata?: Members
    header?: Members
    claims?: Members
    tokens?: Members
    userInfo?: Members
    response?: Readonly<Record<string, string | undefined>>
    signedBy?: ClientKey
  }
  /** The authorization requests and token requests, in order. */
  readonly asked: URLSearchParams[]
  readonly sent: { readonly form: URLSearchParams; readonly authorization: string | undefined }[]
  /** Follows a browser to it, and returns where it sends the browser back to. */
  respondTo(away: URL): string
}

/** Starts one on loopback. Its user is `sub` 248289761001. */
export async function startStandInUpstream(t: Test): Promise<StandInUpstream> {
  const issuer = `http://127.0.0.1:${await freePort()}`
  const key = makeClientKey('RS256', 'first')
  let nonce = ''
  const upstream: StandInUpstream = {
    issuer,
    key,
    says: {},
    asked: [],
    sent: [],
    respondTo(away) {
      upstream.asked.push(away.searchParams)
      nonce = away.searchParams.get('nonce') ?? ''
      const back = new URL(away.searchParams.get('redirect_uri') ?? '')
      const state = away.searchParams.get('state') ?? ''
      const members = { code: 'a-code', state, iss: issuer, ...upstream.says.response }
      for (const [name, value] of Object.entries(members))
        if (value !== undefined) back.searchParams.set(name, value)
      return back.href
    },
  }
  const respond = (path: string): unknown => {
    const { metadata, header, claims, tokens, userInfo, signedBy = key } = upstream.says
    const now = Math.floor(Date.now() / 1000)
    const sub = '248289761001'
    switch (path) {
      case '/keys':
        return { keys: [key.jwk] }
      case '/userinfo':
        return { sub, ...userInfo }
      case '/token': {
        const usual = {
          iss: issuer,
          sub,
          aud: 'lychgate',
          exp: now + 300,
          iat: now,
          nonce,
          name: 'Ann',
          email: 'ann@example.com',
          email_verified: true,
          at_hash: accessTokenHash('an-access-token', 'RS256'),
          ...claims,
        }
        const idToken = signJws(signedBy, { alg: 'RS256', kid: 'first', ...header }, usual)
        return { access_token: 'an-access-token', token_type: 'Bearer', id_token: idToken, ...tokens }
      }
      default:
        return {
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/keys`,
          userinfo_endpoint: `${issuer}/userinfo`,
          authorization_response_iss_parameter_supported: true,
          ...metadata,
        }
    }
  }
  const server = createServer(async (request, response) => {
    if (request.url?.startsWith('/authorize')) {
      response.writeHead(303, { location: upstream.respondTo(new URL(request.url, issuer)) }).end()
      return
    }
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const form = new URLSearchParams(Buffer.concat(chunks).toString())
    if (request.method === 'POST') upstream.sent.push({ form, authorization: request.headers.authorization })
    const isOtherCode = request.url === '/token' && form.get('code') !== 'a-code'
    response.writeHead(isOtherCode ? 400 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(isOtherCode ? { error: 'invalid_grant' } : respond(request.url ?? '')))
  })
  await new Promise<void>((resolve) => server.listen(Number(new URL(issuer).port), '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return upstream
}

/** The configuration of an upstream. */
export function upstreamOf(
  t: Test,
  issuer: string,
  change: Partial<Upstream> & { secret?: string } = {},
): Upstream {
  const { secret = 'a secret of a test', ...rest } = change
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-upstream-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const clientSecretFile = join(folder, 'secret')
  writeFileSync(clientSecretFile, `${secret}\n`)
  return {
    id: 'work',
    name: 'Work',
    issuer,
    clientId: 'lychgate',
    clientAuthentication: 'client_secret_basic',
    clientSecretFile,
    signingAlgorithm: 'RS256',
    scope: 'openid profile email',
    firstSignIn: 'off',
    domains: [],
    multiFactor: 'ignore',
    groupsClaim: 'groups',
    groups: {},
    maxAgeSeconds: 86_400,
    enabled: true,
    ...rest,
  }
}

/** A server that users sign in to with a stand-in, and a client of it. */
export async function startWithUpstream(
  t: Test,
  change: Partial<Upstream> = {},
  options: ServerOptions = {},
) {
  const upstream = await startStandInUpstream(t)
  const config = upstreamOf(t, upstream.issuer, change)
  const server = await startServer(t, { mode: 'dev', upstreams: [config], ...options })
  const client = await register(server)
  return { upstream, server, client }
}

/** The address of the button that leads to the upstream. */
export function buttonOf({ html, url }: Page): string {
  const [, href = ''] = /href="([^"]+)">Sign in with/.exec(html) ?? []
  return new URL(href.replaceAll('&amp;', '&'), url).href
}

export function pageOf(landing: Landing): Page {
  if (landing.at !== 'page') throw new Error(`redirected to ${landing.location}`)
  return landing.page
}

export function locationOf(landing: Landing): URL {
  if (landing.at !== 'redirect') throw new Error(`a page: ${landing.page.status} ${landing.page.html}`)
  return landing.location
}

/** The text of a page, without the marks around names. */
export const textOf = ({ html }: Page) => html.replaceAll(/<\/?bdi[^>]*>/g, '')

/** Begins at a client and presses the button. Returns the address of the upstream. */
export async function goAway(here: UserAgent, url: string): Promise<URL> {
  return locationOf(await here.open(buttonOf(pageOf(await here.open(url)))))
}

export { type TestClient, UserAgent }
