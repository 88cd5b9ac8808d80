import { grantType } from '../../src/specs/rfc8628-device-grant/rules/codes.ts'
import { keepCookies } from '../helpers/cookie-jar.ts'
import { learnAdministration, learnUser } from './administration.ts'
import type { HttpResponse } from './connection.ts'
import { deviceOf, learnDecision } from './devices.ts'
import { formOf, type PageForm } from './page-parts.ts'
import { keyOfProof, useProof } from './proofs.ts'
import type { Sent } from './request.ts'
import { objectBy } from './request-objects.ts'
import { clientOf, isAt, parametersOf, pushedBy, sentValue, wantedOf } from './rights.ts'
import { verifierOf } from './values.ts'
import { addClient, type LiveClient, type Wanted, type World } from './world.ts'

/** How many values of a kind are kept for reuse. */
const kept = 12

/** Stores what a response contains: cookies, codes, tokens, clients, pages. */
export function learn(sent: Sent, response: HttpResponse, world: World): void {
  const { status, headers, body } = response
  if (
    status === 204 &&
    /^DELETE (?:http:\/\/evil\.example)?\/api\/(?:oauth\/register|admin\/v1\/clients)\//.test(lineOf(sent))
  )
    world.clientCount -= 1
  if (status === 201 && body.includes('"registration_access_token"')) learnClient(JSON.parse(body), world)
  if (status === 200 && sent.method === 'PUT' && 'redirect_uris' in jsonOf(response))
    learnUpdate(jsonOf(response), world)
  if (body.includes('"origin"')) learnAdministration(jsonOf(response), response, world)
  if (body.includes('"has_password"')) learnUser(jsonOf(response), response, world)
  if (status === 303) learnDecision(sent, parametersOf(sent), response, world)
  if (sent.bytes) return
  const { browser } = sent
  if (browser) keepCookies(browser.cookies, response.cookies)
  const location = headers['location']
  if (status === 204 && sent.method === 'DELETE') forgetClient(sent, world)
  if (status === 303 && location !== undefined) learnRedirect(sent, location, world)
  if (status === 200 || status === 201) useProof(sent, world)
  if (status === 201 && isAt(sent, '/api/oauth/par')) learnPushed(sent, jsonOf(response), world)
  if (status !== 200) return
  if (isAt(sent, '/oauth/device_authorization')) learnDevice(sent, jsonOf(response), world)
  if (sent.target.startsWith('/api/oauth/token')) learnTokens(sent, jsonOf(response), world)
  const form = headers['content-type']?.startsWith('text/html') ? formOf(body) : undefined
  if (form === undefined) return
  if (form.action.startsWith('/')) {
    learnForm(form, world)
    if (browser)
      remember(world.pages, { browser, path: form.action, fields: form.fields, decisions: form.decisions })
    return
  }
  const code = form.fields.find(([name]) => name === 'code')?.[1]
  if (code !== undefined) learnCode(sent, code, form.action, world)
}

function learnDevice(sent: Sent, content: Record<string, unknown>, world: World): void {
  if (content['device_code'] === undefined) return
  const asked = parametersOf(sent)
  const device = deviceOf(
    content,
    clientOf(sent, asked, world) ?? '',
    sentValue(asked, 'code_challenge') ?? '',
  )
  world.devices.push(device)
}

function learnPushed(sent: Sent, content: Record<string, unknown>, world: World): void {
  const asked = parametersOf(sent)
  const key = keyOfProof(sent, world)
  const wanted = { ...requestOf(sent, world), clientId: clientOf(sent, asked, world) ?? '' }
  world.pushed.set(String(content['request_uri']), { ...wanted, ...(key !== undefined && { jkt: key }) })
}

function learnForm({ fields }: PageForm, world: World): void {
  const { interaction, user_code: userCode, csrf } = Object.fromEntries(fields)
  const about = interaction ?? (userCode === undefined ? undefined : `device ${userCode}`)
  if (about === undefined || csrf === undefined) return
  world.shown.set(about, (world.shown.get(about) ?? new Set()).add(csrf))
}

function learnClient(registered: Record<string, unknown>, world: World): void {
  const { client_id: id, client_secret: secret, token_endpoint_auth_method: method } = registered
  const client: LiveClient = {
    id: String(id),
    method: String(method),
    redirectUris: registered['redirect_uris'] as string[],
    registrationToken: String(registered['registration_access_token']),
    ...(typeof secret === 'string' && { secret }),
    ...((registered['grant_types'] as string[]).includes(grantType) && { isDevice: true }),
  }
  world.clientCount += 1
  if (client.secret !== undefined) world.clientSecrets.set(client.id, client.secret)
  noteGrants(registered, world)
  world.registrations.set(client.id, client.registrationToken ?? '')
  world.redirectUris.set(client.id, new Set(client.redirectUris))
  addClient(world, client)
}

function learnUpdate(updated: Record<string, unknown>, world: World): void {
  const at = world.clients.findIndex(({ id }) => id === updated['client_id'])
  const client = world.clients[at]
  const redirectUris = updated['redirect_uris'] as string[]
  noteGrants(updated, world)
  for (const uri of redirectUris) world.redirectUris.get(String(updated['client_id']))?.add(uri)
  if (client)
    world.clients[at] = { ...client, redirectUris, method: String(updated['token_endpoint_auth_method']) }
}

/** Notes for what the client may ask. */
export function noteGrants(metadata: Readonly<Record<string, unknown>>, world: World): void {
  const id = String(metadata['client_id'])
  if ((metadata['grant_types'] as string[] | undefined)?.includes(grantType)) world.deviceClients.add(id)
  if (metadata['dpop_bound_access_tokens'] === true) world.boundClients.add(id)
  else world.boundClients.delete(id)
}

function forgetClient({ target }: Sent, world: World): void {
  const at = world.clients.findIndex(({ id }) => target.endsWith(`/register/${id}`))
  if (at >= 0) world.clients.splice(at, 1)
}

function learnRedirect(sent: Sent, location: string, world: World): void {
  if (!location.startsWith('/')) {
    const at = location.search(/[?&]code=/)
    const code = at < 0 ? null : new URLSearchParams(location.slice(at + 1)).get('code')
    if (code !== null) learnCode(sent, code, location.slice(0, at), world)
    return
  }
  const query = new URLSearchParams(location.split('?')[1])
  // A request with a hint that came by POST is held: the redirect names it.
  const begun = query.get('interaction') ?? query.get('held_request')
  if (begun !== null && !world.wanted.has(begun)) world.wanted.set(begun, requestOf(sent, world))
  if (sent.browser) remember(world.steps, { browser: sent.browser, target: location })
}

function learnCode(sent: Sent, code: string, redirectUri: string, world: World): void {
  const interaction = sentValue(parametersOf(sent), 'interaction')
  const wanted = (interaction && world.wanted.get(interaction)) || requestOf(sent, world)
  world.owners.set(code, wanted.clientId)
  if (wanted.jkt !== undefined) world.prover.bound.set(code, wanted.jkt)
  remember(world.codes, { ...wanted, code, redirectUri: wanted.redirectUri && redirectUri })
}

function requestOf(sent: Sent, world: World): Wanted {
  const asked = parametersOf(sent)
  const pushed = pushedBy(asked, world)
  const known = pushed ?? objectBy(sent, world)
  if (known !== undefined) return known
  return { ...wantedOf(asked), verifier: verifierOf.get(sentValue(asked, 'code_challenge') ?? '') }
}

function learnTokens(sent: Sent, content: Record<string, unknown>, world: World): void {
  const asked = parametersOf(sent)
  const used = [...asked.getAll('code'), ...asked.getAll('refresh_token')].find((value) =>
    world.owners.has(value),
  )
  const jkt = content['token_type'] === 'DPoP' ? keyOfProof(sent, world) : undefined
  const clientId = world.owners.get(used ?? '') ?? clientOf(sent, asked, world) ?? ''
  const { access_token: access, refresh_token: refresh, id_token: idToken } = content
  for (const token of [access, refresh]) {
    if (typeof token !== 'string') continue
    world.owners.set(token, clientId)
    if (jkt !== undefined) world.prover.bound.set(token, jkt)
  }
  // No other request may use these: with them, it may change any client.
  if (clientId === world.administrator.id) {
    world.administrator.tokens.set(String(access), String(content['scope']).split(' '))
    return
  }
  remember(world.tokens, {
    clientId,
    access: String(access),
    ...(typeof refresh === 'string' && { refresh }),
    ...(typeof idToken === 'string' && { idToken }),
  })
}

function remember<T>(list: T[], one: T): void {
  list.push(one)
  if (list.length > kept) list.shift()
}

function jsonOf({ headers, body }: HttpResponse): Record<string, unknown> {
  return headers['content-type']?.startsWith('application/json') ? JSON.parse(body) : {}
}

function lineOf({ method, target, bytes }: Sent): string {
  return bytes ? (bytes.toString('latin1').split('\r\n')[0] ?? '') : `${method} ${target}`
}
