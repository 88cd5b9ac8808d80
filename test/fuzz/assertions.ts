import { type AssertionChange, type ClientKey, signAssertion } from '../helpers/assertions.ts'
import type { Dice } from './dice.ts'
import type { Pair } from './request.ts'
import { nasty } from './values.ts'
import type { World } from './world.ts'

/** The client that signs instead of sending a secret, RFC 7523 §2.2, and the assertions it has made. */
export interface Signer {
  readonly id: string
  readonly key: ClientKey
  /** What gives a right, once: by what is signed, its `jti`. */
  readonly good: Map<string, string>
  readonly used: Set<string>
}

type Json = Readonly<Record<string, unknown>>

const wrongHeaders: readonly [Json, ...Json[]] = [
  { alg: 'none' },
  { alg: 'HS256' },
  { alg: 'ES256' },
  { kid: 'other' },
  { kid: ['x'] },
  { crit: ['exp'] },
  { typ: 'at+jwt' },
  { jwk: {} },
  { zip: 'DEF' },
]

/** Makes an assertion; every other one has one fault. */
export function makeAssertion(world: World, dice: Dice): string {
  const { id, key, good, used } = world.signer
  const about = { id, issuer: world.issuer, now: world.clock() }
  const jti = `jti-${dice.below(1_000_000)}`
  if (dice.oneIn(2)) return signAssertion(key, about, faultOf(world, dice, jti))
  // Sometimes one that was sent before.
  const [old] = dice.oneIn(6) ? [...used] : []
  const change = { claims: { jti: old ?? jti, ...(dice.oneIn(4) && { nbf: about.now }) } }
  const assertion = signAssertion(key, about, change)
  good.set(signedPart(assertion), old ?? jti)
  return assertion
}

/** Makes request objects of RFC 9101 that no client may send: another kind of JWT of the client, and nonsense. */
export function wrongRequests(world: World, dice: Dice): readonly Pair[] {
  return [
    ['request', makeAssertion(world, dice)],
    ['request', dice.pick(['eyJhbGciOiJub25lIn0.e30.', 'a.b.c', 'a.b.c.d.e', ...nasty])],
    ['request_uri', dice.pick(['https://client.example/r', 'http://127.0.0.1:1/', 'urn:x', ...nasty])],
  ]
}

function faultOf(world: World, dice: Dice, jti: string): AssertionChange {
  const now = world.clock()
  const odd = dice.pick<unknown>([undefined, null, {}, [], 0, ...nasty])
  const claims = dice.pick<Json>([
    { aud: odd },
    { aud: [world.issuer] },
    { aud: `${world.issuer}/api/oauth/token` },
    { iss: odd },
    { iss: 'https://issuer.example' },
    { sub: dice.draw(world.clients.filter(({ id }) => id !== world.signer.id))?.id },
    { exp: dice.pick<unknown>([odd, now - 60, now + 7200, 1e300]) },
    { nbf: now + 600 },
    { iat: now + 600 },
    { jti: dice.pick<unknown>([undefined, '', 7, 'j'.repeat(300)]) },
  ])
  if (dice.oneIn(3)) return { header: dice.pick(wrongHeaders), claims: { jti } }
  return { claims: { jti, ...claims } }
}

function signedPart(assertion: string): string {
  return assertion.split('.').slice(0, 2).join('.')
}

/** Uses an assertion, once; returns whether it gave a right. */
export function useAssertion(assertion: string, { signer: { good, used } }: World): boolean {
  const jti = good.get(signedPart(assertion))
  if (jti === undefined || used.has(jti)) return false
  used.add(jti)
  return true
}
