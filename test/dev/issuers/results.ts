import { profiles } from '../../../src/dev/issuers/catalogue.ts'
import {
  onlyReported,
  pollsAfterTheEnd,
  pollsTooSoon,
  usesTheExpired,
} from '../../../src/dev/issuers/criteria.ts'
import { deviceClients } from '../../../src/dev/issuers/device-profiles.ts'
import type { Profile } from '../../../src/dev/issuers/profile.ts'
import type { Report } from '../../../src/dev/issuers/report.ts'
import { makeClientKey } from '../../helpers/assertions.ts'
import type { TestServer } from '../../helpers/server.ts'
import { newUser, type TestUser } from '../../helpers/user.ts'
import { addClient } from '../../helpers/wire.ts'
import {
  type ClientUnderTest,
  type Ending,
  runClient,
  type ServiceClient,
  type Surroundings,
} from './client.ts'

/** The result of a client at one issuer: its own message, and the verdict of the server. */
export interface Result extends Ending {
  readonly id: string
  readonly client: string
  readonly verdict: string
}

/** Runs every client against every issuer of a development server. */
export async function runAll(
  server: TestServer,
  clients: readonly ClientUnderTest[],
): Promise<readonly Result[]> {
  const users = new Map(
    profiles.map(({ id }): [string, TestUser] => [id, newUser({ issuer: issuerOf(server, id) })]),
  )
  const service = await addService(server)
  const results: Result[] = []
  for (const client of clients) {
    await fetch(`${server.issuer}/_dev/issuers/report`, { method: 'DELETE' })
    const endings = new Map<string, Ending>()
    for (const profile of profiles) {
      const user = users.get(profile.id)
      if (user === undefined) throw new Error(`nobody for ${profile.id}`)
      endings.set(profile.id, await runClient(client, { ...surroundingsOf(server, profile), user, service }))
      if (profile.fooledWhen === usesTheExpired) await resetClock(server)
    }
    for (const { id, verdict } of (await reportOf(server)).profiles) {
      results.push({ id, client: client.name, verdict, ...(endings.get(id) ?? { step: '' }) })
    }
  }
  return results
}

/** Arranges a client that acts for itself, and signs the requests of its users, as `lychgate client add` does. */
export async function addService(server: TestServer): Promise<ServiceClient> {
  const key = makeClientKey('ES256')
  const { id } = await addClient(server, {
    authenticationMethod: 'private_key_jwt',
    grantTypes: ['client_credentials', 'authorization_code'],
    redirectUris: ['http://127.0.0.1/callback'],
    scope: ['openid', 'courses:read'],
    description: { jwks: { keys: [key.jwk] } },
  })
  return { id, key }
}

/** The current verdict of the server. */
export async function reportOf(server: TestServer): Promise<Report> {
  return (await (await fetch(`${server.issuer}/_dev/issuers/report`)).json()) as Report
}

/** Resets the clock to the time of the machine. */
export async function resetClock(server: TestServer): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  await fetch(`${server.issuer}/_dev/clock`, { method: 'POST', headers, body: '{"reset":true}' })
}

export function issuerOf(server: TestServer, id: string): string {
  return `${server.issuer}/_dev/issuers/${id}`
}

/** Polling begins immediately where codes expire soon, and ends soon where it would take long. */
const devices = new Map<unknown, Surroundings['device']>([
  [pollsAfterTheEnd, 'waits'],
  [pollsTooSoon, 'gives up'],
])

/** What a client of this profile is given, except the user. */
export function surroundingsOf(
  server: TestServer,
  { id, fooledWhen }: Profile,
): Omit<Surroundings, 'user' | 'service'> {
  const issuer = issuerOf(server, id)
  const tell = async (outcome: string) => {
    const headers = { 'content-type': 'application/json' }
    await fetch(`${issuer}/outcome`, { method: 'POST', headers, body: JSON.stringify({ outcome }) })
  }
  const waitForExpiry = async () => {
    server.advance(3600)
    return server.now()
  }
  const isForDevices = id === 'reference' || deviceClients.some((profile) => profile.id === id)
  return {
    issuer,
    ...(isForDevices && { device: devices.get(fooledWhen) ?? 'approved' }),
    ...(fooledWhen === onlyReported && { tell }),
    ...(fooledWhen === usesTheExpired && { waitForExpiry }),
  }
}
