import type { FastifyInstance } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { accept, reject, update } from '../../domain/decision.ts'
import { interactionKind } from '../../domain/interaction.ts'
import type { Session, SignInElsewhere, User, UserCredentials } from '../../domain/model.ts'
import type { Needs } from '../../feature/deps.ts'
import { userContext } from '../../http/address-prefix.ts'
import { keyOfParts, keysOf } from '../../storage/store.ts'
import { userCredentials } from '../../users/factors.ts'
import type { CounterChange } from '../../users/rules/attempts.ts'
import { noteSignInElsewhere } from '../../users/rules/upstream-link.ts'
import { throttles } from '../../users/throttling.ts'
import { sessionBeginner } from '../begin-session.ts'
import { clientOf, interactionExpired, type Pending } from './pending.ts'

/** What a sign-in is based on. It counts only if all of it is still valid once the session is inserted. */
export interface LoginProof {
  /** The user, with the password hash at the time of the proof. */
  readonly user: User
  /** RFC 8176 references of all factors. */
  readonly methods: readonly string[]
  readonly passkeyId?: string
  /** The seal of the one-time codes' secret. */
  readonly sealedSecret?: string
  /** What the password changes in counters, if that is still to be committed. */
  readonly counters?: CounterChange
  /** The session in which the password was typed, if it is stepped up: the new one ends with it at the latest. */
  readonly continues?: Pick<Session, 'authenticatedAt' | 'expiresAt'>
  /** The sign-in at an upstream that it is based on: the link to it must still be there. */
  readonly elsewhere?: SignInElsewhere & { readonly userId: string }
}

/**
 * Starts a session of a user, with a new identifier at every sign-in; sessions of other users in this browser stay.
 * Returns false, and starts none, if the user was locked or lost a factor of the sign-in since it was verified: what
 * removes a factor ends its sessions, and this one would outlive it.
 */
export function sessionStarter(app: FastifyInstance, deps: Needs<'config' | 'store'>) {
  const { store } = deps
  const begin = sessionBeginner(app, deps)

  return async (pending: Pending, proof: LoginProof): Promise<boolean> => {
    const { reply, now } = pending
    const { user, methods, elsewhere, counters = noChange } = proof
    const { session, writes, keep } = await begin(reply, proof, now)
    const context = userContext(reply.request, now)
    const who = { userId: user.id, ...clientOf(pending) }
    const isNew = (await app.browser.knownBrowser(reply.request, user)) === undefined
    const upstream = elsewhere && { upstream: elsewhere.upstream }
    const facts = { ...who, methods: methods.join(' '), ...(isNew && { browser: 'new' }), ...upstream }
    const key = keyOfParts(signIn, {
      counters: keysOf(counters.keys),
      interaction: pending.interaction.id,
      credentials: user.id,
    })
    const current = await store.transact(signIn, key, (rows) => {
      const refund = counters.writes(rows?.counters ?? new Map())
      if (rows?.interaction === undefined) return reject(interactionExpired(), ...refund)
      const { pendingSecondFactor: _, challenge: __, ...rest } = rows.interaction
      const progress = { ...rest, authenticatedSessionId: session.id, userChosen: true }
      const { credentials } = rows
      if (!isCurrent(proof, credentials))
        return accept(undefined, ...refund, auditEvent('sign-in-failed', context, who))
      return accept(
        credentials,
        ...refund,
        update(interactionKind, progress),
        ...writes,
        auditEvent('sign-in', context, facts),
        ...(elsewhere === undefined ? [] : noteSignInElsewhere(elsewhere)),
      )
    })
    if (current === undefined) return false
    await keep(current)
    return true
  }
}

const noChange: CounterChange = { keys: [], writes: () => [] }

/** What a sign-in is decided about, all in one commit. */
const signIn = {
  name: 'signIn',
  parts: { counters: throttles, interaction: interactionKind, credentials: userCredentials },
} as const

/**
 * Whether the user is not locked and still has every factor of the sign-in. What removes a factor ends the sessions
 * that exist by then, under the same lock as this.
 */
function isCurrent(proof: LoginProof, current: UserCredentials | undefined): current is UserCredentials {
  const { user, passkeyId, sealedSecret } = proof
  if (current === undefined || current.user.lockedAt !== undefined) return false
  if (current.user.passwordHash !== user.passwordHash) return false
  if (passkeyId !== undefined && !current.passkeys.some(({ id }) => id === passkeyId)) return false
  return sealedSecret === undefined || current.secondFactor?.sealedSecret === sealedSecret
}
