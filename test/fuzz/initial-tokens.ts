import { insert } from '../../src/domain/decision.ts'
import { initialTokenKind, mintInitialToken } from '../../src/domain/initial-token.ts'
import type { Store } from '../../src/storage/store.ts'
import type { RandomSource } from '../../src/system/system.ts'
import type { HttpResponse } from './connection.ts'
import type { Dice } from './dice.ts'
import { metadata } from './metadata.ts'
import { bearer, type Draft, type Sent } from './request.ts'
import { isAt } from './rights.ts'
import { liveValue, nearly } from './values.ts'
import type { World } from './world.ts'

/** The initial access token of the operator, RFC 7591 §3, with which some clients may register https redirects. */
export interface Admission {
  readonly token: string
  usesLeft: number
}

export async function makeAdmission(store: Store, random: RandomSource, now: number): Promise<Admission> {
  const uses = 20
  const request = { redirects: 'https', pkce: 'required', uses } as const
  const { token, record } = mintInitialToken(request, random(32), 1_000_000, now)
  await store.write(insert(initialTokenKind, record))
  return { token, usesLeft: uses }
}

/** A registration; some need the initial access token, and have it, or something else. */
export function register(world: World, dice: Dice): Draft {
  const { token } = world.admission
  const sent = dice.pick([undefined, undefined, token, token, nearly(token, dice), liveValue(world, dice)])
  const redirects = dice.pick([{}, { redirect_uris: ['https://tool.example/cb', 'http://127.0.0.1/cb'] }])
  const headers = sent === undefined || /[^\x21-\x7e]/.test(sent) ? [] : [bearer(sent)]
  return {
    method: 'POST',
    path: '/api/oauth/register',
    query: [],
    headers,
    json: { ...metadata(dice), ...redirects },
  }
}

/** Only the token, as often as it may be used, admits a client with https redirects. */
export function faultOfRegistration(
  sent: Sent,
  { status, body }: HttpResponse,
  { admission }: World,
): string | undefined {
  if (sent.bytes || status !== 201 || !isAt(sent, '/api/oauth/register')) return undefined
  const [, authorization = ''] = sent.headers.find(([name]) => name === 'Authorization') ?? []
  const isAdmitted = /^bearer +(\S+) *$/i.exec(authorization)?.[1] === admission.token
  if (isAdmitted) admission.usesLeft -= 1
  if (admission.usesLeft < 0) return 'an initial access token is used too often'
  const isHttps = [JSON.parse(body).redirect_uris].flat().some((uri) => String(uri).startsWith('https:'))
  return isHttps && !isAdmitted ? 'https redirects without an initial access token' : undefined
}
