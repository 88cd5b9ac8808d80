import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { accept, insert, remove } from '../domain/decision.ts'
import { interactionKind, noProgress } from '../domain/interaction.ts'
import type { Passkey, Seconds, User } from '../domain/model.ts'
import { type Parameters, single } from '../domain/parameters.ts'
import { hashSecret } from '../domain/secret.ts'
import type { Text } from '../domain/text.ts'
import type { Needs } from '../feature/deps.ts'
import { creationOptions, verifyCreation } from '../users/passkeys/passkeys.ts'
import { browserName } from '../users/sessions.ts'
import { msg } from './i18n/i18n.ts'

/** What a page shows on which a passkey can be created. */
export interface PasskeyCreation {
  /** What the script of the page asks the browser for, Web Authentication Level 3 §5.4, as JSON. */
  readonly options: string
  /** The name suggested for it. */
  readonly name: string
}

/** A new passkey, and the challenge that its form brings back. */
interface PasskeyOffer {
  readonly hidden: { readonly challenge: string }
  readonly creation: PasskeyCreation
}

const longestName = 60

/**
 * Creates passkeys on a page, Web Authentication Level 3: offers a challenge to this browser, good once, and verifies what
 * the browser made for it.
 * @param page The path of the page, below the issuer.
 */
export function passkeyCreation(
  app: FastifyInstance,
  { config, service, store, random }: Needs<'config' | 'store' | 'random' | 'service'>,
  page: string,
) {
  const { relyingParty } = service

  const redeemChallenge = (id: string, request: FastifyRequest, now: Seconds) => {
    const browserHash = hashSecret(app.browser.secret(request) ?? '')
    return store.transact(interactionKind, id, (current) => {
      const isOurs = current?.browserHash === browserHash && 'page' in current.request
      if (!isOurs || current.request.page !== page || now >= current.expiresAt) return accept(undefined)
      return accept(current.challenge, remove(interactionKind, id))
    })
  }

  return {
    /** Returns what the page shows; undefined where no passkeys work. */
    offer: async (
      reply: FastifyReply,
      user: Pick<User, 'id' | 'username' | 'claims'>,
      existing: readonly Passkey[],
      now: Seconds,
    ): Promise<PasskeyOffer | undefined> => {
      if (relyingParty === undefined) return undefined
      const [id, challenge] = [16, 32].map((size) => random(size).toString('base64url')) as [string, string] // two of two
      const interaction = {
        id,
        challenge,
        browserHash: hashSecret(app.browser.ensureSecret(reply.request, reply)),
        request: { page, prompt: [] },
        ...noProgress,
        createdAt: now,
        expiresAt: now + config.lifetimes.interactionSeconds,
      }
      await store.write(insert(interactionKind, interaction))
      const options = creationOptions(relyingParty, config.service.name, user, existing, challenge)
      const name = (await browserName(reply.request.headers['user-agent'])) ?? ''
      return { hidden: { challenge: id }, creation: { options: JSON.stringify(options), name } }
    },

    /** Returns the passkey of a form, or the problem with it. The challenge is used up either way. */
    take: async (
      form: Parameters,
      request: FastifyRequest,
      userId: string,
      now: Seconds,
    ): Promise<Passkey | Text> => {
      const challenge = await redeemChallenge((single(form, 'challenge') ?? '').slice(0, 64), request, now)
      if (challenge === undefined || relyingParty === undefined) return msg('passkeys.outdated')
      const verified = await verifyCreation(relyingParty, single(form, 'credential'), challenge)
      if (verified === undefined) return msg('passkeys.refused')
      const suggested = await browserName(request.headers['user-agent'])
      // A page without a field for the name leaves it to the browser.
      const typed = nameOf(single(form, 'name') ?? suggested)
      // The suggested name is the browser's: what keeps the passkey says more.
      const isSuggested = typed === '' || typed === suggested
      const name = (isSuggested ? verified.maker : undefined) ?? (typed || 'Passkey')
      return { ...verified.created, userId, name, createdAt: now, usedAt: now }
    },
  }
}

/** Returns the name a user typed, on one line. */
function nameOf(typed = ''): string {
  const name = typed.replaceAll(/[\p{C}\s]+/gu, ' ').trim()
  return [...name].slice(0, longestName).join('')
}
