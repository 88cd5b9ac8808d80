/**
 * An MCP client that knows only the URL of an MCP server. The SDK finds the authorization server, registers, and gets
 * tokens; this program provides the browser and the storage. README.md describes how to start it.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type OAuthClientProvider, UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'

const [address = 'http://127.0.0.1:9502/mcp', tool = 'list_lessons'] = process.argv.slice(2)

// RFC 8252 §7.3: the server redirects to a free port of the loopback interface.
const listener = createServer().listen(0, '127.0.0.1')
await once(listener, 'listening')
// `as`: a listener on a TCP port has such an address.
const redirectUrl = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/callback`
const redirectedTo = new Promise<URL>((resolve) => {
  listener.on('request', (request, response) => {
    const url = new URL(request.url ?? '/', redirectUrl)
    const isAnswer = url.pathname === '/callback'
    response.writeHead(isAnswer ? 200 : 404).end(isAnswer ? 'Go back to the terminal.' : '')
    if (isAnswer) resolve(url)
  })
})

/** What the SDK wants stored, in memory. examples/cli-app stores its tokens in a file. */
interface Kept {
  readonly client?: OAuthClientInformationMixed
  readonly tokens?: OAuthTokens
  readonly verifier?: string
  /** The authorization server that the user was redirected to. */
  readonly issuer?: string
}
let kept: Kept = {}
const keep = (more: Kept) => {
  kept = { ...kept, ...more }
}
const state = randomBytes(16).toString('base64url')

const provider: OAuthClientProvider = {
  redirectUrl,
  // RFC 7591 §2: the metadata of this client. `none`: it has no secret, because it could not keep one.
  clientMetadata: {
    client_name: 'Timetable client',
    redirect_uris: [redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'none',
  },
  state: () => state,
  clientInformation: () => kept.client,
  saveClientInformation: (client) => keep({ client }),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => keep({ tokens }),
  codeVerifier: () => kept.verifier ?? '',
  saveCodeVerifier: (verifier) => keep({ verifier }),
  saveDiscoveryState({ authorizationServerUrl, authorizationServerMetadata: metadata }) {
    // RFC 8414 §3.3, which the SDK does not check: the metadata belongs to the server that the MCP server named.
    if (metadata && new URL(metadata.issuer).href !== new URL(authorizationServerUrl).href) {
      throw new Error(`the metadata at ${authorizationServerUrl} belongs to ${metadata.issuer}`)
    }
    if (metadata) keep({ issuer: metadata.issuer })
  },
  redirectToAuthorization(url) {
    process.stdout.write(`Open this in a browser on this computer, and sign in:\n${url}\n`)
  },
}

/** Waits for the redirect, checks `state` and `iss`, and returns the code. */
async function authorizationCode(): Promise<string> {
  const { searchParams } = await redirectedTo
  if (searchParams.get('state') !== state) throw new Error('state is not that of the request')
  // RFC 9207 §2.4: a code from another server must not reach the token endpoint of this one.
  if (searchParams.get('iss') !== kept.issuer) throw new Error('iss is not the issuer of the request')
  const code = searchParams.get('code')
  const [error, why] = ['error', 'error_description'].map((name) => searchParams.get(name))
  if (code === null) throw new Error(`no access: ${error}: ${why}`)
  return code
}

/**
 * Connects. On the first 401 the SDK does everything: `resource_metadata` of the challenge (RFC 9728 §5.1), metadata
 * of the authorization server (RFC 8414), registration (RFC 7591), PKCE (RFC 7636), `resource` (RFC 8707).
 */
async function connect(): Promise<Client> {
  const client = new Client({ name: 'Timetable client', version: '1.0.0' })
  const transport = new StreamableHTTPClientTransport(new URL(address), { authProvider: provider })
  try {
    await client.connect(transport)
    return client
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error
    await transport.finishAuth(await authorizationCode())
    return connect()
  }
}

try {
  const client = await connect()
  const { tools } = await client.listTools()
  process.stdout.write(`tools: ${tools.map(({ name }) => name).join(', ')}\n`)
  const { content } = await client.callTool({ name: tool })
  process.stdout.write(`${tool}: ${JSON.stringify(content)}\n`)
  await client.close()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
} finally {
  listener.closeAllConnections()
  listener.close()
}
