import {
  auth,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
} from '@modelcontextprotocol/sdk/client/auth.js'
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import type { ClientUnderTest, Surroundings } from './client.ts'

/**
 * A host over the MCP SDK's `auth()`: it gets a challenge, and passes the code to the SDK, as the SDK's example does.
 */
export function mcpSdk(name: string): ClientUnderTest {
  return { name, run }
}

class Provider implements OAuthClientProvider {
  readonly redirectUrl = 'http://127.0.0.1:33418/callback'
  readonly clientMetadata = {
    client_name: 'MCP client',
    redirect_uris: [this.redirectUrl],
    token_endpoint_auth_method: 'none',
  }
  client: OAuthClientInformationMixed | undefined
  kept: OAuthTokens | undefined
  verifier = ''
  /** Where the SDK sent the browser last. */
  sentTo: URL | undefined

  state = () => 'a state'
  clientInformation = () => this.client
  saveClientInformation(client: OAuthClientInformationMixed) {
    this.client = client
  }
  tokens = () => this.kept
  saveTokens(tokens: OAuthTokens) {
    this.kept = tokens
  }
  redirectToAuthorization(url: URL) {
    this.sentTo = url
  }
  saveCodeVerifier(verifier: string) {
    this.verifier = verifier
  }
  codeVerifier = () => this.verifier
}

async function run({ issuer, user, waitForExpiry }: Surroundings, at: (step: string) => void) {
  const provider = new Provider()
  at('discovery')
  const challenge = await fetch(`${issuer}/api/oauth/userinfo`)
  const { resourceMetadataUrl } = extractWWWAuthenticateParams(challenge)
  const options = { serverUrl: issuer, ...(resourceMetadataUrl && { resourceMetadataUrl }) }
  await auth(provider, options)
  if (provider.sentTo === undefined) throw new Error('the SDK sent the browser nowhere')

  at('code')
  const response = await user.approve(provider.sentTo)
  const authorizationCode = response.searchParams.get('code')
  if (authorizationCode === null) throw new Error('the host finds no code in the query')
  const obtainedAt = Math.floor(Date.now() / 1000)
  await auth(provider, { ...options, authorizationCode })
  const now = (await waitForExpiry?.()) ?? obtainedAt
  if (now < obtainedAt + (provider.kept?.expires_in ?? 0)) {
    at('API')
    await call(issuer, provider)
  }

  at('refresh')
  await refresh(provider, options)
  await call(issuer, provider)
  at('second refresh')
  await refresh(provider, options)
  at('end')
}

async function refresh(provider: Provider, options: Parameters<typeof auth>[1]) {
  if ((await auth(provider, options)) !== 'AUTHORIZED') throw new Error('the SDK starts a new authorization')
}

async function call(issuer: string, { kept }: Provider): Promise<void> {
  const authorization = `Bearer ${kept?.access_token}`
  const { status } = await fetch(`${issuer}/api/courses`, { headers: { authorization } })
  if (status !== 200) throw new Error(`the API answers ${status}`)
}
