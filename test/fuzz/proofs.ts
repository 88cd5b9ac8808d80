import type { ClientKey } from '../helpers/assertions.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { signProof, thumbprintOf } from '../helpers/proofs.ts'
import type { Dice } from './dice.ts'
import type { Draft, Pair, Sent } from './request.ts'
import { nasty } from './values.ts'
import type { World } from './world.ts'

/** What a proof without a fault proves, RFC 9449 §4.2. */
interface Proven {
  readonly jkt: string
  readonly method: string
  readonly path: string
  readonly token: string | undefined
}

/** The keys that tokens are bound to, and the proofs by them. */
export interface Prover {
  readonly keys: ReadonlyMap<string, ClientKey>
  /** Proofs without a fault, by what is signed. */
  readonly good: Map<string, Proven>
  /** Proofs that gave a right: each does so once. */
  readonly used: Set<string>
  /** The keys of codes, tokens and device codes. */
  readonly bound: Map<string, string>
}

type Json = Readonly<Record<string, unknown>>

export function makeProver(): Prover {
  const keys = [makeClientKey('ES256', 'one'), makeClientKey('ES256', 'two')]
  return {
    keys: new Map(keys.map((key) => [thumbprintOf(key), key])),
    good: new Map(),
    used: new Set(),
    bound: new Map(),
  }
}

/** Adds a DPoP header where a server reads one: mostly the right one for what the request uses. */
export function proveDraft(draft: Draft, world: World, dice: Dice): Draft {
  const { form = [], headers, path } = draft
  if (!path.startsWith('/api/') || path.startsWith('/api/oauth/register')) return draft
  const { bound } = world.prover
  const authorization = headers.find(([name]) => name === 'Authorization')?.[1] ?? ''
  const [, token] = /^Bearer (\S+)$/.exec(authorization) ?? []
  if (token === undefined && !/^\/api\/oauth\/(?:token|par)$/.test(path)) return draft
  const used = token ?? form.find(([, value]) => bound.has(value))?.[1] ?? ''
  const jkt = bound.get(used)
  if (dice.oneIn(jkt === undefined ? 6 : 8) !== (jkt === undefined)) return draft
  const proof = makeProof(world, dice, { jkt, method: draft.method, path, token })
  const others = headers.filter(([name]) => token === undefined || name !== 'Authorization')
  const scheme: Pair[] = token === undefined ? [] : [['Authorization', `DPoP ${token}`]]
  return { ...draft, headers: [...others, ...scheme, ['DPoP', proof]] }
}

interface Wanted extends Omit<Proven, 'jkt'> {
  readonly jkt: string | undefined
}

/** Makes a proof; every third one has a fault, or was used before. */
function makeProof(world: World, dice: Dice, { jkt: wanted, method, path, token }: Wanted): string {
  const { keys, good, used } = world.prover
  const ours = [...keys].filter(([each]) => each === wanted)
  const [jkt, key] = dice.draw(ours.length === 0 || dice.oneIn(8) ? [...keys] : ours) ?? []
  if (jkt === undefined || key === undefined) throw new Error('no keys')
  const about = { method, url: world.issuer + path, now: world.clock(), token }
  const claims = { jti: `proof-${dice.below(1_000_000_000)}` }
  if (dice.oneIn(4)) return faultyProof(key, about, claims, dice)
  const [old] = dice.oneIn(12) ? [...used] : []
  if (old !== undefined) return old
  const proof = signProof(key, about, { claims })
  good.set(signedPart(proof), { jkt, method, path, token })
  return proof
}

function faultyProof(
  key: ClientKey,
  about: Parameters<typeof signProof>[1],
  claims: Json,
  dice: Dice,
): string {
  const odd = dice.pick<unknown>([undefined, null, {}, [], 0, ...nasty])
  const header = dice.pick<Json>([
    { alg: 'none' },
    { alg: 'HS256' },
    { alg: 'RS256' },
    { typ: dice.pick<unknown>(['jwt', odd]) },
    { crit: ['exp'] },
    { jwk: odd },
    { jwk: { kty: 'oct', k: 'AAAA' } },
    { jwk: { ...key.jwk, d: 'AAAA' } },
    { jwk: { ...key.jwk, x: key.jwk['y'] } },
  ])
  const changed = dice.pick<Json>([
    { htm: dice.pick<unknown>([odd, 'PATCH']) },
    { htu: dice.pick<unknown>([odd, 'https://issuer.example/api/oauth/token']) },
    { iat: dice.pick<unknown>([about.now - 600, about.now + 600, 1e300, 'now', undefined]) },
    { jti: dice.pick<unknown>([undefined, '', 7, 'j'.repeat(300)]) },
    ...(about.token === undefined ? [] : [{ ath: odd }]),
  ])
  const proof = signProof(
    key,
    about,
    dice.oneIn(2) ? { header, claims } : { claims: { ...claims, ...changed } },
  )
  return dice.oneIn(8) ? `${proof}, ${proof}` : proof
}

function signedPart(proof: string): string {
  return proof.split('.').slice(0, 2).join('.')
}

/** The key that a request proves to have; undefined if it does not. */
export function provenKey(sent: Sent, token: string | undefined, { prover }: World): string | undefined {
  const [proof = '', ...others] = proofsOf(sent)
  const proven = prover.good.get(signedPart(proof))
  const path = decoded(sent.target.replace(/^http:\/\/evil\.example/, '').split('?')[0] ?? '')
  const isFor = proven?.method === sent.method && proven.path === path && proven.token === token
  return isFor && others.length === 0 && !prover.used.has(proof) ? proven.jkt : undefined
}

/** The key of a proof without a fault, whatever it was for. */
export function keyOfProof(sent: Sent, { prover }: World): string | undefined {
  return prover.good.get(signedPart(proofsOf(sent)[0] ?? ''))?.jkt
}

/** What is wrong with how tokens are bound to a key; undefined if nothing is. */
export function faultOfBinding(
  sent: Sent,
  tokenType: unknown,
  { client, used }: { readonly client: string; readonly used: string | undefined },
  world: World,
): string | undefined {
  const isBound = tokenType === 'DPoP'
  if (!isBound && tokenType !== 'Bearer') return `tokens of type ${tokenType}`
  if (!isBound && proofsOf(sent).length > 0) return 'tokens that are not bound, with a proof'
  if (!isBound && world.boundClients.has(client)) return `tokens that are not bound for ${client}`
  const key = isBound ? provenKey(sent, undefined, world) : undefined
  if (isBound && key === undefined) return 'bound tokens without a proof'
  const needed = world.prover.bound.get(used ?? '')
  return needed === undefined || needed === key ? undefined : `tokens for ${used} without its key`
}

/** What is wrong with access by this token; undefined if nothing is. */
export function faultOfUse(sent: Sent, scheme: string, token: string, world: World): string | undefined {
  const needed = world.prover.bound.get(token)
  const isProven = scheme.toLowerCase() === 'dpop'
  if (needed === undefined) return isProven ? 'a token that is not bound passes for a bound one' : undefined
  if (!isProven) return 'a bound token passes for a bearer token'
  return provenKey(sent, token, world) === needed ? undefined : 'a bound token without a proof by its key'
}

/** Stores that the proof of a request gave a right. */
export function useProof(sent: Sent, { prover }: World): void {
  for (const proof of proofsOf(sent)) prover.used.add(proof)
}

/** The DPoP headers of a request. */
export function proofsOf({ headers }: Sent): readonly string[] {
  return headers.flatMap(([name, value]) => (name.toLowerCase() === 'dpop' ? [value] : []))
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
