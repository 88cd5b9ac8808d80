import { accept, insert, remove } from '../domain/decision.ts'
import type { Hash, Seconds } from '../domain/model.ts'
import type { Parameters } from '../domain/parameters.ts'
import { recordKind } from '../domain/record.ts'
import { hashSecret, mintSecret, secretBytes, secretPrefix } from '../domain/secret.ts'
import type { LoadedRequest } from '../feature/contributions.ts'
import type { Needs } from '../feature/deps.ts'

/**
 * What a form of another site sent, and what its `id_token_hint` proved, until the browser comes back for it by GET: the
 * hint has claims of a user, and URLs stay in histories and logs. `id` is the hash of its reference.
 */
export interface HeldRequest extends Pick<LoadedRequest, 'parameters' | 'extra'> {
  readonly id: Hash
  readonly hint: Hint
  readonly expiresAt: Seconds
}

/** What an `id_token_hint` of this server proved: who signed in, at which client. */
export type Hint = Readonly<Record<'sub' | 'aud', string>>

const heldRequestKind = recordKind<HeldRequest>('held-request', {
  id: ({ id }) => id,
  expiresAt: ({ expiresAt }) => expiresAt,
})

/** The parameter that carries the reference. */
const name = 'held_request'
const heldSeconds: Seconds = 600

/** Keeps requests out of URLs for minutes. A reference counts once. */
export function heldRequests({ store, clock, random }: Needs<'store' | 'clock' | 'random'>) {
  return {
    /** Returns the parameter that stands for the request. */
    hold: async (held: Pick<HeldRequest, 'parameters' | 'extra' | 'hint'>): Promise<Parameters> => {
      const reference = mintSecret('held', random(secretBytes))
      const expiresAt = clock() + heldSeconds
      await store.write(insert(heldRequestKind, { ...held, id: hashSecret(reference), expiresAt }))
      return { [name]: reference }
    },
    /**
     * Returns the request that a query or form refers to: at once `undefined` if it refers to none, later `undefined` if
     * it was taken before, or is too old.
     */
    take: (parameters: Parameters): Promise<HeldRequest | undefined> | undefined => {
      const reference = parameters[name]
      if (typeof reference !== 'string' || !reference.startsWith(secretPrefix.held)) return undefined
      return takeOnce(hashSecret(reference))
    },
  }

  async function takeOnce(id: Hash): Promise<HeldRequest | undefined> {
    const request = await store.transact(heldRequestKind, id, (held) =>
      accept(held, ...(held ? [remove(heldRequestKind, id)] : [])),
    )
    return request !== undefined && clock() < request.expiresAt ? request : undefined
  }
}

/** Returns the parameters without the hint that is not to be in a URL. */
export function withoutHint({ id_token_hint: _, ...parameters }: Parameters): Parameters {
  return parameters
}
