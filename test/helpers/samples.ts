import { hash } from 'node:crypto'
import type { ScopePolicy } from '../../src/domain/current-grant.ts'
import type { GrantLifetimes } from '../../src/domain/grant.ts'
import {
  type Handle,
  type HandleKey,
  type HandleKeys,
  type OpenedHandle,
  openHandle,
  sealHandle,
} from '../../src/domain/handle.ts'
import type {
  AuthorizationRequest,
  Client,
  Consent,
  Grant,
  GrantOfToken,
  Interaction,
  Session,
} from '../../src/domain/model.ts'
import { indexResources, type Resource } from '../../src/domain/resource.ts'

/** Base64url of `size` bytes that differ for each name. */
export function bytesOf(name: string, size: number): string {
  return hash('sha256', name, 'buffer').subarray(0, size).toString('base64url')
}

export const lifetimes: GrantLifetimes = {
  codeSeconds: 60,
  refreshTokenIdleSeconds: 1000,
  refreshTokenAbsoluteSeconds: 3000,
  refreshReuseSeconds: 10,
}

export const codeVerifier = 'v'.repeat(43)
export const redirectUri = 'http://127.0.0.1:51004/callback'

export const publicClient: Client = {
  id: 'client-1',
  origin: 'registered',
  issuedAt: 1000,
  usedAt: 1000,
  localized: {},
  applicationType: 'native',
  redirectUris: [redirectUri],
  postLogoutRedirectUris: [],
  authenticationMethod: 'none',
  grantTypes: ['authorization_code', 'refresh_token'],
  contacts: [],
  idTokenSignedResponseAlg: 'RS256',
  requireAuthTime: false,
  pkceOptional: false,
  consent: 'always',
  introspects: [],
}

export const otherClient: Client = { ...publicClient, id: 'client-2' }

/** A client added by an operator, whose identity was verified. */
export const operatorClient: Client = {
  ...publicClient,
  id: 'integration-1',
  origin: 'integration',
  applicationType: 'web',
  redirectUris: ['https://app.example/cb'],
  consent: 'remember',
}

export const ownApi: Resource = {
  identifier: 'https://auth.example',
  name: 'Own',
  scopes: new Set(['openid', 'courses:read', 'courses:write']),
  tokenFormat: 'opaque',
  accessTokenSeconds: 100,
}
export const otherApi: Resource = {
  identifier: 'https://api.example/v1',
  name: 'Other',
  scopes: new Set(['courses:read']),
  tokenFormat: 'opaque',
  accessTokenSeconds: 40,
}
export const signedApi: Resource = {
  identifier: 'https://signed.example',
  name: 'Signed',
  scopes: new Set(['courses:read']),
  tokenFormat: 'jwt',
  accessTokenSeconds: 50,
}
export const resources = indexResources(ownApi, [otherApi, signedApi])

const catalogue = new Set(['openid', 'courses:read', 'courses:write', 'pages:read', 'offline_access'])
/** What clients of these samples may have. */
export const policy: ScopePolicy = {
  scopes: catalogue,
  openScopes: catalogue,
  userScopes: new Set(['openid', 'profile', 'offline_access']),
  scopeClaims: new Map(),
  resources,
  grantTypes: {
    withRedirect: ['authorization_code'],
    withoutRedirect: ['urn:ietf:params:oauth:grant-type:device_code'],
    fromToken: ['urn:ietf:params:oauth:grant-type:token-exchange'],
    withoutUser: ['client_credentials'],
  },
}

export const approvedAt = 10_000

/** A grant whose code is not redeemed. */
export const approved: Grant & GrantOfToken = {
  id: bytesOf('grant', 12),
  secret: bytesOf('grant secret', 16),
  clientId: publicClient.id,
  client: publicClient,
  userId: 'alice',
  scope: ['openid', 'courses:read', 'courses:write'],
  resource: [ownApi.identifier],
  redirectUri,
  redirectUriSent: true,
  codeChallenge: hash('sha256', codeVerifier, 'base64url'),
  authenticatedAt: approvedAt - 5,
  methods: ['pwd'],
  authTimeOwed: false,
  claims: { userinfo: [], idToken: [] },
  approvedAt,
  seq: 0,
  absoluteExpiresAt: approvedAt + lifetimes.refreshTokenAbsoluteSeconds,
  expiresAt: approvedAt + lifetimes.codeSeconds,
  revokedTokens: [],
}

/** The same after its code was redeemed at `approvedAt`; refresh token `seq` is the current one. */
export function active(seq = 1, changes: Partial<Grant & GrantOfToken> = {}): Grant & GrantOfToken {
  return {
    ...approved,
    seq,
    rotatedAt: approvedAt,
    refreshExpiresAt: approvedAt + lifetimes.refreshTokenIdleSeconds,
    expiresAt: approvedAt + lifetimes.refreshTokenIdleSeconds,
    ...changes,
  }
}

export const handleKey: HandleKey = { id: 7, secret: Buffer.alloc(32, 7).toString('base64url') }
export const handleKeys: HandleKeys = keysOf(handleKey)

/** A key ring of these keys; the first one seals. */
export function keysOf(current: HandleKey, ...others: readonly HandleKey[]): HandleKeys {
  return { current, find: (id) => [current, ...others].find((key) => key.id === id) }
}

/** The contents of a handle of this grant. */
export function contentsOf(grant: Grant, kind: Handle['kind'], changes: Partial<Handle> = {}): Handle {
  const issuedAt = kind === 'code' ? grant.approvedAt : (grant.rotatedAt ?? grant.approvedAt)
  const ends = {
    code: grant.seq === 0 ? grant.expiresAt : grant.approvedAt + lifetimes.codeSeconds,
    refresh: grant.refreshExpiresAt ?? 0,
    access: issuedAt + ownApi.accessTokenSeconds,
  }
  return { kind, grantId: grant.id, seq: grant.seq, issuedAt, expiresAt: ends[kind], ...changes }
}

/** A genuine handle of this grant, opened. */
export function opened(grant: Grant, kind: Handle['kind'], changes: Partial<Handle> = {}): OpenedHandle {
  const handle = openHandle(
    handleKeys,
    sealHandle(contentsOf(grant, kind, changes), handleKey, grant.secret),
    kind,
  )
  if (handle === undefined) throw new Error('the sample handle does not open')
  return handle
}

export const session: Session = {
  id: bytesOf('session', 32),
  userId: 'alice',
  authenticatedAt: approvedAt - 5,
  methods: ['pwd'],
  createdAt: approvedAt - 5,
  idleExpiresAt: approvedAt + 500,
  expiresAt: approvedAt + 5000,
}

export const authorizationRequest: AuthorizationRequest = {
  clientId: publicClient.id,
  redirectUri,
  redirectUriSent: true,
  responseMode: 'query',
  state: 'a-state',
  scope: ['openid', 'courses:read'],
  resource: [ownApi.identifier],
  codeChallenge: hash('sha256', codeVerifier, 'base64url'),
  prompt: [],
  claims: { userinfo: [], idToken: [] },
}

/** The remembered consent to this request, of `integration`. */
export const consent: Consent = {
  userId: 'alice',
  clientId: operatorClient.id,
  allowed: authorizationRequest.resource.map((resource) => ({ resource, scope: authorizationRequest.scope })),
  grantedAt: 1,
}

export const interaction: Interaction = {
  id: 'interaction-1',
  browserHash: bytesOf('browser', 32),
  request: authorizationRequest,
  userChosen: false,
  createdAt: approvedAt,
  expiresAt: approvedAt + 600,
}

/** The result of a decision, or a clear failure if it threw. */
export function resultOf<T>(decision: { readonly result: T } | { readonly rejection: Error }): T {
  if ('rejection' in decision) throw decision.rejection
  return decision.result
}
