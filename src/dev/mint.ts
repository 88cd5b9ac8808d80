/** Tokens without a sign-in or consent page. */
import { hash } from 'node:crypto'
import { type Static, Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { addOperatorClient } from '../clients/operator-client.ts'
import { auditGrant } from '../domain/audit.ts'
import { redeemCode } from '../domain/authorization-code.ts'
import { resolveRedirectUri } from '../domain/authorization-request.ts'
import { check } from '../domain/check.ts'
import { insert } from '../domain/decision.ts'
import { openHandle } from '../domain/handle.ts'
import type { Client, Seconds, User } from '../domain/model.ts'
import type { Resource, Resources } from '../domain/resource.ts'
import type { Needs } from '../feature/deps.ts'
import { RecordExists } from '../storage/store.ts'
import { beginSession } from '../users/rules/session.ts'
import { canonicalLogin } from '../users/rules/user.ts'
import { assertRepresentable, requireDuration, requireMoment } from './clock-routes.ts'
import { requireBody } from './json-body.ts'
import type { DevPart } from './part.ts'

const rule = 'lychgate-dev-token'

const text = () => Type.Optional(Type.String({ minLength: 1 }))

const TokenOrder = Type.Object(
  {
    /** User name, email address or sub. */
    user: Type.String({ minLength: 1 }),
    /** Absent: a client that the development server adds. */
    client_id: text(),
    /** As in an authorization request. */
    scope: text(),
    resource: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
    nonce: text(),
    /** Seconds, or a duration; negative: it expired that long ago. */
    expires_in: Type.Optional(Type.Union([Type.Integer(), Type.String()])),
    /** When it was issued: an instant, or a duration from now. */
    issued_at: Type.Optional(Type.Union([Type.Integer(), Type.String()])),
  },
  { additionalProperties: false },
)
type TokenOrder = Static<typeof TokenOrder>

/** POST issues tokens. */
export const tokenRoutes: DevPart = async (app, deps) => {
  const mint = tokenMint(app, deps)
  app.post('/token', async (request, reply) => mint(requireBody(TokenOrder, request.body), request, reply))
}

/**
 * Issues tokens as if the user had signed in and consented: the same request, grant and checks, without the pages. They
 * can be revoked, introspected and explained like any others.
 * @throws {OAuthError} the errors of the authorization and the token endpoint.
 */
function tokenMint(
  app: FastifyInstance,
  deps: Needs<'config' | 'store' | 'keys' | 'clock' | 'random' | 'service' | 'declared'>,
) {
  const { config, service, store, keys, clock, random } = deps
  return async (order: TokenOrder, request: FastifyRequest, reply: FastifyReply) => {
    const now = clock()
    const user = await requireUser(deps, order.user)
    const stored =
      order.client_id === undefined ? await ownClient(deps) : await requireClient(deps, order.client_id)
    const client = withRedirect(stored, deps)
    // A proof for this request binds the tokens; a client that has bound tokens only, sends one.
    const confirmation = await app.tokenBindings.confirm(request, reply, client)
    const verifier = random(32).toString('base64url')
    const parameters = {
      response_type: 'code',
      code_challenge: hash('sha256', verifier, 'base64url'),
      code_challenge_method: 'S256',
      ...(order.scope !== undefined && { scope: order.scope }),
      ...(order.nonce !== undefined && { nonce: order.nonce }),
      ...(order.resource !== undefined && { resource: order.resource }),
    }
    const [redirectUri = ownRedirectUri] = client.redirectUris
    const redirect = resolveRedirectUri({ redirect_uri: redirectUri }, client)
    const asked = await app.authorizationRequests.parse({ parameters }, client, redirect)
    const span = requireSpan(order, usualSeconds(asked.resource, service.resources), now)
    const at = span.issuedAt
    const policy = { ...service, resources: withLifetime(service.resources, span.seconds) }
    const session = beginSession('', user.id, ['pwd'], config.lifetimes, at)
    // Without the grant type of codes its tokens are those of a device: that grant type the client has.
    const approved = client === stored ? asked : { ...asked, redirectUri: '' }
    const { grant, code, inserts } = await app.approve(approved, client, session, asked.scope, at)
    const handle = openHandle(keys.handles, code, 'code')
    if (handle === undefined) throw new TypeError('a code just made cannot be opened')
    await store.write(...inserts())
    const redemption = {
      handle,
      client,
      redirectUri: grant.redirectUri,
      codeVerifier: verifier,
      resource: asked.resource,
    }
    const issued = await store.transact('grant', grant.id, (found): ReturnType<typeof redeemCode> => {
      const decision = redeemCode(found, redemption, policy, config.lifetimes, at)
      return auditGrant(decision, found, () => ({ at: now, from: request.ip }))
    })
    // The ID Token lives as long as the access token.
    const response = await app.issueTokens(issued, {
      client,
      now: at,
      confirmation,
      idTokenSeconds: span.seconds,
    })
    return {
      ...response,
      expires_in: at + span.seconds - now,
      sub: user.id,
      client_id: client.id,
      issued_at: at,
      expires_at: at + span.seconds,
    }
  }
}

async function requireUser({ store }: Needs<'store'>, login: string): Promise<User> {
  const canonical = canonicalLogin(login)
  const named = canonical === undefined ? undefined : await store.find('userByLogin', canonical)
  const user = named ?? (await store.find('user', login))
  check(user !== undefined, rule, 'invalid_request', 'unknown user', { received: login })
  return user
}

async function requireClient({ store }: Needs<'store'>, clientId: string): Promise<Client> {
  const client = await store.find('client', clientId)
  const received = clientId.slice(0, 100)
  check(client !== undefined, rule, 'invalid_client', 'client_id is not known here', {
    status: 400,
    received,
  })
  return client
}

/** Where no browser is redirected to. */
const ownRedirectUri = 'http://127.0.0.1/lychgate-token'

/** Returns the client as one that gets codes: a client of another grant type may have no redirect URI. */
function withRedirect(client: Client, { declared }: Needs<'declared'>): Client {
  const { grantTypes, redirectUris } = client
  check(
    grantTypes.some((name) => {
      const { withoutUser, fromToken } = declared.grantTypes[name] ?? {}
      return name !== 'refresh_token' && !withoutUser && !fromToken
    }),
    rule,
    'unauthorized_client',
    'client_id is a resource server or acts for itself: it gets no tokens of a user',
  )
  if (grantTypes.includes('authorization_code') && redirectUris.length > 0) return client
  return { ...client, grantTypes: ['authorization_code', ...grantTypes], redirectUris: [ownRedirectUri] }
}

/**
 * Returns when a token is issued and how long it lives; it may have expired, or not be valid yet.
 * @throws {OAuthError} `invalid_request`
 */
function requireSpan(order: TokenOrder, usual: Seconds, now: Seconds) {
  const left = order.expires_in === undefined ? usual : requireDuration('expires_in', order.expires_in)
  const issuedAt = order.issued_at === undefined ? now : requireMoment('issued_at', order.issued_at, now)
  // An expired token had the usual lifetime.
  const span = left > 0 ? { issuedAt, seconds: left } : { issuedAt: issuedAt + left - usual, seconds: usual }
  assertRepresentable(span.issuedAt)
  assertRepresentable(span.issuedAt + span.seconds)
  return span
}

function usualSeconds(identifiers: readonly string[], resources: Resources): Seconds {
  const found = identifiers.flatMap((identifier) => resources.find(identifier) ?? [])
  return Math.min(...found.map(({ accessTokenSeconds }) => accessTokenSeconds))
}

function withLifetime(resources: Resources, accessTokenSeconds: Seconds): Resources {
  const changed = (resource: Resource): Resource => ({ ...resource, accessTokenSeconds })
  return {
    ...resources,
    own: changed(resources.own),
    find: (identifier) => {
      const found = resources.find(identifier)
      return found && changed(found)
    },
  }
}

/** The client of token requests without `client_id`: public, with every scope, the same in every store. */
async function ownClient({ store, clock, declared }: Needs<'store' | 'clock' | 'declared'>): Promise<Client> {
  const request = {
    client_name: 'lychgate token',
    redirect_uris: [ownRedirectUri],
    token_endpoint_auth_method: 'none',
  }
  const fresh = { id: hash('sha256', 'lychgate token', 'buffer').subarray(0, 16), secret: Buffer.alloc(32) }
  const { client } = addOperatorClient(request, { declared, scopes: [], resources: [] }, fresh, {
    by: 'operator',
    at: clock(),
  })
  const known = await store.find('client', client.id)
  if (known !== undefined) return known
  await store.write(insert('client', client)).catch((error: unknown) => {
    // Another request has added it.
    if (!(error instanceof RecordExists)) throw error
  })
  return client
}
