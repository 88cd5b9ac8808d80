import { hash, randomBytes } from 'node:crypto'
import { mkdtempSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { insert, type Write } from '../../src/domain/decision.ts'
import { approveGrant, mintGrantId, redeemGrant, rotateGrant } from '../../src/domain/grant.ts'
import type { Client, Grant, Session } from '../../src/domain/model.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import { keyPolicy } from '../../src/keys/key-policy.ts'
import { type KeyRing, loadKeyRing } from '../../src/keys/key-ring.ts'
import { loadConfig } from '../../src/settings/load.ts'
import { openStore } from '../../src/storage/open.ts'
import type { Store } from '../../src/storage/store.ts'
import { systemClock, systemRandom } from '../../src/system/system.ts'
import { createUser } from '../../src/users/rules/user.ts'

/** A data folder with this many active grants, as years of use leave it, and the credentials of their clients. */
export interface GrownStore {
  readonly grants: number
  readonly folder: string
  readonly environment: Readonly<Record<string, string>>
  readonly issuer: string
  readonly keys: KeyRing
  readonly apps: readonly string[]
  /** Confidential, for introspection. */
  readonly api: { readonly id: string; readonly secret: string }
  /** 12 bytes of id and 16 of secret per grant. */
  readonly handles: Buffer
  /** What the grants added to the file, including their index. */
  readonly bytesAGrant: number
}

/** Grants per user, and apps that users use. */
const [perPerson, appCount] = [5, 20]
const daySeconds = 86_400
/** By the number of a grant: every other one is for an app that requests ID Tokens. */
const scopes = [
  ['openid', 'courses:read'],
  ['posts:read', 'pages:read'],
] as const
const secret = 'only for the benchmark, which nobody else reads'
const batch = 1000
export const handleBytes = 28

/** Makes a store of this many grants with the product's own decisions and writes. */
export async function growStore(grants: number, port: number): Promise<GrownStore> {
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-growth-'))
  const file = join(folder, 'lychgate.db')
  const issuer = `http://localhost:${port}`
  const environment = {
    LYCHGATE_ISSUER: issuer,
    LYCHGATE_PORT: String(port),
    LYCHGATE_DATA: folder,
    LYCHGATE_SECRET: secret,
    LYCHGATE_RATE_LIMITS: 'off',
    LYCHGATE_LIMITS_GRANTS_PER_USER_AND_CLIENT: '0',
  }
  const config = loadConfig({ mode: 'serve', environment })
  const api = { id: clientId(), secret: randomBytes(32).toString('base64url') }
  const apps = Array.from({ length: appCount }, clientId)
  const users = Array.from(
    { length: Math.ceil(grants / perPerson) },
    () => `user_${randomBytes(16).toString('base64url')}`,
  )
  const first = await openStore(`sqlite:${file}`)
  const sources = {
    store: first,
    secret,
    clock: systemClock,
    random: systemRandom,
    policy: keyPolicy(config),
  }
  const keys = await loadKeyRing({ ...sources, server: 'production' })
  await fillOthers(first, issuer, apps, api, users)
  await first.close()
  const before = statSync(file).size
  const store = await openStore(`sqlite:${file}`)
  const handles = await fillGrants(store, grants, { issuer, apps, users, lifetimes: config.lifetimes })
  await store.close()
  const bytesAGrant = (statSync(file).size - before) / grants
  return { grants, folder, environment, issuer, keys, apps, api, handles, bytesAGrant }
}

function clientId(): string {
  return `client_${randomBytes(16).toString('base64url')}`
}

async function fillOthers(
  store: Store,
  issuer: string,
  apps: readonly string[],
  api: GrownStore['api'],
  users: readonly string[],
): Promise<void> {
  const now = systemClock()
  const app: Client = {
    id: '',
    origin: 'integration',
    issuedAt: now - 100,
    usedAt: now,
    name: 'App',
    localized: {},
    applicationType: 'web',
    redirectUris: [redirectUri],
    postLogoutRedirectUris: [],
    authenticationMethod: 'none',
    grantTypes: ['authorization_code', 'refresh_token'],
    contacts: [],
    idTokenSignedResponseAlg: 'ES256',
    requireAuthTime: false,
    pkceOptional: false,
    consent: 'remember',
    introspects: [],
  }
  const resourceServer: Client = {
    ...app,
    id: api.id,
    origin: 'resource-server',
    redirectUris: [],
    authenticationMethod: 'client_secret_basic',
    grantTypes: [],
    secretHash: hashSecret(api.secret),
    introspects: [issuer],
  }
  const clients = [resourceServer, ...apps.map((id) => ({ ...app, id }))]
  await store.write(...clients.map((client): Write => insert('client', client)))
  for (let from = 0; from < users.length; from += batch) {
    const some = users.slice(from, from + batch).map((id, index): Write => {
      const fields = { username: `user-${from + index}`, email: `user-${from + index}@example.org` }
      const user = createUser(fields, randomBytes(16), now)
      return insert('user', { ...user, id })
    })
    await store.write(...some)
  }
}

const redirectUri = 'https://app.example/callback'

/** Every grant approved, redeemed and refreshed once, one after another over the last four weeks. */
async function fillGrants(
  store: Store,
  grants: number,
  among: {
    readonly issuer: string
    readonly apps: readonly string[]
    readonly users: readonly string[]
    readonly lifetimes: ReturnType<typeof loadConfig>['lifetimes']
  },
): Promise<Buffer> {
  const handles = Buffer.alloc(grants * handleBytes)
  const [end, span] = [systemClock() - 3600, 28 * daySeconds]
  for (let from = 0; from < grants; from += batch) {
    const writes: Write[] = []
    for (let n = from; n < Math.min(from + batch, grants); n += 1) {
      const at = end - span + Math.floor((span * n) / grants)
      const [userId, app] = [pick(among.users), appOf(among.apps, n)]
      const approved = approve({ userId, app, scope: scopes[wantsIdToken(n) ? 0 : 1] }, among, at)
      handles.write(approved.id, n * handleBytes, 'base64url')
      handles.write(approved.secret, n * handleBytes + 12, 'base64url')
      writes.push({ op: 'insertGrant', grant: approved }, ...used(approved, among, at))
    }
    await store.write(...writes)
  }
  return handles
}

function approve(
  {
    userId,
    app,
    scope,
  }: { readonly userId: string; readonly app: string; readonly scope: readonly string[] },
  { issuer, lifetimes }: Parameters<typeof fillGrants>[2],
  at: number,
): Grant {
  const request = {
    clientId: app,
    redirectUri,
    redirectUriSent: true,
    responseMode: 'query',
    scope,
    resource: [issuer],
    codeChallenge: hash('sha256', randomBytes(32), 'base64url'),
    nonce: randomBytes(16).toString('base64url'),
    prompt: [],
    claims: { userinfo: [], idToken: [] },
  } as const
  const session: Session = {
    id: '',
    userId,
    authenticatedAt: at - Math.floor(Math.random() * 40_000),
    methods: ['pwd'],
    createdAt: at,
    idleExpiresAt: at,
    expiresAt: at,
  }
  const fresh = {
    grantId: mintGrantId(randomBytes(8), at),
    grantSecret: randomBytes(16).toString('base64url'),
    authTimeOwed: false,
  }
  return approveGrant(request, session, scope, fresh, lifetimes, at)
}

function used(approved: Grant, { lifetimes }: Parameters<typeof fillGrants>[2], at: number): Write[] {
  const issue = { accessTokenSeconds: 3600, refreshable: true }
  const redeemed = redeemGrant(approved, issue, lifetimes, at + 2)
  if ('rejection' in redeemed) throw redeemed.rejection
  const rotated = rotateGrant(redeemed.result, 1, issue, lifetimes, at + 3400)
  if ('rejection' in rotated) throw rotated.rejection
  return [...redeemed.writes, ...rotated.writes]
}

/** Whether a refresh of this grant issues an ID Token. */
export function wantsIdToken(n: number): boolean {
  return n % 2 === 0
}

/** The app of a grant, by its number. */
export function appOf(apps: readonly string[], n: number): string {
  return apps[n % apps.length] ?? ''
}

function pick<T>(list: readonly T[]): T {
  // `as`: the index is within.
  return list[Math.floor(Math.random() * list.length)] as T
}
