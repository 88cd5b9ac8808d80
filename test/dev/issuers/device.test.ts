/** Issuers that treat polls of devices wrongly, and two clients: one polls on whatever comes, and one does as it should. */
import t from 'tap'
import { deviceClients } from '../../../src/dev/issuers/device-profiles.ts'
import { grantType } from '../../../src/specs/rfc8628-device-grant/rules/codes.ts'
import { decide, poll, startDevice } from '../../helpers/device.ts'
import { register } from '../../helpers/flow.ts'
import { startServer } from '../../helpers/server.ts'
import { json } from '../../helpers/wire.ts'
import { issuerOf, reportOf } from './results.ts'

const headers = { 'content-type': 'application/json' }
const server = await startServer(t, { mode: 'dev' })
// Verdicts depend on the time between polls.
await fetch(`${server.issuer}/_dev/clock`, { method: 'POST', headers, body: '{"freeze":true}' })

/** Polls, has the user approve, waits, and polls again: what the responses were. */
async function pollTwice(id: string, seconds: number): Promise<readonly unknown[]> {
  const issuer = { issuer: issuerOf(server, id) }
  const client = await register(issuer, { redirect_uris: [], grant_types: [grantType] })
  const device = await startDevice(issuer, client, { scope: 'courses:read' })
  const ask = async () => {
    const response = await poll(issuer, client, device)
    const { error, token_type: type } = await json(response)
    return `${response.status} ${error ?? type}`
  }
  const first = await ask()
  await decide(issuer, device.user_code)
  server.advance(seconds)
  return [`${device.expires_in} ${device.interval}`, first, await ask()]
}

async function verdictOf(id: string) {
  const { profiles } = await reportOf(server)
  return profiles.find((one) => one.id === id)?.verdict
}

const pending = '400 authorization_pending'
/** What each responds, how long a sound client waits between its polls, and what is too soon or too late. */
const faults: Readonly<
  Record<string, { readonly says: readonly string[]; readonly sound: number; readonly wrong: number }>
> = {
  'device-code-never-ends': { says: ['2 1', pending, pending], sound: 1, wrong: 5 },
  'device-slow-down': { says: ['600 1', '400 slow_down', '200 Bearer'], sound: 6, wrong: 2 },
}

t.test('each issuer has one fault, and the correct one has none', async (t) => {
  t.strictSame(await pollTwice('reference', 5), ['600 5', pending, '200 Bearer'])
  for (const [id, { says, wrong }] of Object.entries(faults)) {
    t.strictSame(await pollTwice(id, wrong), says, id)
    t.equal(await verdictOf(id), 'fooled', id)
  }
  const id = 'device-denied-goes-on'
  t.strictSame(await pollTwice(id, 5), ['600 5', '400 access_denied', '200 Bearer'])
  t.equal(await verdictOf(id), 'fooled')
  t.strictSame(deviceClients.map((profile) => profile.id).toSorted(), [...Object.keys(faults), id].toSorted())
})

t.test('a client that polls as it should was not fooled', async (t) => {
  await fetch(`${server.issuer}/_dev/issuers/report`, { method: 'DELETE' })
  for (const [id, { says, sound }] of Object.entries(faults)) {
    t.strictSame(await pollTwice(id, sound), says, id)
    t.equal(await verdictOf(id), 'rejected', id)
  }
  const issuer = { issuer: issuerOf(server, 'device-denied-goes-on') }
  const client = await register(issuer, { redirect_uris: [], grant_types: [grantType] })
  // Another device of the same client is another matter.
  for (const device of [await startDevice(issuer, client), await startDevice(issuer, client)])
    t.match(await json(await poll(issuer, client, device)), { error: 'access_denied' })
  t.equal(await verdictOf('device-denied-goes-on'), 'rejected')
})
