import assert from 'node:assert/strict'
import { makeClientKey } from '../helpers/assertions.ts'
import { addDeviceClient, openConfirmation, poll, requestDevice, startDevice } from '../helpers/device.ts'
import {
  authorizationUrl,
  callApi,
  exchange,
  obtainCode,
  obtainTokens,
  pkce,
  postAs,
  refresh,
  register,
  type Tokens,
} from '../helpers/flow.ts'
import { postProven, signProof, tokenPath } from '../helpers/proofs.ts'
import { alice, type TestServer } from '../helpers/server.ts'
import { type Page, UserAgent } from '../helpers/user-agent.ts'
import { addClient } from '../helpers/wire.ts'

/** Prepares an operation, and returns it. */
type Operation = () => Promise<() => Promise<unknown>>

/** What users and clients do, each as one request that can be repeated. */
export async function operationsOf(server: TestServer): Promise<Readonly<Record<string, Operation>>> {
  const visitor = new UserAgent(server.issuer)
  const app = await register(server)
  const confidential = await addClient(server)
  const machine = await addClient(server, {
    grantTypes: ['client_credentials'],
    redirectUris: [],
    scope: ['courses:read'],
  })
  const device = await addDeviceClient(server)
  const remembered = await addClient(server, { consent: 'remember' })
  const key = makeClientKey()
  await obtainCode(server, remembered, { agent: visitor })
  const tokensOf = (client: typeof app) => obtainTokens(server, client, { agent: visitor })
  const proof = () => signProof(key, { url: server.issuer + tokenPath, now: server.now() })

  const inTurn = (client: typeof app) => {
    let tokens: Tokens | undefined
    return async () => {
      const { refresh_token: token } = tokens ?? (await tokensOf(client))
      return async () => {
        const response = await expectStatus(refresh(server, client, token))
        tokens = (await response.json()) as Tokens
      }
    }
  }
  const ofVisitor = await tokensOf(confidential)
  const pageAt = async (agent: UserAgent, url: string): Promise<Page> => {
    const landing = await agent.open(url)
    assert.equal(landing.at, 'page')
    return (landing as Extract<typeof landing, { at: 'page' }>).page // asserted
  }
  /** Opens the sign-in page of a new browser. @returns What submits it, and follows no redirect. */
  const signIn = async (password: string) => {
    const agent = new UserAgent(server.issuer)
    const page = await pageAt(agent, authorizationUrl(server, confidential))
    const [form] = page.forms
    const hidden = form?.fields
      .filter(({ type }) => type === 'hidden')
      .map(({ name, value }) => [name, value])
    const body = new URLSearchParams({ ...Object.fromEntries(hidden ?? []), ...alice, password })
    return () => agent.send(new URL(form?.action ?? '', page.url).href, { method: 'POST', body })
  }

  return {
    'client credentials': async () => () =>
      expectStatus(postAs(server, machine, tokenPath, { grant_type: 'client_credentials' })),
    'sign-in with a password': async () => {
      const send = await signIn(alice.password)
      return () => expectStatus(send(), 303)
    },
    'sign-in with a wrong password': () => signIn('wrong'),
    'refresh of a public client': inTurn(app),
    'refresh of a confidential client': inTurn(confidential),
    'refresh with a proof (DPoP)': async () => {
      const code = await obtainCode(server, app, { agent: visitor })
      const fields = {
        grant_type: 'authorization_code',
        code,
        redirect_uri: app.redirectUri,
        code_verifier: 'v'.repeat(43),
      }
      const response = await expectStatus(postProven(server, app, tokenPath, fields, proof()))
      const { refresh_token: token } = (await response.json()) as Tokens
      const again = { grant_type: 'refresh_token', refresh_token: token }
      return () => expectStatus(postProven(server, app, tokenPath, again, proof()))
    },
    exchange: async () => {
      const code = await obtainCode(server, confidential, { agent: visitor })
      return () => expectStatus(exchange(server, confidential, code))
    },
    'authorize, signed in': async () => () =>
      expectStatus(visitor.send(authorizationUrl(server, confidential)), 303),
    'authorize with remembered consent': async () => () =>
      expectStatus(visitor.send(authorizationUrl(server, remembered)), 303),
    'pushed request': async () => () =>
      expectStatus(
        postAs(server, confidential, '/api/oauth/par', {
          response_type: 'code',
          redirect_uri: confidential.redirectUri,
          scope: 'openid',
          state: 'a-state',
          code_challenge: pkce('v'.repeat(43)).challenge,
          code_challenge_method: 'S256',
        }),
        201,
      ),
    registration: async () => () => register(server),
    'revocation of an access token': async () => {
      const { access_token: token } = await tokensOf(confidential)
      return () => expectStatus(postAs(server, confidential, '/api/oauth/revoke', { token }))
    },
    'revocation of a refresh token': async () => {
      const { refresh_token: token } = await tokensOf(confidential)
      return () => expectStatus(postAs(server, confidential, '/api/oauth/revoke', { token }))
    },
    'device: start': async () => () => expectStatus(requestDevice(server, device)),
    'device: poll': async () => {
      const started = await startDevice(server, device)
      return () => expectStatus(poll(server, device, started), 400)
    },
    'device: exchange': async () => {
      const started = await startDevice(server, device)
      const page = await openConfirmation(server, started.user_code, visitor)
      await visitor.submit(page, { decision: 'approve' })
      return () => expectStatus(poll(server, device, started))
    },
    'device: approve': async () => {
      const started = await startDevice(server, device)
      const page = await openConfirmation(server, started.user_code, visitor)
      return () => visitor.submit(page, { decision: 'approve' })
    },
    introspection: async () => {
      const token = ofVisitor.access_token
      return () => expectStatus(postAs(server, confidential, '/api/oauth/introspect', { token }))
    },
    UserInfo: async () => {
      const token = ofVisitor.access_token
      return () => expectStatus(callApi(server, '/api/oauth/userinfo', token))
    },
    'account page': async () => () => expectStatus(visitor.send(`${server.issuer}/account`)),
  }
}

async function expectStatus(sent: Promise<Response>, status = 200): Promise<Response> {
  const response = await sent
  if (response.status !== status) assert.fail(`${response.status}: ${await response.text()}`)
  return response
}
