import { makeClientKey } from '../../test/helpers/assertions.ts'
import { signProof } from '../../test/helpers/proofs.ts'
import { UserAgent } from '../../test/helpers/user-agent.ts'
import { basic, bearer, Connection, form, get, postForm, postJson } from './connection.ts'
import { authorizeUrl, redirectUri, type Target, verifier } from './measured-servers.ts'

/** What one connection does repeatedly. */
export interface Lane {
  /** Prepares what this many operations use up. */
  prepare?(count: number): Promise<void>
  /** One operation, with its response checked; throws if the response is not the right one. */
  operate(): Promise<void>
  /** Checks, after all measurements, what single responses cannot show. */
  confirm?(): Promise<void>
  close(): void
}

export interface Workload {
  readonly name: string
  /** The equivalent for a bare Fastify. */
  readonly floor?: 'GET' | 'POST'
  readonly lane: (target: Target) => Promise<Lane>
}

interface Tokens {
  readonly access_token: string
  readonly refresh_token: string
  readonly id_token?: string
}

/** A connection with a target, and the steps of a flow on it. */
class Client {
  readonly connection: Connection
  readonly target: Target
  readonly id: string
  readonly scope: string

  constructor(target: Target, { id = target.app, scope = 'openid courses:read' } = {}) {
    this.connection = new Connection(target.server.port)
    this.target = target
    this.id = id
    this.scope = scope
  }

  async code(): Promise<string> {
    const { paths, cookie } = this.target
    const response = await this.connection.send(get(authorizeUrl(paths, this.id, this.scope), cookie))
    const code = /\r\nlocation: https:\/\/app\.example\/callback\?[^\r]*?\bcode=([^&\r]+)/i.exec(
      response.head,
    )?.[1]
    check(
      code !== undefined && response.head.includes('state=the-state-of-the-app'),
      'a code and the state',
      response,
    )
    return code ?? ''
  }

  async exchange(code: string, headers = ''): Promise<Tokens> {
    const fields = {
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    }
    return this.#token({ ...fields, client_id: this.id }, headers)
  }

  async refresh(token: string): Promise<Tokens> {
    return this.#token({ grant_type: 'refresh_token', refresh_token: token, client_id: this.id })
  }

  async tokens(): Promise<Tokens> {
    return this.exchange(await this.code())
  }

  /** Tokens of separate grants: in separate sessions where a session has one grant. */
  async tokensApart(): Promise<Tokens> {
    const { issuer, paths, sharesGrants } = this.target
    if (!sharesGrants) return this.tokens()
    const landing = await new UserAgent(issuer).open(issuer + authorizeUrl(paths, this.id, this.scope))
    if (landing.at !== 'redirect') throw new Error(`stuck at ${landing.page.url}`)
    return this.exchange(landing.location.searchParams.get('code') ?? '')
  }

  async #token(fields: Readonly<Record<string, string>>, headers = ''): Promise<Tokens> {
    const response = await this.connection.send(postForm(this.target.paths.token, headers), form(fields))
    check(response.status === 200, 'tokens', response)
    const tokens = JSON.parse(response.body) as Tokens
    check(tokens.access_token.length > 20 && tokens.refresh_token.length > 20, 'both tokens', response)
    return tokens
  }
}

function check(
  right: boolean,
  wanted: string,
  response: { readonly status: number; readonly body: string },
): void {
  if (!right) throw new Error(`wanted ${wanted}, got ${response.status} ${response.body.slice(0, 300)}`)
}

/** A GET whose response is 200 and contains this. */
function getting(path: (target: Target) => string, contains: string): Workload['lane'] {
  return async (target) => {
    const connection = new Connection(target.server.port)
    const request = get(path(target))
    return {
      operate: async () => {
        const response = await connection.send(request)
        check(response.status === 200 && response.body.includes(contains), contains, response)
      },
      close: () => connection.close(),
    }
  }
}

/** Codes are made beforehand, as they cost a write, too. */
async function exchanging(target: Target): Promise<Lane> {
  const client = new Client(target, { id: target.appEs256 })
  const codes: string[] = []
  return {
    prepare: async (count) => {
      codes.length = 0
      for (let made = 0; made < count; made += 1) codes.push(await client.code())
    },
    operate: async () => void (await client.exchange(codes.pop() ?? '')),
    close: () => client.connection.close(),
  }
}

function refreshing(
  options: (target: Target) => { id?: string; scope?: string },
  hasIdToken: boolean,
): Workload['lane'] {
  return async (target) => {
    const client = new Client(target, options(target))
    let { refresh_token: token } = await client.tokens()
    return {
      operate: async () => {
        const next = await client.refresh(token)
        if (next.refresh_token === token) throw new Error('the refresh token did not change')
        if ((next.id_token !== undefined) !== hasIdToken) throw new Error('an ID Token too many, or too few')
        token = next.refresh_token
      },
      close: () => client.connection.close(),
    }
  }
}

export async function withToken(
  target: Target,
  use: (client: Client, token: string) => () => Promise<void>,
  scope?: string,
): Promise<Lane> {
  const client = new Client(target, scope === undefined ? {} : { scope })
  const { access_token: token } = await client.tokens()
  return { operate: use(client, token), close: () => client.connection.close() }
}

/**
 * Access tokens, each of a separate grant: oidc-provider revokes all tokens of a grant with the first, and the rest is
 * no work.
 */
async function revoking(target: Target): Promise<Lane> {
  const client = new Client(target)
  const [living, revoked]: [string[], string[]] = [[], []]
  const statusOf = async (token: string) =>
    (await client.connection.send(get(target.paths.userInfo, bearer(token)))).status
  return {
    prepare: async (count) => {
      for (let made = 0; made < count; made += 1) living.push((await client.tokensApart()).access_token)
    },
    operate: async () => {
      const token = living.pop() ?? ''
      const body = form({ token, client_id: client.id })
      const response = await client.connection.send(postForm(target.paths.revoke), body)
      check(response.status === 200, 'a revocation', response)
      revoked.push(token)
    },
    // The response to an unknown token is the same.
    confirm: async () => {
      for (const token of revoked)
        if ((await statusOf(token)) !== 401) throw new Error('a revoked token lives')
      for (const token of living)
        if ((await statusOf(token)) !== 200) throw new Error('one ended with another')
    },
    close: () => client.connection.close(),
  }
}

/**
 * An API call with a token that is bound to a key, RFC 9449 §7: each has a proof of its own, with the nonce of the server
 * if it has one. Signed beforehand, so that the server does not wait for the load.
 */
async function calling(target: Target): Promise<Lane> {
  const [client, key] = [new Client(target), makeClientKey('ES256')]
  const { connection } = client
  const { paths, issuer } = target
  const path = paths.api ?? ''
  let nonce: string | undefined
  const proofOf = (method: string, place: string, bound?: string) => {
    const now = Math.floor(Date.now() / 1000)
    return `DPoP: ${signProof(key, { method, url: issuer + place, now, token: bound, nonce })}\r\n`
  }
  // A code that is none: the proof is judged first.
  const probe = form({
    grant_type: 'authorization_code',
    code: 'none',
    client_id: client.id,
    redirect_uri: redirectUri,
    code_verifier: verifier,
  })
  const readNonce = async () => {
    const { head } = await connection.send(postForm(paths.token, proofOf('POST', paths.token)), probe)
    nonce = /\r\ndpop-nonce: ([^\r]+)/i.exec(head)?.[1]
  }
  await readNonce()
  const { access_token: token } = await client.exchange(await client.code(), proofOf('POST', paths.token))
  let requests: string[] = []
  const request = () => get(path, `Authorization: DPoP ${token}\r\n${proofOf('GET', path, token)}`)
  return {
    prepare: async (count) => {
      await readNonce()
      requests = Array.from({ length: count }, request)
    },
    operate: async () => {
      const response = await connection.send(requests.pop() ?? request())
      check(response.status === 200 && response.body.includes('"caller":"user"'), 'the user', response)
    },
    close: () => connection.close(),
  }
}

/** The same metadata for both: a native client without a secret. */
async function registering(target: Target): Promise<Lane> {
  const connection = new Connection(target.server.port)
  const request = postJson(target.paths.register)
  const body = JSON.stringify({
    client_name: 'Registers itself',
    application_type: 'native',
    redirect_uris: ['http://127.0.0.1/callback'],
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
  })
  return {
    operate: async () => {
      const response = await connection.send(request, body)
      check(response.status === 201 && response.body.includes('"client_id"'), 'a registration', response)
    },
    close: () => connection.close(),
  }
}

// ID Tokens are signed with ES256 throughout: the cost of RS256 is OpenSSL's, alike on every server, and would hide the
// rest.
export const workloads: readonly Workload[] = [
  { name: 'discovery', floor: 'GET', lane: getting(({ paths }) => paths.discovery, '"token_endpoint"') },
  { name: 'keys', floor: 'GET', lane: getting(({ paths }) => paths.keys, '"keys"') },
  {
    name: 'authorize',
    lane: async (target) => {
      const client = new Client(target)
      return { operate: async () => void (await client.code()), close: () => client.connection.close() }
    },
  },
  { name: 'code exchange', lane: exchanging },
  {
    name: 'code flow',
    lane: async (target) => {
      const client = new Client(target, { id: target.appEs256 })
      return { operate: async () => void (await client.tokens()), close: () => client.connection.close() }
    },
  },
  { name: 'refresh', floor: 'POST', lane: refreshing(() => ({ scope: 'courses:read' }), false) },
  { name: 'refresh, ES256 ID Token', lane: refreshing(({ appEs256 }) => ({ id: appEs256 }), true) },
  {
    name: 'introspection',
    floor: 'POST',
    lane: (target) =>
      withToken(target, ({ connection }, token) => {
        const request = postForm(target.paths.introspect, basic(target.api.id, target.api.secret))
        const body = form({ token })
        return async () => {
          const response = await connection.send(request, body)
          check(
            response.status === 200 && response.body.includes('"active":true'),
            'an active token',
            response,
          )
        }
      }),
  },
  {
    name: 'UserInfo',
    floor: 'GET',
    lane: (target) =>
      withToken(target, ({ connection }, token) => {
        const request = get(target.paths.userInfo, bearer(token))
        return async () => {
          const response = await connection.send(request)
          check(response.status === 200 && response.body.includes('"sub"'), 'a subject', response)
        }
      }),
  },
  {
    name: 'API call',
    floor: 'GET',
    lane: (target) =>
      withToken(target, ({ connection }, token) => {
        const request = get(target.paths.api ?? '', bearer(token))
        return async () => {
          const response = await connection.send(request)
          check(response.status === 200 && response.body.includes('"caller":"user"'), 'the user', response)
        }
      }),
  },
  { name: 'API call, DPoP', floor: 'GET', lane: calling },
  { name: 'revocation', lane: revoking },
  { name: 'registration', lane: registering },
]
