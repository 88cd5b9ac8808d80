import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'
import { check } from '../../domain/check.ts'
import { insert } from '../../domain/decision.ts'
import type { Client } from '../../domain/model.ts'
import { every, single } from '../../domain/parameters.ts'
import { secretBytes } from '../../domain/secret.ts'
import type { Needs } from '../../feature/deps.ts'
import { addressPrefix, userContext } from '../../http/address-prefix.ts'
import { clientOf } from '../../http/client-authentication.ts'
import { assertForm, formBodies, parametersOf } from '../../http/parameters.ts'
import { badBody, ErrorResponse } from '../../http/schema.ts'
import { RecordExists } from '../../storage/store.ts'
import { beginSession } from '../../users/rules/session.ts'
import { deviceApproval } from './approve.ts'
import { formatUserCode, grantType, userCodeOf } from './rules/codes.ts'
import {
  assertOpenTo,
  type DeviceAuthorization,
  deviceKind,
  pollDevice,
  redeemDevice,
  startDevice,
} from './rules/device.ts'

/** The parameters of an authorization request that a device sends, too. */
const parameterNames = [
  'client_id',
  'scope',
  'resource',
  'code_challenge',
  'code_challenge_method',
  'dpop_jkt',
]

const DeviceAuthorizationResponse = Type.Object(
  {
    device_code: Type.String({ description: 'What the device polls the token endpoint with.' }),
    user_code: Type.String({ description: 'What the device shows, and its user types.' }),
    verification_uri: Type.String({ description: 'Where the user types it.' }),
    verification_uri_complete: Type.Optional(
      Type.String({
        description: 'The same with the code, for a QR code; only for a client that an operator added.',
      }),
    ),
    expires_in: Type.Integer({ description: 'Seconds.' }),
    interval: Type.Integer({ description: 'Seconds between two polls, at least.' }),
  },
  { additionalProperties: false },
)

/** Two devices with the same code at the same time are as likely as a right guess. */
const attempts = 3

/** RFC 8628 §3.1: the device authorization endpoint, and §3.4: the grant type with which the device polls. */
export const deviceGrant: FastifyPluginAsyncTypebox<
  Needs<'config' | 'store' | 'clock' | 'random' | 'service' | 'declared'>
> = async (app, deps) => {
  const { config, service, store, clock, random, declared } = deps
  const { lifetimes } = config
  const limits = { ...config.deviceGrant, closedBy: declared.grantTypes[grantType]?.closedBy?.(config) }
  const approveDevice = deviceApproval(app, deps)

  app.seams.grantTypes.add(grantType, async (client, parameters, request) => {
    assertOpenTo(client, limits.closedBy)
    const deviceCode = single(parameters, 'device_code')
    check(deviceCode !== undefined, 'rfc8628-3.4-grant', 'invalid_request', 'device_code is missing', {
      passed: 'device_code is present',
    })
    const userCode = userCodeOf(deviceCode)
    check(userCode !== undefined, 'rfc8628-3.4-grant', 'invalid_grant', 'device_code is unknown', {
      passed: 'device_code has the form of one',
    })
    const poll = { deviceCode, client, codeVerifier: single(parameters, 'code_verifier') }
    const device = await store.transact(deviceKind, userCode, (found) => pollDevice(found, poll, clock()))
    const resource = every(parameters, 'resource')
    return app.issueFromGrant(device.grantId, client, request, (grant, now) => {
      app.tokenBindings.assertKey(undefined, grant, client, request.confirmation)
      return redeemDevice(grant, device, client, resource, service, lifetimes, now)
    })
  })

  /** A development server that signs in and consents by itself needs no browser for a device. */
  const approveByShortcut = async (device: DeviceAuthorization, client: Client, request: FastifyRequest) => {
    if (!app.shortcuts?.agrees) return
    const user = await app.shortcuts.signsIn({ page: '/device', prompt: [] })
    if (user === undefined) return
    const now = clock()
    const session = beginSession('', user.id, ['pwd'], lifetimes, now)
    const { scope } = device.request
    await approveDevice({ device, client, session, scope, context: userContext(request, now) })
  }

  const parameters = Object.fromEntries(
    Object.entries(declared.authorizationParameters).filter(([name]) => parameterNames.includes(name)),
  )
  await app.register(formBodies, { config })
  app.post(
    '/oauth/device_authorization',
    {
      config: { endpoint: 'device_authorization', limit: 'token' },
      schema: {
        operationId: 'authorizeDevice',
        tags: ['authorization'],
        summary: 'Start a device authorization, RFC 8628 §3.1',
        consumes: ['application/x-www-form-urlencoded'],
        body: Type.Object({ ...parameters, ...declared.authenticationParameters }),
        response: {
          200: DeviceAuthorizationResponse,
          ...badBody,
          401: ErrorResponse,
          429: ErrorResponse,
          503: ErrorResponse,
        },
      },
      preValidation: assertForm,
      preHandler: app.requireClient(undefined, undefined, 'device'),
    },
    async (request) => {
      const client = clientOf(request)
      const sent = parametersOf(request.body)
      const from = addressPrefix(request.ip)
      const start = async (attempt = 1): Promise<ReturnType<typeof startDevice>> => {
        const fresh = { userCode: random(secretBytes), secret: random(secretBytes), from }
        const started = startDevice(sent, client, service, limits, fresh, clock())
        const extra = app.seams.requestReaders.collect(sent, {}, client)
        const { device } = started
        const read = extra === undefined ? device : { ...device, request: { ...device.request, extra } }
        try {
          await store.write(insert(deviceKind, read))
          return { ...started, device: read }
        } catch (error) {
          if (!(error instanceof RecordExists) || attempt >= attempts) throw error
          return start(attempt + 1)
        }
      }
      const { device, deviceCode } = await start()
      await approveByShortcut(device, client, request)
      const userCode = formatUserCode(device.userCode)
      const page = `${service.issuer}/device`
      return {
        device_code: deviceCode,
        user_code: userCode,
        verification_uri: page,
        ...(!device.mustBeTyped && { verification_uri_complete: `${page}?user_code=${userCode}` }),
        expires_in: limits.seconds,
        interval: limits.intervalSeconds,
      }
    },
  )
}
