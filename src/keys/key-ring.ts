import { compactVerify, decodeProtectedHeader, SignJWT } from 'jose'
import type { HandleKeys } from '../domain/handle.ts'
import type { SigningAlgorithm, StoredKey } from '../domain/model.ts'
import { RecordExists, type Store } from '../storage/store.ts'
import type { Clock, RandomSource } from '../system.ts'
import { type KeyMaking, makeHandleKey, makeSigningKey, signingAlgorithms } from './make-keys.ts'
import {
  activeKey,
  isRetired,
  type KeyTerm,
  type OpenedHandleKey,
  openHandleKey,
  openSigningKey,
  type PublicJwk,
  type SigningKey,
} from './opened-key.ts'
import { deriveSealingKey, unseal } from './seal.ts'

export { WrongSecret } from './seal.ts'

/** The server's keys, ready to use. */
export interface KeyRing {
  /** What handles are sealed and opened with. */
  readonly handles: HandleKeys
  /** Algorithms there is an active signing key for. */
  readonly algorithms: readonly SigningAlgorithm[]
  /** The JWK Set of every published signing key, RFC 7517 §5: public members only. */
  jwks(): { readonly keys: readonly PublicJwk[] }
  /**
   * A compact JWS over the claims by the active key of this algorithm, OpenID Connect Core §2; the header is alg, kid
   * and typ only.
   */
  sign(
    algorithm: SigningAlgorithm,
    type: 'JWT' | 'at+jwt',
    claims: Readonly<Record<string, unknown>>,
  ): Promise<string>
  /** The claims of a JWS of this type signed by one of our keys with that key's own algorithm; undefined otherwise. Time claims are the caller's to judge. */
  verify(jws: string, type: 'JWT' | 'at+jwt'): Promise<Readonly<Record<string, unknown>> | undefined>
}

/** What the key ring is made of. */
export interface KeyRingSources {
  readonly store: Pick<Store, 'list' | 'write'>
  readonly secret: string
  readonly clock: Clock
  readonly random: RandomSource
}

/**
 * The keys of this store, the missing ones made first: one signing key an algorithm and one handle key.
 * @throws {WrongSecret} when the secret is not the one the keys were sealed with; nothing is written then.
 */
export async function loadKeyRing({ store, secret, clock, random }: KeyRingSources): Promise<KeyRing> {
  const sealingKey = await deriveSealingKey(secret)
  const stored = await completeKeys(store, { sealingKey, random, now: clock() })
  const signingKeys = stored.flatMap((key) =>
    key.algorithm === 'HS256' ? [] : openSigningKey(key, key.algorithm, sealingKey),
  )
  const handleKeys = stored.flatMap((key) => (key.kind === 'handle' ? openHandleKey(key, sealingKey) : []))
  return createKeyRing(await Promise.all(signingKeys), handleKeys, clock)
}

/** The keys that are not retired, after making what is missing. */
async function completeKeys(
  store: KeyRingSources['store'],
  making: KeyMaking,
): Promise<readonly StoredKey[]> {
  const all = await store.list('key')
  const kept = all.filter((key) => !isRetired(key, making.now))
  for (const key of kept) unseal(key.sealedPrivate, key.id, making.sealingKey)
  const isMissing = (algorithm: StoredKey['algorithm']) => !kept.some((key) => key.algorithm === algorithm)
  const made = await Promise.all(
    signingAlgorithms.filter(isMissing).map((algorithm) => makeSigningKey(algorithm, making)),
  )
  const taken = all.map(({ id }) => id)
  if (isMissing('HS256')) made.push(makeHandleKey(taken, making))
  if (made.length === 0) return kept
  try {
    await store.write(...made.map((key) => ({ op: 'insertKey', key }) as const))
  } catch (error) {
    // Another process was first: the keys of the store are the keys, and ours were not written.
    if (!(error instanceof RecordExists)) throw error
  }
  return completeKeys(store, making)
}

function createKeyRing(
  signingKeys: readonly SigningKey[],
  handleKeys: readonly OpenedHandleKey[],
  clock: Clock,
): KeyRing {
  const byAlgorithm = (algorithm: SigningAlgorithm) =>
    activeKey(
      signingKeys.filter((key) => key.algorithm === algorithm),
      clock(),
    )
  const isKept = ({ term }: { readonly term: KeyTerm }) => !isRetired(term, clock())
  let published: { readonly keys: readonly PublicJwk[] } = { keys: [] }
  const publish = () => {
    const kept = signingKeys.filter(isKept)
    // As time goes on keys only drop out: as many as before are the same ones, and whoever serves them need not write them anew.
    if (kept.length !== published.keys.length) published = { keys: kept.map(({ publicJwk }) => publicJwk) }
    return published
  }
  return {
    handles: {
      get current() {
        return required(activeKey(handleKeys, clock()), 'handle').handleKey
      },
      find: (id) => handleKeys.find((key) => key.handleKey.id === id && isKept(key))?.handleKey,
    },
    get algorithms() {
      return signingAlgorithms.filter((algorithm) => byAlgorithm(algorithm) !== undefined)
    },
    jwks: publish,
    async sign(algorithm, type, claims) {
      const { term, privateKey } = required(byAlgorithm(algorithm), algorithm)
      const header = { alg: algorithm, kid: term.id, typ: type }
      return new SignJWT({ ...claims }).setProtectedHeader(header).sign(privateKey)
    },
    verify: (jws, type) => verify(jws, type, signingKeys.filter(isKept)),
  }
}

/** RFC 8725 §3.1: the key decides the algorithm, the header only which key. */
async function verify(jws: string, type: string, keys: readonly SigningKey[]): ReturnType<KeyRing['verify']> {
  try {
    const { kid, typ } = decodeProtectedHeader(jws)
    const key = keys.find(({ term }) => term.id === kid)
    if (key === undefined || typ !== type) return undefined
    const { payload } = await compactVerify(jws, key.publicKey, { algorithms: [key.algorithm] })
    const claims: unknown = JSON.parse(Buffer.from(payload).toString())
    return isClaims(claims) ? claims : undefined
  } catch {
    // Whatever is no JWS of this key is thrown by jose; here that is an answer, not a failure.
    return undefined
  }
}

function isClaims(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function required<K>(key: K | undefined, name: string): K {
  if (key === undefined) throw new Error(`there is no active ${name} key`)
  return key
}
