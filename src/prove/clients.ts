import { isObject } from '../domain/is-object.ts'
import { NotApplicable, NotTestable, type Seen } from './observation.ts'
import { membersOf, type Server } from './server.ts'
import { type ClientKey, clientAssertion, createKey, keyOf } from './tokens.ts'
import type { Wire } from './wire.ts'

export const authMethods = ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const
export type AuthMethod = (typeof authMethods)[number]

/** A client of this run. */
export interface Client {
  readonly id: string
  readonly secret?: string
  readonly method: AuthMethod
  readonly redirectUri: string
  /** Signs assertions and request objects. */
  readonly key?: ClientKey
  /** What the server said of it: the response to its registration, or the file of the operator. */
  readonly metadata: Readonly<Record<string, unknown>>
  readonly registered?: Seen
}

/** Registers clients, and deletes them afterwards. */
export interface Clients {
  /** Sends metadata as they are; a client that comes from it is deleted afterwards. */
  readonly post: (metadata: Readonly<Record<string, unknown>>) => Promise<Seen>
  /** @throws {NotTestable} if the server does not register it. */
  readonly register: (method: AuthMethod, more?: Readonly<Record<string, unknown>>) => Promise<Client>
  /** Deletes the clients of this run, and returns the ids of those that remain. */
  readonly remove: (wire: Wire) => Promise<readonly string[]>
  /** The client was deleted by a check. */
  readonly forget: (id: string) => void
}

/** The server does not register a client for this method; its operator may have one. */
export class NotRegistered extends NotTestable {}

/** Nothing listens there, and nothing connects to it: the browser of this program stops before. */
export const redirectUri = 'http://127.0.0.1:47999/callback'

/** @param initialToken RFC 7591 §3. */
export function openClients(server: Server, wire: Wire, initialToken?: string): Clients {
  const open = new Map<string, Readonly<Record<string, unknown>>>()

  async function post(metadata: Readonly<Record<string, unknown>>): Promise<Seen> {
    const seen = await wire.send({
      url: server.endpoint('registration_endpoint'),
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        ...(initialToken !== undefined && { authorization: `Bearer ${initialToken}` }),
      },
      body: JSON.stringify(metadata),
    })
    const members = seen.status < 300 ? membersOf(seen) : undefined
    if (typeof members?.['client_id'] === 'string') open.set(members['client_id'], members)
    return seen
  }

  async function register(method: AuthMethod, more: Readonly<Record<string, unknown>> = {}): Promise<Client> {
    const supported = server.list('token_endpoint_auth_methods_supported') ?? ['client_secret_basic']
    if (!supported.includes(method))
      throw new NotApplicable(`the metadata has no client authentication ${method}`)
    const key = createKey()
    const seen = await post({ ...basicMetadata(method, key), ...more })
    const metadata = membersOf(seen)
    const { client_id: id, client_secret: secret } = metadata ?? {}
    if (seen.status >= 300 || typeof id !== 'string')
      throw new NotRegistered(
        `the server registers no client for ${method} (status ${seen.status}; --client FILE)`,
      )
    const registered = metadata?.['token_endpoint_auth_method'] ?? method
    if (registered !== method)
      throw new NotRegistered(
        `the server registered ${String(registered)} instead of ${method} (--client FILE)`,
      )
    return {
      id,
      method,
      redirectUri: [more['redirect_uris'] ?? redirectUri].flat()[0] as string, // of this program
      ...(typeof secret === 'string' && method !== 'none' && { secret }),
      key,
      metadata: metadata ?? {},
      registered: seen,
    }
  }

  async function remove(by: Wire): Promise<readonly string[]> {
    const remaining: string[] = []
    for (const [id, { registration_client_uri: url, registration_access_token: token }] of open) {
      const isManaged = typeof url === 'string' && typeof token === 'string'
      const seen = isManaged
        ? await by
            .send({ url, method: 'DELETE', headers: { authorization: `Bearer ${token}` } })
            .catch(() => undefined)
        : undefined
      if (seen === undefined || ![200, 204, 401, 404].includes(seen.status)) remaining.push(id)
    }
    return remaining
  }

  return { post, register, remove, forget: (id) => open.delete(id) }
}

/** The metadata with which this program registers a client. */
export function basicMetadata(method: AuthMethod, key?: ClientKey): Readonly<Record<string, unknown>> {
  return {
    client_name: 'lychgate prove',
    redirect_uris: [redirectUri],
    application_type: 'native',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: method,
    ...(method === 'private_key_jwt' &&
      key !== undefined && {
        jwks: { keys: [{ ...key.jwk, kid: key.kid, alg: 'ES256', use: 'sig' }] },
      }),
  }
}

/** Where the form of a client is that a browser posts: browsers say so. */
export function originOf({ redirectUri }: Client): string {
  return new URL(redirectUri).origin
}

/** What a client adds to a request to authenticate, RFC 6749 §2.3 and RFC 7523 §2.2. */
export interface Authentication {
  readonly form: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
}

/** @param audience The issuer, RFC 7523bis §4. */
export function authenticationOf(client: Client, audience: string): Authentication {
  const { id, secret = '', method, key } = client
  if (method === 'client_secret_basic') return { form: {}, headers: { authorization: basic(id, secret) } }
  if (method === 'client_secret_post') return { form: { client_id: id, client_secret: secret }, headers: {} }
  if (method === 'private_key_jwt' && key !== undefined) {
    const assertion = clientAssertion(key, id, audience)
    return { form: { client_id: id, ...assertionFields(assertion) }, headers: {} }
  }
  return { form: { client_id: id }, headers: {} }
}

export function assertionFields(assertion: string): Readonly<Record<string, string>> {
  return {
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: assertion,
  }
}

/** RFC 6749 §2.3.1: both parts are form-encoded first. */
export function basic(id: string, secret: string): string {
  const encoded = [id, secret].map((part) => new URLSearchParams([['', part]]).toString().slice(1)).join(':')
  return `Basic ${Buffer.from(encoded).toString('base64')}`
}

/** Reads a client that the operator made for the run; a text says what is wrong with it. */
export function clientOf(metadata: Readonly<Record<string, unknown>>): Client | string {
  const {
    client_id: id,
    client_secret: secret,
    redirect_uris: uris,
    token_endpoint_auth_method: registeredMethod,
    jwks,
  } = metadata
  if (typeof id !== 'string') return 'client_id is missing'
  const [uri] = Array.isArray(uris) ? uris : []
  if (typeof uri !== 'string') return 'redirect_uris is missing'
  const fallback = typeof secret === 'string' ? 'client_secret_basic' : 'none'
  const method = authMethods.find((one) => one === (registeredMethod ?? fallback))
  if (method === undefined) return `token_endpoint_auth_method is not one of ${authMethods.join(', ')}`
  const keys: unknown = isObject(jwks) ? jwks['keys'] : undefined
  const jwk: unknown = Array.isArray(keys) ? keys[0] : undefined
  const key = isObject(jwk) ? keyOf(jwk) : undefined
  if (method === 'private_key_jwt' && key === undefined) return 'jwks has no private key on P-256'
  return {
    id,
    method,
    redirectUri: uri,
    metadata,
    ...(typeof secret === 'string' && { secret }),
    ...(key !== undefined && { key }),
  }
}
