import { compactVerify, decodeProtectedHeader } from 'jose'
import type { AuditContext } from '../domain/audit.ts'
import type { Write } from '../domain/decision.ts'
import {
  type Handle,
  type HandleKeys,
  type HandleKind,
  keyIdOf,
  type OpenedHandle,
  openHandle,
  sealHandle,
} from '../domain/handle.ts'
import { isObject } from '../domain/is-object.ts'
import type { SigningAlgorithm } from '../domain/model.ts'
import type { RecordKind } from '../domain/record.ts'
import { changeKeys, type KeyChange, type KeySources } from './change-keys.ts'
import { type KeyNews, type LiveKeys, readKeys } from './live-keys.ts'
import type { PublicJwk, SigningKey } from './opened-key.ts'
import type { KeyPolicy } from './rules.ts'
import { deriveSealingKey, pseudonymsBy, sealWith, unseal } from './seal.ts'
import { requireSealedNow, type SealingKeys, sealedUnder } from './sealing-keys.ts'
import { signCompact } from './sign.ts'

/**
 * The server's keys, ready to use. They are read from the store at intervals (`reload`), never by a request: a key is
 * published long before it is active, so every server knows it in time. The one exception is a key that is active at
 * once (an operator's `--now` or `retire`): a token that names an unknown key makes the ring read the store, at most
 * once a second, so that strangers cannot make it read at will.
 */
export interface KeyRing {
  /** The secrets that handles are sealed with, and opened with where the caller cannot wait. */
  readonly handles: HandleKeys
  /** The secrets of all handle keys, the current one first: for tags that do not name their key. */
  readonly handleSecrets: readonly string[]
  /** Algorithms there is an active signing key for. */
  readonly algorithms: readonly SigningAlgorithm[]
  /** The algorithm that a client registered, or this other one if the server no longer signs with it. */
  usable(registered: SigningAlgorithm, other?: SigningAlgorithm): SigningAlgorithm
  /** The JWK Set of every published signing key, RFC 7517 §5: public members only. */
  jwks(): { readonly keys: readonly PublicJwk[] }
  /** `openHandle` with these keys, and with those another process made in the meantime. */
  open(text: string, ...kinds: readonly HandleKind[]): Promise<OpenedHandle | undefined>
  /** Seals a code with the active handle key, and keeps what it says until it is opened for the first time. */
  sealCode(code: Handle & { readonly kind: 'code' }, grantSecret: string): string
  /**
   * A compact JWS over the claims by the active key of this algorithm, OpenID Connect Core §2; the header is alg, kid
   * and typ only.
   */
  sign(
    algorithm: SigningAlgorithm,
    type: 'JWT' | 'at+jwt' | 'logout+jwt' | 'lychgate-assertion+jwt' | 'client-authentication+jwt',
    claims: Readonly<Record<string, unknown>>,
  ): Promise<string>
  /**
   * The claims of a JWS of this type signed by one of our keys with that key's own algorithm; undefined otherwise.
   * Time claims are the caller's to judge.
   */
  verify(jws: string, type: 'JWT' | 'at+jwt'): Promise<Readonly<Record<string, unknown>> | undefined>
  /**
   * A secret as it is stored: only this ring opens it, and only under this id, which is that of its record.
   * @param kind Declares in which member it is, so that a change of the operator's secret finds it.
   */
  seal(secret: Buffer, id: string, kind: Pick<RecordKind<unknown>, 'name' | 'sealed'>): string
  /** What holds in the transaction that stores what `seal` returned: the secret has not been changed since. */
  requireSealedNow(sealed: string, id: string): Write
  /** @throws {WrongSecret} */
  unseal(sealed: string, id: string): Buffer
  /**
   * 22 characters that stand for these values: the same on every node and after every rotation until the operator's
   * secret changes, and meaningless to anyone without it.
   */
  pseudonym(...values: readonly string[]): string
  /** Changes the keys as an operator, and loads them. */
  change<T>(change: KeyChange<T>, context: Pick<AuditContext, 'from' | 'facts'>): Promise<T>
  /** Makes the keys that are due, loads what other processes changed, and returns which keys were added and removed. */
  reload(): Promise<KeyNews>
}

/** What the key ring is made of. */
export interface KeyRingSources extends Omit<KeySources, 'sealingKey'> {
  /** The operator's, or the sealing key that is being derived from it. */
  readonly secret: string | Promise<Buffer>
  /** Absent: the keys are read and nothing is made or changed, for commands that only read. */
  readonly policy?: KeyPolicy
  /** Lets the other workers of this server load what an operator changed. */
  readonly changed?: () => Promise<void>
}

/**
 * The keys of this store; makes missing and due ones first: at least one signing key an algorithm and one
 * handle key.
 * @throws {WrongSecret} when the secret is not the one the keys were sealed with; nothing is written then.
 */
export async function loadKeyRing(sources: KeyRingSources): Promise<KeyRing> {
  const { keys, opened } = openKeyRing(sources)
  await opened
  return keys
}

/**
 * The same for a server that builds the rest in the meantime: `keys` works once `opened` has resolved, and throws
 * before. `opened` rejects with WrongSecret.
 */
export function openKeyRing({ secret, policy, changed, ...rest }: KeyRingSources): {
  readonly keys: KeyRing
  readonly opened: Promise<void>
} {
  let read: LiveKeys | undefined
  let own: Buffer | undefined
  const live = () => {
    if (read === undefined) throw notOpen()
    return read
  }
  const open = async () => {
    const sealingKey = await (typeof secret === 'string' ? deriveSealingKey(secret) : secret)
    read = await readKeys({ ...rest, sealingKey }, policy)
    own = sealingKey
  }
  return {
    keys: ringOver(live, {
      ...sealer(() => live().sealing(), rest),
      requireSealedNow: (sealed, id) => {
        if (own === undefined) throw notOpen()
        // After the transaction that failed. Where the secret is a wrong one, the next due reload reports it.
        const reload = () =>
          live()
            .reload()
            .catch(() => undefined)
        return { op: 'require', condition: requireSealedNow(own, sealed, id, () => setImmediate(reload)) }
      },
      change: async (change, { from = '', facts = {} }) => {
        if (own === undefined) throw notOpen()
        const result = await changeKeys({ ...rest, sealingKey: own, operator: from, facts }, change)
        await live().reload()
        await changed?.()
        return result
      },
    }),
    opened: open(),
  }
}

function notOpen(): Error {
  return new Error('the keys are not open yet')
}

/** Uses the sealing keys themselves, under ids that no key of the ring has. */
function sealer(
  keys: () => SealingKeys,
  { random, server }: Pick<KeyRingSources, 'random' | 'server'>,
): Pick<KeyRing, 'seal' | 'unseal' | 'pseudonym'> {
  return {
    seal: (secret, id, { name, sealed }) => {
      if (sealed === undefined) throw new TypeError(`${name} does not declare that it has something sealed`)
      const development = server === 'development'
      return sealWith(keys().sealing, secret, sealedUnder(id), { random, development })
    },
    unseal: (sealed, id) => unseal(sealed, sealedUnder(id), ...keys().opening),
    pseudonym: pseudonymsBy(() => keys().sealing[0]),
  }
}

function ringOver(
  live: () => LiveKeys,
  secrets: Pick<KeyRing, 'seal' | 'requireSealedNow' | 'unseal' | 'pseudonym' | 'change'>,
): KeyRing {
  const handles: HandleKeys = {
    get current() {
      return required(live().now().sealer, 'handle')
    },
    find: (id) => live().now().openers.get(id),
  }
  return {
    handles,
    get handleSecrets() {
      const openers = [...live().now().openers.values()]
      return [...new Set([handles.current, ...openers])].map((key) => key.secret)
    },
    get algorithms() {
      return live().now().algorithms
    },
    usable: (registered, other = 'RS256') =>
      live().now().algorithms.includes(registered) ? registered : other,
    jwks: () => live().now().jwks,
    async open(text, ...kinds) {
      const { opened } = live().now()
      const known = opened.find(text, kinds)
      if (known !== undefined) return known
      const handle = openHandle(handles, text, ...kinds)
      if (handle !== undefined) {
        opened.keepOpened(text, handle)
        return handle
      }
      const id = keyIdOf(text)
      const isNews = id !== undefined && (await live().reloadIfUnknown(String(id)))
      return isNews ? openHandle(handles, text, ...kinds) : undefined
    },
    sealCode(code, grantSecret) {
      const text = sealHandle(code, handles.current, grantSecret)
      live().now().opened.keepCode(text, code, grantSecret)
      return text
    },
    async sign(algorithm, type, claims) {
      const { headerOf, privateKey } = required(live().now().signers.get(algorithm), algorithm)
      return signCompact(algorithm, headerOf(type), claims, privateKey)
    },
    async verify(jws, type) {
      const kid = kidOf(jws, type)
      if (kid === undefined) return undefined
      const key = live().now().verifiers.get(kid)
      if (key !== undefined) return verify(jws, key)
      return (await live().reloadIfUnknown(kid)) ? verify(jws, live().now().verifiers.get(kid)) : undefined
    },
    ...secrets,
    reload: () => live().reload(),
  }
}

function kidOf(jws: string, type: string): string | undefined {
  try {
    const { kid, typ } = decodeProtectedHeader(jws)
    return typ === type && typeof kid === 'string' ? kid : undefined
  } catch {
    // jose throws for anything that is no JWS; here that is a result, not a failure.
    return undefined
  }
}

/** RFC 8725 §3.1: the key decides the algorithm, and the header only names the key. */
async function verify(jws: string, key: SigningKey | undefined): ReturnType<KeyRing['verify']> {
  if (key === undefined) return undefined
  try {
    const { payload } = await compactVerify(jws, key.publicKey, { algorithms: [key.algorithm] })
    const claims: unknown = JSON.parse(Buffer.from(payload).toString())
    return isObject(claims) ? claims : undefined
  } catch {
    return undefined
  }
}

function required<K>(key: K | undefined, name: string): K {
  if (key === undefined) throw new Error(`there is no active ${name} key`)
  return key
}
