import { grantType } from '../../src/specs/rfc8628-device-grant/rules/codes.ts'
import { byClient, clientFor, resources } from './by-client.ts'
import type { HttpResponse } from './connection.ts'
import type { Dice } from './dice.ts'
import type { Draft, Pair, Sent } from './request.ts'
import { nasty, nearly, verifierOf } from './values.ts'
import type { World } from './world.ts'

/** A device that waits for its user, RFC 8628, and what became of it. */
export interface LiveDevice {
  readonly clientId: string
  readonly deviceCode: string
  /** As it is shown, with the dash. */
  readonly userCode: string
  readonly verifier: string | undefined
  /** Whether a user decided so, in a form that was shown. */
  isApproved: boolean
  isDenied: boolean
  isRedeemed: boolean
}

const plain = { query: [], headers: [] } as const

/** Older ones stay known, because they must stay used. */
function latest({ devices }: World): readonly LiveDevice[] {
  return devices.slice(-6)
}

/** Requests of devices and of their users. */
export const deviceDrafts = { startDevice, openDevice, pollDevice } as const

/** A device asks for its codes. */
function startDevice(world: World, dice: Dice): Draft | undefined {
  const client = dice.draw(world.clients.filter(({ isDevice }) => isDevice || dice.oneIn(12)))
  const challenge = dice.draw([...verifierOf.keys()]) ?? ''
  const fields: Pair[] = [
    ['scope', dice.pick(['openid', 'courses:read', 'openid courses:read courses:write', 'orders:read'])],
    ...(dice.oneIn(3) ? pkce(challenge) : []),
    ...resources(world, dice),
  ]
  return client && byClient(client, '/oauth/device_authorization', fields)
}

function pkce(challenge: string): Pair[] {
  return [
    ['code_challenge', challenge],
    ['code_challenge_method', 'S256'],
  ]
}

/** A user opens the page for the code, sometimes by the link, or the page after it. */
function openDevice(world: World, dice: Dice): Draft {
  const code = dice.draw(latest(world))?.userCode ?? 'BCDF-GHJK'
  const query: Pair[] = dice.oneIn(2) ? [['user_code', code]] : []
  const browser = dice.draw(world.browsers)
  const from = { ...plain, method: 'GET', ...(browser && { browser }) }
  if (!dice.oneIn(4)) return { ...from, path: '/device', query }
  const more: Pair[] = dice.oneIn(3) ? [[dice.pick(['switch', 'changed']), '1']] : []
  return { ...from, path: '/device/confirm', query: [...query, ...more] }
}

/** What a user types as the code of a device: mostly one that waits, in one of the accepted forms. */
export function typedCode(world: World, dice: Dice): string {
  const waiting = latest(world).filter(({ isApproved, isDenied }) => !isApproved && !isDenied)
  const code = dice.draw(dice.oneIn(12) ? world.devices : waiting)?.userCode ?? 'BCDF-GHJK'
  switch (dice.below(16)) {
    case 0:
      return nearly(code, dice)
    case 1:
      return dice.pick(nasty)
    case 2:
      return code.toLowerCase().replace('-', ' ')
    case 3:
      return code.replace('-', '')
    default:
      return code
  }
}

/** What a user mostly decides: to allow a device, and what the page begins with elsewhere. */
export function usualDecision(path: string, decisions: readonly string[]): string {
  return path === '/device/confirm' ? 'approve' : (decisions[0] ?? 'approve')
}

/** A device polls: mostly one that was approved. */
function pollDevice(world: World, dice: Dice): Draft | undefined {
  const ready = latest(world).filter(({ isApproved, isRedeemed }) => isApproved && !isRedeemed)
  const device = dice.draw(ready.length === 0 || dice.oneIn(4) ? world.devices : ready)
  const client = device && clientFor(device, world, dice)
  if (device === undefined || client === undefined) return undefined
  const fields: Pair[] = [
    ['grant_type', grantType],
    ['device_code', device.deviceCode],
    ...(device.verifier === undefined ? [] : [['code_verifier', device.verifier] as const]),
    ...resources(world, dice),
  ]
  return byClient(client, '/api/oauth/token', fields)
}

/** Stores the codes of a new device. */
export function deviceOf(content: Record<string, unknown>, clientId: string, challenge: string): LiveDevice {
  return {
    clientId,
    deviceCode: String(content['device_code']),
    userCode: String(content['user_code']),
    verifier: verifierOf.get(challenge),
    isApproved: false,
    isDenied: false,
    isRedeemed: false,
  }
}

/** Stores what a user decided; hardly HTTP may still approve. */
export function learnDecision(
  sent: Sent,
  asked: URLSearchParams,
  response: HttpResponse,
  world: World,
): void {
  const [, userCode] =
    /^\/device\/confirm\?user_code=([A-Z-]{9})/.exec(response.headers['location'] ?? '') ?? []
  const device = world.devices.find((each) => each.userCode === userCode)
  if (device === undefined || response.headers['location']?.endsWith('&changed=1')) return
  const isShown = world.shown.get(`device ${userCode}`)?.has(asked.get('csrf') ?? '') ?? false
  const approves = asked.getAll('decision').filter(Boolean)[0] === 'approve'
  if (sent.bytes?.includes('decision=approve') || (approves && isShown && !device.isDenied))
    device.isApproved = true
  else if (asked.has('decision') && isShown && !device.isApproved) device.isDenied = true
}

/** What is wrong with tokens for a device; undefined if nothing is. */
export function faultOfDevice(client: string, asked: URLSearchParams, world: World): string | undefined {
  const code = asked.getAll('device_code').find(Boolean)
  const device = world.devices.find(({ deviceCode }) => deviceCode === code)
  if (device === undefined) return `tokens for a device code that is not ours: ${code}`
  if (device.clientId !== client) return `tokens for ${client} by a device of ${device.clientId}`
  if (!device.isApproved) return `tokens for ${device.userCode}, which no user approved`
  if (device.isRedeemed) return 'a device code redeemed twice'
  if (device.verifier !== undefined && asked.getAll('code_verifier').find(Boolean) !== device.verifier)
    return 'tokens for a device without its code verifier'
  device.isRedeemed = true
  return undefined
}
