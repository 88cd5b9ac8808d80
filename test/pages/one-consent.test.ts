/** A device asks for consent as a browser does: the same page in front of the same checks, RFC 6749 §10.2. */
import t from 'tap'
import { update } from '../../src/domain/decision.ts'
import type { Client } from '../../src/domain/model.ts'
import { grantType } from '../../src/specs/rfc8628-device-grant/rules/codes.ts'
import { integrate, offeredScope, pageOf, signedIn } from '../helpers/authorization.ts'
import { openConfirmation, startDevice } from '../helpers/device.ts'
import { authorizationUrl, type TestClient } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import type { Page, UserAgent } from '../helpers/user-agent.ts'

const notes = 'https://notes.example/api'
const server = await startServer(t, {
  resources: [
    { identifier: notes, name: 'Notes', scopes: ['courses:read', 'courses:write'], tokenFormat: 'opaque' },
  ],
})
const { store } = server.deps
const fields = { scope: 'openid profile courses:read courses:write', resource: notes }

const add = () =>
  integrate(server, {
    consent: 'always',
    grantTypes: ['authorization_code', 'refresh_token', grantType],
    description: {
      logo_uri: 'https://portal.example/logo.png',
      client_uri: 'https://portal.example',
      policy_uri: 'https://portal.example/privacy',
    },
  })

/** Opens the page on which the user decides. */
const doors: Readonly<Record<string, (client: TestClient, agent: UserAgent) => Promise<Page>>> = {
  browser: async (client, agent) => pageOf(await agent.open(authorizationUrl(server, client, fields))),
  device: async (client, agent) =>
    openConfirmation(server, (await startDevice(server, client, fields)).user_code, agent),
}

/** What a page shows of the client and of what it asks for, without what belongs to one request. */
function consentIn({ html }: Page): string {
  const shown = html.slice(html.indexOf('<main'), html.indexOf('</main>'))
  return shown
    .replace(/<h1>.*?<\/h1>/, '')
    .replace(/^<p>.*?<\/p>$/gm, '')
    .replace(/^<p class="(?:device-code|note)">.*?<\/p>$/gm, '')
    .replace(/^<div><dt>[^<]*<\/dt><dd><code>https:.*?<\/div>$/gm, '')
    .replaceAll(/<input type="hidden"[^>]*>/g, '')
    .replaceAll(/(?:href|action)="\/(?:consent|login|device)[^"]*"/g, '')
    .replaceAll(/\s+/g, ' ')
}

/** Follows the link of a page whose address ends so. */
async function follow(page: Page, agent: UserAgent, end: string): Promise<Page> {
  const found = [...page.html.matchAll(/href="([^"]*)"/g)].map(([, href = '']) =>
    href.replaceAll('&amp;', '&'),
  )
  const href = found.find((each) => each.endsWith(end))
  if (href === undefined) throw new Error(`no link ends with ${end}: ${found.join(' ')}`)
  return pageOf(await agent.open(server.origin + href))
}

async function change(client: TestClient, changed: Partial<Client>): Promise<void> {
  const found = await store.find('client', client.id)
  if (found !== undefined) await store.write(update('client', { ...found, ...changed }))
}

/** What the audit log has of the client, without the sign-in to it. */
const eventsOf = async ({ id: clientId }: TestClient) =>
  (await store.audit({ since: 0, clientId, limit: 9 }))
    .filter(({ name }) => name !== 'sign-in')
    .map(({ name, facts }) => ({ name, ...facts }))

t.test('both pages show the same of the client and of what it asks for', async (t) => {
  const client = await add()
  const agent = await signedIn(server, client)
  const pages = new Map<string, string>()
  for (const [door, open] of Object.entries(doors)) {
    const page = await open(client, agent)
    t.match(page.html, /<img class="client-logo" src="\/client-logo\?client_id=[^"]+"/, door)
    t.match(page.html, /Notes/)
    t.match(page.html, /portal\.example/)
    pages.set(door, consentIn(page))
  }
  t.ok(pages.get('browser')?.includes('name="scope"'))
  t.equal(pages.get('device'), pages.get('browser'))
})

for (const [door, open] of Object.entries(doors)) {
  t.test(`${door}: a link clears what changes data, and another ticks it again`, async (t) => {
    const client = await add()
    const agent = await signedIn(server, client)
    const page = await open(client, agent)
    t.strictSame(offeredScope(page).toSorted(), ticked(page))
    const onlyRead = await follow(page, agent, '&only=read')
    t.ok(ticked(onlyRead).includes('courses:read'))
    t.notOk(ticked(onlyRead).includes('courses:write'))
    const [back = ''] = [...onlyRead.html.matchAll(/<div class="bar">[\s\S]*?<a href="([^"]*)"/g)].map(
      ([, href]) => href?.replaceAll('&amp;', '&'),
    )
    t.ok(ticked(pageOf(await agent.open(server.origin + back))).includes('courses:write'))
  })

  for (const [what, changed] of Object.entries({
    name: { name: 'Renamed' },
    'redirect URIs': { redirectUris: ['https://portal.example/callback', 'https://other.example/callback'] },
    'privacy policy': { policyUri: 'https://other.example/privacy' },
  }))
    t.test(
      `${door}: a client that changes its ${what} while the page is open is asked for again`,
      async (t) => {
        const client = await add()
        const agent = await signedIn(server, client)
        const page = await open(client, agent)
        await change(client, changed)
        const again = pageOf(await agent.submit(page, { decision: 'approve' }))
        t.match(again.html, /role="alert">This app has changed/)
        t.strictSame(await eventsOf(client), [], 'nothing is granted')
        await agent.submit(again, { decision: 'approve' })
        t.match(await eventsOf(client), [{ name: 'consent' }])
      },
    )

  t.test(`${door}: a user who may not use the client is told, and the audit log says why`, async (t) => {
    const client = await add()
    const agent = await signedIn(server, client)
    const page = await open(client, agent)
    await change(client, { extra: { allowed_groups: ['none'] } })
    const denied = pageOf(await agent.submit(page, { decision: 'approve' }))
    t.equal(denied.status, 403)
    t.notOk(denied.html.includes('value="approve"'))
    await agent.submit(denied, { decision: 'deny' })
    const events = await eventsOf(client)
    t.match(events, [{ name: 'client-access-denied', rule: 'lychgate-group-required' }])
    t.equal(events.length, 1)
  })

  t.test(`${door}: a user who denies is recorded, and gives nothing`, async (t) => {
    const client = await add()
    const agent = await signedIn(server, client)
    await agent.submit(await open(client, agent), { decision: 'deny' })
    t.match(await eventsOf(client), [{ name: 'consent-refused' }])
  })
}

function ticked(page: Page): readonly string[] {
  const [form] = page.forms
  const boxes = form?.fields.filter(({ name, checked }) => name === 'scope' && checked) ?? []
  return boxes.map(({ value }) => value).toSorted()
}
