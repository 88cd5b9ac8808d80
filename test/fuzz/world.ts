import { buildApp } from '../../src/app/app.ts'
import type { Config } from '../../src/config/schema.ts'
import { insert } from '../../src/domain/decision.ts'
import type { StoredKey } from '../../src/domain/model.ts'
import type { Deps } from '../../src/feature/deps.ts'
import { keyPolicy } from '../../src/keys/key-policy.ts'
import { type KeyRing, loadKeyRing } from '../../src/keys/key-ring.ts'
import { loadConfig } from '../../src/settings/load.ts'
import { openStore } from '../../src/storage/open.ts'
import type { Store } from '../../src/storage/store.ts'
import type { RandomSource } from '../../src/system/system.ts'
import { createUser } from '../../src/users/rules/user.ts'
import { type ClientKey, makeClientKey } from '../helpers/assertions.ts'
import { cheapHash } from '../helpers/cheap-hash.ts'
import { seededRandom, type TestClock, testClock } from '../helpers/clock.ts'
import { type Administrator, givenPassword } from './administration.ts'
import type { Signer } from './assertions.ts'
import { addDelegate, type Delegate } from './delegate.ts'
import type { LiveDevice } from './devices.ts'
import { fetchesLoopback, type Site, startSite } from './documents.ts'
import { type Admission, makeAdmission } from './initial-tokens.ts'
import {
  addOperatorClients,
  administratorName,
  boundName,
  delegateName,
  resourceServerName,
} from './operator-clients.ts'
import { makeProver, type Prover } from './proofs.ts'
import type { Pair } from './request.ts'
import { requesterName } from './request-objects.ts'

/** A user's browser: its cookies. */
export interface Browser {
  readonly cookies: Map<string, string>
}

/** A client as its developer knows it. */
export interface LiveClient {
  readonly id: string
  readonly secret?: string
  readonly method: string
  readonly redirectUris: readonly string[]
  /** It gets tokens without a user, RFC 6749 §4.4. */
  readonly isMachine?: true
  /** It asks for codes of devices, RFC 8628. */
  readonly isDevice?: true
  /** RFC 7592: only self-registered clients have it. */
  readonly registrationToken?: string
}

/** A pending authorization request, and the target of its response. */
export interface Wanted {
  readonly clientId: string
  readonly redirectUri: string | undefined
  readonly state: string | undefined
  readonly verifier: string | undefined
  /** The key that the code is bound to, RFC 9449 §10. */
  readonly jkt?: string
}

export interface LiveCode extends Wanted {
  readonly code: string
}

export interface LiveTokens {
  readonly clientId: string
  readonly access: string
  readonly refresh?: string
  readonly idToken?: string
}

/** A page with a form, in the browser that shows it. */
export interface LivePage {
  readonly browser: Browser
  readonly path: string
  readonly fields: readonly Pair[]
  readonly decisions: readonly string[]
}

/** The client that signs its authorization requests, RFC 9101. */
export interface Requester {
  readonly id: string
  readonly redirectUri: string
  readonly key: ClientKey
  /** What each request object without a fault asks for. */
  readonly good: Map<string, Wanted>
  /** What each one asks for. */
  readonly made: Map<string, Wanted>
}

/** A server with everything a request can name, and with what each client and user has a right to. */
export interface World {
  readonly issuer: string
  readonly origin: string
  readonly port: number
  readonly deps: Deps
  readonly clock: TestClock
  readonly browsers: readonly Browser[]
  readonly clients: LiveClient[]
  /** Newest last; used values stay, so that they are used again. */
  readonly codes: LiveCode[]
  readonly tokens: LiveTokens[]
  readonly pages: LivePage[]
  /** Redirects within this server that a browser has not followed yet. */
  readonly steps: { readonly browser: Browser; readonly target: string }[]
  /** By interaction. */
  readonly wanted: Map<string, Wanted>
  /** By `request_uri`, RFC 9126. */
  readonly pushed: Map<string, Wanted>
  /** Newest last. */
  readonly devices: LiveDevice[]
  /** How many of the clients, from the first, are the operator's. */
  readonly operatorClients: number
  /** The scope of each client that gets tokens without a user. */
  readonly machines: ReadonlyMap<string, readonly string[]>
  readonly resourceServers: ReadonlySet<string>
  /** Clients that were registered for the grant type of devices. */
  readonly deviceClients: Set<string>
  /** Clients whose tokens must be bound to a key. */
  readonly boundClients: Set<string>
  readonly administrator: Administrator
  readonly delegate: Delegate
  /** Every redirect URI that was ever registered, by client. */
  readonly redirectUris: Map<string, Set<string>>
  /** The CSRF tokens of the pages shown for each interaction. */
  readonly shown: Map<string, Set<string>>
  /** Registration access tokens by client, RFC 7592 §2. */
  readonly registrations: Map<string, string>
  /** Secrets by client; a client that is not here has none. */
  readonly clientSecrets: Map<string, string>
  /** The owner of a code or token. */
  readonly owners: Map<string, string>
  readonly redeemed: Set<string>
  readonly signer: Signer
  readonly requester: Requester
  readonly prover: Prover
  readonly site: Site
  readonly admission: Admission
  /** Values that give no right to anything. */
  readonly foreign: string[]
  /** What no response and no log line may contain. */
  readonly secrets: string[]
  /** Clients that must exist. */
  clientCount: number
  /** Everything stored about users, which does not change. */
  readonly users: string
  /** Forbidden contents of the log. */
  readonly logFaults: string[]
  close(): Promise<void>
}

export const passwords = { alice: 'alice-in-tests', bob: 'bob-in-tests', carol: 'carol-in-tests' }
const [api, jwtApi] = ['https://api.example/', 'https://jwt.example/v1']

/** Adds a client; the operator's, which come first, stay. */
export function addClient({ clients, operatorClients }: World, client: LiveClient): void {
  clients.push(client)
  if (clients.length > operatorClients + 8) clients.splice(operatorClients, 1)
}

/** Keys are slow to make: all worlds of a run begin with the same. */
export async function makeKeys(seed: string): Promise<readonly StoredKey[]> {
  const store = await openStore('sqlite::memory:')
  await openKeyRing(fuzzConfig(), store, testClock(), seededRandom(seed))
  const keys = await store.list('key')
  await store.close()
  return keys
}

function openKeyRing(config: Config, store: Store, clock: TestClock, random: RandomSource): Promise<KeyRing> {
  return loadKeyRing({ store, secret: config.secret ?? '', policy: keyPolicy(config), clock, random })
}

/** A new server with its clients and users; everything but signatures follows from the seed. */
export async function startWorld(seed: string, storedKeys: readonly StoredKey[]): Promise<World> {
  const config = fuzzConfig()
  const store = await openStore('sqlite::memory:')
  const [clock, random] = [testClock(), seededRandom(seed)]
  await store.write(...storedKeys.map((key) => insert('key', key)))
  const deps: Deps = { config, store, keys: await openKeyRing(config, store, clock, random), clock, random }
  for (const [username, password] of Object.entries(passwords)) {
    const fields = { username, email: `${username}@example.test`, passwordHash: cheapHash(password, random) }
    const user = createUser({ ...fields, claims: { name: `The ${username}` } }, random(16), clock())
    await store.write(insert('user', user))
  }
  const logFaults: string[] = []
  const logTo = { write: (line: string) => watchLog(line, logFaults) }
  const app = await buildApp(deps, { development: fetchesLoopback, logTo })
  await app.listen({ port: 0, host: 'localhost' })
  const address = app.server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const key = makeClientKey('EdDSA')
  const requestKey = makeClientKey('EdDSA', 'requests')
  const operatorClients = await addOperatorClients(deps, key, requestKey)
  const idsOf = (is: (operatorClient: (typeof operatorClients)[number]) => boolean) =>
    operatorClients.filter(is).map(({ id }) => id)
  const users = await store.list('user')
  const signer = operatorClients.find(({ method }) => method === 'private_key_jwt')
  const requester = operatorClients.find(({ name }) => name === requesterName)
  const world: World = {
    issuer: config.issuer,
    origin: `http://localhost:${port}`,
    port,
    deps,
    clock,
    browsers: Array.from({ length: 4 }, () => ({ cookies: new Map() })),
    clients: [...operatorClients],
    codes: [],
    tokens: [],
    pages: [],
    steps: [],
    wanted: new Map(),
    pushed: new Map(),
    devices: [],
    operatorClients: operatorClients.length,
    machines: new Map(
      operatorClients.flatMap(({ id, isMachine, scope }) => (isMachine ? [[id, scope]] : [])),
    ),
    resourceServers: new Set(idsOf(({ name }) => name === resourceServerName)),
    deviceClients: new Set(idsOf(({ isDevice }) => isDevice === true)),
    boundClients: new Set(idsOf(({ name }) => name === boundName)),
    administrator: {
      id: idsOf(({ name }) => name === administratorName)[0] ?? '',
      tokens: new Map(),
      added: new Map(),
      addedUsers: new Map(),
      userIds: users.map(({ id }) => id),
    },
    delegate: await addDelegate(app, deps, idsOf(({ name }) => name === delegateName)[0] ?? ''),
    redirectUris: new Map(operatorClients.map(({ id, redirectUris }) => [id, new Set(redirectUris)])),
    shown: new Map(),
    registrations: new Map(),
    clientSecrets: new Map(
      operatorClients.flatMap(({ id, secret }) => (secret === undefined ? [] : [[id, secret]])),
    ),
    owners: new Map(),
    redeemed: new Set(),
    signer: { id: signer?.id ?? '', key, good: new Map(), used: new Set() },
    requester: {
      id: requester?.id ?? '',
      redirectUri: requester?.redirectUris[0] ?? '',
      key: requestKey,
      good: new Map(),
      made: new Map(),
    },
    prover: makeProver(),
    site: await startSite(),
    admission: await makeAdmission(store, random, clock()),
    foreign: [],
    secrets: [config.secret ?? '', '$argon2', givenPassword, ...Object.values(passwords)],
    clientCount: operatorClients.length,
    users: JSON.stringify(users),
    logFaults,
    close: async () => {
      world.site.close()
      await app.close()
      await store.close()
    },
  }
  return world
}

function fuzzConfig(): Config {
  const flags = { issuer: 'http://localhost:9400', secret: 'a secret for tests that is long enough' }
  const loaded = loadConfig({ mode: 'serve', flags })
  const many = 1_000_000
  return {
    ...loaded,
    mode: 'dev',
    rateLimits: 'off',
    admin: { ...loaded.admin, api: 'on', secondFactor: 'required' },
    accounts: {
      ...loaded.accounts,
      attributes: [
        { name: 'badge', type: 'string', values: [], visible: 'administrator', editable: 'administrator' },
      ],
    },
    fetch: { ...loaded.fetch, perOriginPerMinute: many },
    deviceGrant: { ...loaded.deviceGrant, wrongCodesPerPrefix: many },
    resources: [
      { identifier: api, name: 'An API', scopes: ['openid', 'courses:read'], tokenFormat: 'opaque' },
      {
        identifier: jwtApi,
        name: 'Another API',
        scopes: ['courses:read', 'orders:read'],
        tokenFormat: 'jwt',
      },
    ],
    lifetimes: { ...loaded.lifetimes, codeSeconds: 200, accessTokenSeconds: 86_400 },
    // Thousands of guesses would otherwise only reach the throttle.
    signInThrottle: {
      failuresPerAccountAndPrefix: 20,
      failuresPerPrefix: many,
      failuresPerPrefixAndUser: 0,
      failuresPerAccount: many,
      failuresInARow: many,
      windowSeconds: 60,
    },
    sweepSeconds: 1_000_000,
  }
}

function watchLog(line: string, faults: string[]): void {
  if (faults.length > 10) return
  const isFailure = /"level":(?:50|60)/.test(line)
  if (isFailure || /lyc_[a-z]+_[\w-]{20}|eyJ[\w-]+\.[\w-]+\.|\$argon2|-in-tests/.test(line)) faults.push(line)
}
