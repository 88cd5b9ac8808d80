import { signAssertion } from '../helpers/assertions.ts'
import type { HttpResponse } from './connection.ts'
import type { Dice } from './dice.ts'
import type { Pair, Sent } from './request.ts'
import { clientOf, isAt, parametersOf, sentValue, wantedOf } from './rights.ts'
import { nasty, verifierOf } from './values.ts'
import type { Wanted, World } from './world.ts'

/** The name of the client that signs its authorization requests, RFC 9101. */
export const requesterName = 'Requester'

type Json = Readonly<Record<string, unknown>>

/** Signs the parameters of a request by the requester, two of three times without a fault, and adds unsigned ones. */
export function signFields(fields: readonly Pair[], world: World, dice: Dice): readonly Pair[] {
  const { requester } = world
  const ours: Pair[] = [...fields.filter(([name]) => !fixed.has(name)), ['client_id', requester.id]]
  const uri = dice.pick([requester.redirectUri, requester.redirectUri, 'https://evil.example/cb'])
  const inside: Pair[] = [...ours, ['redirect_uri', uri]]
  const resource = inside.filter(([name]) => name === 'resource').map(([, value]) => value)
  const { resource: _, ...members } = Object.fromEntries(inside)
  const claims: Json = { sub: undefined, ...members, ...(resource.length > 0 && { resource }) }
  const about = { id: requester.id, issuer: world.issuer, now: world.clock() }
  const isFaulty = dice.oneIn(3)
  const change = isFaulty ? faultOf(world, dice) : {}
  const request = signAssertion(requester.key, about, {
    header: { typ: 'oauth-authz-req+jwt', ...change.header },
    claims: { ...claims, ...change.claims },
  })
  const asked = new URLSearchParams(inside.map(([name, value]): [string, string] => [name, value]))
  const verifier = verifierOf.get(sentValue(asked, 'code_challenge') ?? '')
  const wanted = { ...wantedOf(asked), verifier }
  requester.made.set(request, wanted)
  if (!isFaulty) requester.good.set(request, wanted)
  const outside: Pair[] = [
    ['redirect_uri', requester.redirectUri],
    ['state', 'outside'],
    ['scope', 'openid'],
    ['nonce', 'outside'],
  ]
  return [['client_id', requester.id], ['request', request], ...outside.filter(() => dice.oneIn(3))]
}

/** Parameters that the object of another client cannot keep. */
const fixed: ReadonlySet<string> = new Set(['client_id', 'redirect_uri', 'request', 'request_uri'])

function faultOf(world: World, dice: Dice): { readonly header?: Json; readonly claims?: Json } {
  const now = world.clock()
  const odd = dice.pick<unknown>([null, {}, [], 0, ...nasty])
  const other = dice.draw(world.clients.filter(({ id }) => id !== world.requester.id))?.id
  if (dice.oneIn(3))
    return {
      header: dice.pick<Json>([
        { alg: 'none' },
        { alg: 'HS256' },
        { alg: 'ES256' },
        { typ: dice.pick<unknown>(['at+jwt', 'dpop+jwt', odd]) },
        { kid: 'other' },
        { crit: ['exp'] },
        { jwk: {} },
      ]),
    }
  return {
    claims: dice.pick<Json>([
      { aud: dice.pick<unknown>([undefined, odd, 'https://issuer.example']) },
      { iss: dice.pick<unknown>([other, 'https://issuer.example']) },
      { client_id: dice.pick<unknown>([undefined, other, odd]) },
      { sub: world.requester.id },
      { exp: dice.pick<unknown>([now - 60, now + 7200, 1e300, 'soon']) },
      { nbf: dice.pick<unknown>([now + 600, now - 7200]) },
      { request: 'a.b.c' },
      { request_uri: 'urn:x' },
      { scope: dice.pick<unknown>([['openid'], { openid: true }]) },
      { state: [odd] },
    ]),
  }
}

/** What the request object of a request expects; undefined without one that has no fault. */
export function objectBy(sent: Sent, world: World, among: 'good' | 'made' = 'good'): Wanted | undefined {
  const { requester } = world
  const asked = parametersOf(sent)
  const [request = '', ...others] = asked.getAll('request').filter(Boolean)
  const isOwn = (sentValue(asked, 'client_id') ?? clientOf(sent, asked, world)) === requester.id
  return isOwn && others.length === 0 ? requester[among].get(request) : undefined
}

/** A request object with a fault, or of another client, must lead to no page and no code. */
export function faultOfObject(
  sent: Sent,
  { status, headers, body }: HttpResponse,
  world: World,
): string | undefined {
  const isPush = isAt(sent, '/api/oauth/par')
  const isObject = sentValue(parametersOf(sent), 'request') !== undefined
  if (sent.bytes || !isObject || !(isPush || isAt(sent, '/oauth/authorize'))) return undefined
  const location = headers['location'] ?? ''
  const isTaken =
    (isPush && status === 201) ||
    /^\/(?:login|consent)\?|[?&]code=/.test(location) ||
    body.includes('name="code"')
  return isTaken && objectBy(sent, world) === undefined ? 'a wrong request object counts' : undefined
}
