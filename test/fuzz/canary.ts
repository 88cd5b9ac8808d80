import {
  authorizationUrl,
  callApi,
  exchange,
  obtainCode,
  obtainTokens,
  refresh,
  type Tokens,
} from '../helpers/flow.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import type { World } from './world.ts'

/** A client, a grant and a signed-in user to which no request of the run has a right; all must stay unchanged. */
export interface Canary {
  /** What is wrong; undefined if nothing is. Uses its code and refresh token up and gets new ones. */
  faultAfterUse(): Promise<string | undefined>
}

const metadata = {
  client_name: 'Canary',
  redirect_uris: ['http://127.0.0.1:51004/callback'],
  token_endpoint_auth_method: 'client_secret_post',
}

/** Adds a canary to the world: requests use its identifiers, tokens and codes, but not its secrets. */
export async function keepCanary(world: World): Promise<Canary> {
  const server = { issuer: world.origin }
  const registered = await readJson(
    await fetch(`${world.origin}/api/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(metadata),
    }),
  )
  world.clientCount += 1
  const [id, secret] = [String(registered['client_id']), String(registered['client_secret'])]
  const registration = `${world.origin}/api/oauth/register/${id}`
  const registrationToken = String(registered['registration_access_token'])
  const [redirectUri = ''] = metadata.redirect_uris
  const client = { id, secret, method: 'client_secret_post', redirectUri }
  const agent = new UserAgent(world.origin)
  const fields = { scope: 'openid courses:read' }
  let tokens: Tokens = await obtainTokens(server, client, { agent, fields })
  let code = await obtainCode(server, client, { agent, fields })
  const before = JSON.stringify(await readRegistration())
  world.redirectUris.set(id, new Set(metadata.redirect_uris))
  world.registrations.set(id, registrationToken)
  world.clientSecrets.set(id, secret)
  world.secrets.push(secret, registrationToken, ...agent.cookies.values())
  const publish = () => {
    const known = [id, code, tokens.access_token, tokens.refresh_token, tokens.id_token]
    world.foreign.splice(0, world.foreign.length, ...known)
    for (const token of known) world.owners.set(token, id)
    world.codes.push({ clientId: id, code, redirectUri, state: undefined, verifier: 'v'.repeat(43) })
    world.tokens.push({ clientId: id, access: tokens.access_token, refresh: tokens.refresh_token })
  }
  publish()

  async function readRegistration(): Promise<Record<string, unknown>> {
    return readJson(await fetch(registration, { headers: { authorization: `Bearer ${registrationToken}` } }))
  }

  async function faultAfterUse(): Promise<string | undefined> {
    if (JSON.stringify(await readRegistration()) !== before) return 'its registration changed'
    const { status } = await callApi(server, '/api/oauth/userinfo', tokens.access_token)
    if (status !== 200) return `its access token gets ${status}`
    const redeemed = await exchange(server, client, code)
    if (redeemed.status !== 200) return `its code gets ${redeemed.status}`
    const refreshed = await refresh(server, client, tokens.refresh_token)
    if (refreshed.status !== 200) return `its refresh token gets ${refreshed.status}`
    tokens = (await refreshed.json()) as Tokens
    const landing = await agent.open(authorizationUrl(server, client, fields))
    if (landing.at !== 'page' || !landing.page.url.includes('/consent')) return 'its user is signed out'
    code = await obtainCode(server, client, { agent, fields })
    publish()
    return undefined
  }

  return { faultAfterUse }
}

async function readJson(response: Response): Promise<Record<string, unknown>> {
  return (await response.json()) as Record<string, unknown>
}
