import { Type } from '@sinclair/typebox'
import { accept, update } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { narrowByUser } from '../../domain/interaction.ts'
import { parseScope } from '../../domain/scope.ts'
import type { Plugin } from '../../feature/deps.ts'
import { userContext } from '../../http/address-prefix.ts'
import { beginSession } from '../../users/rules/session.ts'
import { canonicalLogin } from '../../users/rules/user.ts'
import { deviceApproval } from './approve.ts'
import { formatUserCode, parseUserCode } from './rules/codes.ts'
import { type DeviceAuthorization, decideDevice, deviceKind } from './rules/device.ts'

const rule = 'lychgate-dev-device'

/** At most so many devices are listed. */
const mostListed = 100

const Approval = Type.Object(
  {
    user: Type.String({ minLength: 1, description: 'User name or email address.' }),
    scope: Type.Optional(Type.String({ description: 'Absent: all that the device asked for.' })),
  },
  { additionalProperties: false },
)

/**
 * What tests do to a device on a development server in place of its user: `POST /_dev/devices/WDJB-MJHT/approve`,
 * `deny`, `expire` and `slow-down`. GET lists the devices.
 */
export const deviceDevelopment: Plugin<'config' | 'store' | 'clock'> = async (app, deps) => {
  const { config, store, clock } = deps
  const approveDevice = deviceApproval(app, deps)

  const describe = ({
    userCode,
    clientId,
    state,
    request,
    expiresAt,
    intervalSeconds,
  }: DeviceAuthorization) => ({
    user_code: formatUserCode(userCode),
    client_id: clientId,
    state: state === 'pending' && clock() >= expiresAt ? 'expired' : state,
    scope: request.scope.join(' '),
    expires_at: expiresAt,
    interval: intervalSeconds,
  })
  const find = async (typed: string): Promise<DeviceAuthorization> => {
    const userCode = parseUserCode(typed)
    const device = userCode === undefined ? undefined : await store.find(deviceKind, userCode)
    if (device !== undefined) return device
    throw new OAuthError('invalid_request', 'no device has this user_code', { rule, status: 404 })
  }
  const change = async (typed: string, changed: (device: DeviceAuthorization) => DeviceAuthorization) => {
    const { userCode } = await find(typed)
    await store.transact(deviceKind, userCode, (device) =>
      device === undefined ? accept(undefined) : accept(undefined, update(deviceKind, changed(device))),
    )
    return describe(await find(typed))
  }
  const assertDecided = (isDecided: boolean) => {
    if (isDecided) return
    throw new OAuthError('invalid_request', 'the device does not wait any more', { rule, status: 409 })
  }

  app.get('/devices', { schema: { hide: true } }, async () => {
    const devices = await store.listKind(deviceKind, { madeUntil: clock(), limit: mostListed })
    return { devices: devices.map(describe) }
  })

  app.post<{ Params: { code: string }; Body: { user: string; scope?: string } }>(
    '/devices/:code/approve',
    { schema: { hide: true, body: Approval } },
    async (request) => {
      const device = await find(request.params.code)
      const login = canonicalLogin(request.body.user)
      const user = login === undefined ? undefined : await store.find('userByLogin', login)
      if (user === undefined) throw new OAuthError('invalid_request', 'unknown user', { rule })
      const client = await app.resolveClient(device.clientId)
      if (client === undefined) throw new OAuthError('invalid_request', 'the client was removed', { rule })
      const now = clock()
      const { scope: asked } = device.request
      const ticked = request.body.scope === undefined ? asked : parseScope(request.body.scope)
      const isApproved = await approveDevice({
        device,
        client,
        session: beginSession('', user.id, ['pwd'], config.lifetimes, now),
        scope: narrowByUser(device.request, asked, ticked),
        context: userContext(request, now),
      })
      assertDecided(isApproved)
      return describe(await find(request.params.code))
    },
  )

  app.post<{ Params: { code: string } }>(
    '/devices/:code/deny',
    { schema: { hide: true } },
    async ({ params: { code } }) => {
      const { userCode } = await find(code)
      assertDecided(
        await store.transact(deviceKind, userCode, (found) =>
          decideDevice(found, { state: 'denied' }, clock()),
        ),
      )
      return describe(await find(code))
    },
  )

  app.post<{ Params: { code: string } }>(
    '/devices/:code/expire',
    { schema: { hide: true } },
    ({ params: { code } }) => change(code, (device) => ({ ...device, expiresAt: clock() })),
  )

  // As if the device had polled just now, a whole interval after the next poll.
  app.post<{ Params: { code: string } }>(
    '/devices/:code/slow-down',
    { schema: { hide: true } },
    ({ params: { code } }) =>
      change(code, (device) => ({ ...device, polledAt: clock() + device.intervalSeconds })),
  )
}
