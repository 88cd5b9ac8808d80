import type {
  AuditEvent,
  Client,
  Consent,
  Grant,
  Interaction,
  OneTimeLink,
  Passkey,
  Rejection,
  SecondFactor,
  Session,
  StoredKey,
  Throttle,
  User,
} from '../../src/domain/model.ts'

/** Base64url of `size` bytes that differ for each `n`. */
export function bytes(n: number, size: number): string {
  const buffer = Buffer.alloc(size, n % 256)
  buffer.writeUInt32BE(n)
  return buffer.toString('base64url')
}

/** The grant id number `n`; ids of higher numbers sort after. */
export const grantId = (n: number) => bytes(n, 12)
/** A text in the form of a SHA-256. */
export const digest = (n: number) => bytes(n, 32)

export const client: Client = {
  id: 'client-1',
  origin: 'registered',
  issuedAt: 1000,
  usedAt: 1000,
  localized: {},
  applicationType: 'native',
  redirectUris: ['http://127.0.0.1/callback'],
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

export const fullClient: Client = {
  ...client,
  id: 'client-2',
  origin: 'integration',
  issuedAt: 900,
  usedAt: 4_000_000_000,
  name: 'Læsning “ok” 日本',
  localized: { 'client_name#fr': 'Lecture' },
  applicationType: 'web',
  redirectUris: ['https://a.example/cb', 'https://b.example/cb?x=1'],
  postLogoutRedirectUris: ['https://a.example/out'],
  authenticationMethod: 'client_secret_basic',
  secretHash: digest(1),
  scope: ['openid', 'profile'],
  contacts: ['ops@a.example'],
  clientUri: 'https://a.example',
  logoUri: 'https://a.example/logo',
  policyUri: 'https://a.example/policy',
  tosUri: 'https://a.example/tos',
  softwareId: 'software',
  softwareVersion: '1.0',
  defaultMaxAgeSeconds: 0,
  requireAuthTime: true,
  registrationTokenHash: digest(2),
  pkceOptional: true,
  consent: 'remember',
  introspects: ['https://api.example'],
}

export const user: User = {
  id: 'account-1',
  username: 'ada',
  passwordHash: '$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA',
  claims: {},
  seeded: false,
  createdAt: 1000,
  updatedAt: 1000,
}

/** An invited user without a password. */
export const invitedAccount: User = {
  id: 'account-3',
  username: 'hedy',
  claims: {},
  seeded: false,
  createdAt: 1000,
  updatedAt: 1000,
}

export const fullUser: User = {
  ...user,
  id: 'account-2',
  username: 'grace',
  email: 'grace@example.org',
  claims: { name: 'Grace', email_verified: true, updated_at: 7, address: { country: 'NL' } },
  attributes: { department: 'fysica “ok”', level: 0, tutor: false },
  seeded: true,
  lockedAt: 1200,
  createdAt: 900,
  updatedAt: 4_000_000_000,
}

export const session: Session = {
  id: digest(3),
  userId: user.id,
  authenticatedAt: 1000,
  methods: [],
  createdAt: 1000,
  idleExpiresAt: 2000,
  expiresAt: 4_000_000_000,
}

export const fullSession: Session = {
  ...session,
  id: digest(4),
  methods: ['pwd', 'otp'],
  browser: 'Firefox, Linux',
  from: '192.0.2.0/24',
  createdAt: 1100,
}

export const passkey: Passkey = {
  id: 'Y3JlZGVudGlhbC0x',
  userId: user.id,
  publicKey: digest(7),
  counter: 0,
  transports: [],
  name: 'Læsebrik 日本',
  backedUp: false,
  createdAt: 1000,
  usedAt: 1000,
}

export const fullPasskey: Passkey = {
  ...passkey,
  id: 'Y3JlZGVudGlhbC0y',
  counter: 4_000_000_000,
  transports: ['internal', 'hybrid'],
  backedUp: true,
  createdAt: 1100,
  usedAt: 4_000_000_000,
}

export const secondFactor: SecondFactor = {
  userId: user.id,
  sealedSecret: 'c2VhbGVk',
  recoveryHashes: [],
  createdAt: 1000,
}

export const fullSecondFactor: SecondFactor = {
  ...secondFactor,
  userId: fullUser.id,
  confirmedAt: 1010,
  usedStep: 60_000_000,
  recoveryHashes: [digest(9), digest(10)],
}

export const link: OneTimeLink = {
  id: digest(11),
  purpose: 'first-user',
  createdAt: 1000,
  expiresAt: 2000,
}

export const fullLink: OneTimeLink = {
  ...link,
  id: digest(12),
  purpose: 'password-reset',
  userId: user.id,
  email: 'ada@example.org',
}

export const interaction: Interaction = {
  id: 'interaction-1',
  browserHash: digest(5),
  request: {
    clientId: client.id,
    redirectUri: 'http://127.0.0.1:5000/callback',
    redirectUriSent: false,
    responseMode: 'query',
    scope: [],
    resource: [],
    prompt: [],
    claims: { userinfo: [], idToken: [] },
  },
  userChosen: false,
  createdAt: 1000,
  expiresAt: 2000,
}

export const fullInteraction: Interaction = {
  ...interaction,
  id: 'interaction-2',
  request: {
    ...interaction.request,
    redirectUriSent: true,
    responseMode: 'form_post',
    state: 'a "state" with \0, \\ and 日本',
    scope: ['openid', 'email'],
    resource: ['https://api.example'],
    codeChallenge: digest(6),
    nonce: 'nonce',
    prompt: ['login', 'consent'],
    maxAgeSeconds: 0,
    loginHint: 'ada',
    requiredSub: user.id,
    claims: { userinfo: ['name'], idToken: ['auth_time'] },
  },
  pendingSecondFactor: { userId: user.id, password: digest(14), at: 1001 },
  challenge: digest(13),
  authenticatedSessionId: session.id,
  userChosen: true,
  expiresAt: 4_000_000_000,
}

/** The pending request is for an account page, not for a client. */
export const pageInteraction: Interaction = {
  ...interaction,
  id: 'interaction-3',
  request: { page: '/account', prompt: [], maxAgeSeconds: 600 },
}

export const consent: Consent = {
  userId: user.id,
  clientId: client.id,
  allowed: [],
  grantedAt: 1000,
}

export const fullConsent: Consent = {
  ...consent,
  clientId: fullClient.id,
  allowed: [
    { resource: 'https://api.example', scope: ['openid', 'email'] },
    { resource: 'https://b.example', scope: [] },
  ],
}

export const grant: Grant = {
  id: grantId(1),
  secret: bytes(1, 16),
  clientId: client.id,
  userId: user.id,
  scope: [],
  resource: [],
  redirectUri: 'http://127.0.0.1:5000/callback',
  redirectUriSent: false,
  authenticatedAt: 1000,
  methods: [],
  authTimeOwed: false,
  claims: { userinfo: [], idToken: [] },
  approvedAt: 1000,
  seq: 0,
  absoluteExpiresAt: 9000,
  expiresAt: 1060,
}

export const fullGrant: Grant = {
  ...grant,
  id: grantId(2),
  secret: bytes(2, 16),
  scope: ['openid', 'email'],
  resource: ['https://api.example', 'https://b.example'],
  redirectUriSent: true,
  codeChallenge: digest(8),
  nonce: 'nonce with \0 and 日本',
  methods: ['pwd', 'otp'],
  acr: 'phr',
  authTimeOwed: true,
  claims: { userinfo: ['name', 'email'], idToken: ['auth_time'] },
  extra: { cnf: { jkt: digest(9) } },
  exchangedFrom: { grantId: grantId(9), tokenId: 'token', clientId: 'client-1' },
  seq: 7,
  rotatedAt: 1030,
  refreshExpiresAt: 4_000_000_000,
  absoluteExpiresAt: 4_000_000_001,
  expiresAt: 4_000_000_002,
  revokedAt: 1040,
  revokedBy: 'rfc6749-4.1.2-code-replay-revokes',
}

export const key: StoredKey = {
  id: 'key-1',
  kind: 'handle',
  algorithm: 'HS256',
  sealedPrivate: 'c2VhbGVk',
  createdAt: 1000,
  activeAt: 1000,
}

export const fullKey: StoredKey = {
  ...key,
  id: 'key-2',
  kind: 'signing',
  algorithm: 'ES256',
  publicJwk: '{"kty":"EC"}',
  createdAt: 900,
  activeAt: 1100,
  retiredAt: 4_000_000_000,
}

export const throttle: Throttle = { key: 'ada \0 192.0.2.0/24', failures: 1, expiresAt: 2000 }

export const rejection: Rejection = {
  id: 'request-1',
  at: 1000,
  method: 'POST',
  path: '/api/oauth/token',
  status: 400,
  error: 'invalid_grant',
  why: 'the code has expired',
  rule: 'rfc6749-4.1.2-code-short-lived',
}

export const fullRejection: Rejection = {
  ...rejection,
  id: 'request-2',
  stored: ['a', 'b with \0 and 日本'],
  received: 1060,
  client: 'client_1',
}

export const auditEvent: AuditEvent = { name: 'key-made', at: 1000, by: 'server', facts: {} }

export const fullAuditEvent: AuditEvent = {
  name: 'consent',
  at: 1010,
  by: 'user',
  from: '192.0.2.0/24',
  userId: user.id,
  clientId: client.id,
  facts: { scope: 'openid with \0 and 日本', endsAt: 2000 },
}
