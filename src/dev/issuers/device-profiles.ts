import type { FastifyRequest } from 'fastify'
import { isObject } from '../../domain/is-object.ts'
import { type Alter, inJson, type Members, set } from './changes.ts'
import type { Conduct } from './conduct.ts'
import { pollsAfterTheEnd, pollsAgain, pollsTooSoon } from './criteria.ts'
import { type Profile, profilesOf } from './profile.ts'

/** What concerns clients on devices that poll for their tokens (RFC 8628). */
export const deviceClients: readonly Profile[] = profilesOf(pollsAgain, {
  'device-code-never-ends': {
    ledger: 'rfc8628-3.5-denied-expired',
    title:
      'the codes of a device expire after 2 seconds, and every poll gets authorization_pending, also later',
    sound: 'stops when expires_in is over, whatever the token endpoint responds, RFC 8628 §3.2',
    fooledWhen: pollsAfterTheEnd,
    alter: announcing({ expires_in: 2, interval: 1 }, ({ step, reply }) =>
      step.place === 'token' && step.sent.deviceCode !== undefined
        ? rejectPoll(reply, 'authorization_pending')
        : undefined,
    ),
  },
  'device-slow-down': {
    ledger: 'rfc8628-3.5-slow-down',
    title: 'interval is 1, and the first poll of a device gets slow_down',
    sound: 'waits 5 seconds longer before this and every later poll, RFC 8628 §3.5',
    fooledWhen: pollsTooSoon,
    alterRequest: rejectFirstPoll,
    alter: announcing({ interval: 1 }, ({ step, reply }) =>
      step.isAltered ? rejectPoll(reply, 'slow_down') : undefined,
    ),
  },
  'device-denied-goes-on': {
    ledger: 'rfc8628-3.5-denied-expired',
    title: 'the first poll of a device gets access_denied, and later ones are responded to as if it had not',
    sound: 'stops: it polls on after authorization_pending and slow_down alone, RFC 8628 §3.5',
    alterRequest: rejectFirstPoll,
    alter: ({ step, reply }) => (step.isAltered ? rejectPoll(reply, 'access_denied') : undefined),
  },
})

/** Changes the response of the device authorization endpoint, and polls. */
function announcing(values: Members, alter: Alter): Alter {
  const announce = inJson('device_authorization', set(values))
  return async (response) => (await announce(response)) ?? alter(response)
}

/** Has the real server reject the first poll with a device code, so that a later one gets the tokens. */
function rejectFirstPoll(request: FastifyRequest, conduct: Pick<Conduct, 'has'>): boolean {
  const { body } = request
  if (!isObject(body) || typeof body['device_code'] !== 'string') return false
  const { device_code: deviceCode } = body
  if (conduct.has(({ sent }) => sent.deviceCode === deviceCode)) return false
  request.body = { ...body, code_verifier: 'that of no client' }
  return true
}

function rejectPoll(reply: Parameters<Alter>[0]['reply'], error: string): string {
  reply.code(400).header('content-type', 'application/json; charset=utf-8')
  return JSON.stringify({ error })
}
