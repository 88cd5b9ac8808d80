import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { insert } from '../../src/domain/decision.ts'
import type { Client } from '../../src/domain/model.ts'
import { catalogueOf } from '../../src/feature/service.ts'
import { declared } from '../../src/features.ts'
import { addOperatorClient, type OperatorClientRequest } from './client-request.ts'
import { authorizationUrl, type Fields, type TestClient } from './flow.ts'
import { alice, type TestServer } from './server.ts'
import { type Landing, type Page, UserAgent } from './user-agent.ts'

export const callback = 'https://portal.example/callback'

/** A client that an operator added: confidential, with an https callback and remembered consent by default. */
export async function integrate(
  server: TestServer,
  request: Partial<OperatorClientRequest> = {},
  members: Partial<Client> = {},
): Promise<TestClient> {
  const whole: OperatorClientRequest = {
    name: 'Portal',
    redirectUris: [callback],
    postLogoutRedirectUris: [],
    authenticationMethod: 'client_secret_basic',
    pkce: 'required',
    idTokenSignedResponseAlg: 'RS256',
    ...request,
  }
  const { config, store, clock } = server.deps
  const scopes = catalogueOf(config, declared.scopes).map(({ name }) => name)
  const known = { declared, scopes, resources: [config.issuer] }
  const fresh = { id: randomBytes(16), secret: randomBytes(32) }
  const { client, secret } = addOperatorClient(whole, known, fresh, clock())
  await store.write(insert('client', { ...client, ...members }))
  const [redirectUri = ''] = client.redirectUris
  return {
    id: client.id,
    method: client.authenticationMethod,
    redirectUri,
    ...(secret !== undefined && { secret }),
  }
}

/** The page on which a browser ended. */
export function pageOf(landing: Landing): Page {
  if (landing.at === 'page') return landing.page
  throw new Error(`sent away to ${landing.location}`)
}

/** The parameters of the redirect that a browser got. */
export function sentAway(landing: Landing): Record<string, string> {
  if (landing.at === 'redirect') return Object.fromEntries(landing.location.searchParams)
  throw new Error(`stays at ${landing.page.url}: ${landing.page.status} ${title(landing.page)}`)
}

/** The kind of a page: the path it is served at. */
export function place(landing: Landing): string {
  return landing.at === 'page' ? new URL(landing.page.url).pathname : `sent to ${landing.location.origin}`
}

/** The heading of a page. */
export function title(page: Page): string {
  return /<h1>([\s\S]*?)<\/h1>/.exec(page.html)?.[1]?.replaceAll(/<[^>]*>/g, '') ?? ''
}

/** The value of a user's button on a page to choose one; the first one unless a name is given. */
export function pick(page: Page, username = ''): { readonly account: string } {
  const buttons = [...page.html.matchAll(/<button name="account" value="([^"]*)"[^>]*>([\s\S]*?)<\/button>/g)]
  const [, user = ''] = buttons.find(([, , face = '']) => face.includes(username)) ?? []
  return { account: user }
}

/** The scopes a consent page lets the user untick. */
export function offeredScope(page: Page): readonly string[] {
  return page.forms.flatMap(({ fields }) =>
    fields.filter(({ name }) => name === 'scope').map(({ value }) => value),
  )
}

/** Opens an authorization request in a browser. */
export function ask(
  server: TestServer,
  client: TestClient,
  fields: Fields = {},
  agent = new UserAgent(server.issuer),
): Promise<Landing> {
  return agent.open(authorizationUrl(server, client, fields))
}

/** A browser in which a user is signed in; the client's request is left pending. */
export async function signedIn(server: TestServer, client: TestClient, user = alice): Promise<UserAgent> {
  const agent = new UserAgent(server.issuer)
  await agent.submit(pageOf(await ask(server, client, {}, agent)), user)
  return agent
}

/** An error page for the user, RFC 6749 §4.1.2.1: it redirects nowhere and leaves nothing pending. */
export async function assertErrorPage(
  t: Test,
  response: Response,
  error: string,
  message = '',
): Promise<string> {
  const html = await response.text()
  t.equal(response.status, 400, message)
  t.match(response.headers.get('content-type'), /^text\/html/, message)
  t.equal(response.headers.get('location'), null, message)
  // The choice of a language is the only form.
  const others = html.replace(/<form method="post" action="[^"]*\/language">[\s\S]*?<\/form>/, '')
  t.notMatch(others, /http-equiv|<script|<form/i, message)
  t.notMatch(html, /127\.0\.0\.1|evil/i, message)
  t.match(html, `<code>${error}</code>`, message)
  t.same(response.headers.getSetCookie(), [], message)
  return html
}

/**
 * An error sent to the client, RFC 6749 §4.1.2.1: by redirect, with state and iss and nothing else, leaving nothing
 * pending. Returns its description.
 */
export function assertErrorRedirect(
  t: Test,
  server: TestServer,
  response: Response,
  error: string,
  {
    to = 'http://127.0.0.1:51004/callback',
    state = 'a-state',
    message = '',
  }: { readonly to?: string; readonly state?: string | undefined; readonly message?: string } = {},
): string {
  const location = response.headers.get('location') ?? 'http://no.location'
  const { error_description: description = '', ...rest } = Object.fromEntries(new URL(location).searchParams)
  t.equal(response.status, 303, message)
  t.equal(location.startsWith(`${to}?`), true, `${message} goes to ${to}`)
  t.same(rest, { error, ...(state !== '' && { state }), iss: server.deps.config.issuer }, message)
  t.match(description, /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/, message)
  t.same(response.headers.getSetCookie(), [], message)
  return description
}

/** The fields that the form of a page would send, with additions. */
export function bodyOf(page: Page, added: Readonly<Record<string, string>> = {}): URLSearchParams {
  const body = new URLSearchParams()
  for (const { name, value } of page.forms[0]?.fields ?? []) body.append(name, value)
  for (const [name, value] of Object.entries(added)) body.append(name, value)
  return body
}
