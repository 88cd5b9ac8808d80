import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { auditEvent } from '../../domain/audit.ts'
import { methodsOf } from '../../domain/authentication-context.ts'
import { accept, update, withWrites } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { interactionKind, mustAuthenticate } from '../../domain/interaction.ts'
import type { Seconds, Session, User } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import { hashSecret } from '../../domain/secret.ts'
import type { Text } from '../../domain/text.ts'
import { userContext } from '../../http/address-prefix.ts'
import { recordRejection } from '../../http/errors.ts'
import { factorsOf } from '../../users/factors.ts'
import { stepOfCode } from '../../users/one-time-codes.ts'
import { passkeyKind } from '../../users/rules/passkey.ts'
import {
  pendingSecondFactorSeconds,
  type SecondStep,
  secondFactorKind,
  secondStepOf,
  takeCode,
  takeRecoveryCode,
} from '../../users/rules/second-factor.ts'
import { secondFactorBuckets } from '../../users/rules/throttle.ts'
import { throttled } from '../../users/throttling.ts'
import { msg } from '../i18n/catalogue.ts'
import { comeBack, displayName, type LoginForms, notSignedIn } from './login-forms.ts'
import type { PasskeyProof, ShownPasskey } from './passkey-proof.ts'
import { clientOf, formActionOf, interactionExpired, type Pending } from './pending.ts'
import type { LoginProof } from './start-session.ts'

/** A sign-in that lacks its second factor: the password was right, now or in the session that is to become more. */
export interface PendingFactor {
  readonly user: User
  readonly step: SecondStep
  /** Of the session that is stepped up. */
  readonly from?: Pick<Session, 'methods' | 'authenticatedAt' | 'expiresAt'>
}

/** What follows the password: a one-time code, a recovery code or a passkey. */
export function secondStep(
  app: FastifyInstance,
  deps: AppDeps,
  forms: LoginForms,
  provePasskey: PasskeyProof,
) {
  const { config, store, keys, clock } = deps

  const begin = async ({ interaction }: Pending, user: User, now: Seconds): Promise<void> => {
    const pendingSecondFactor = { userId: user.id, password: hashSecret(user.passwordHash ?? ''), at: now }
    await store.transact(interactionKind, interaction.id, (current) => {
      if (current === undefined) throw interactionExpired()
      return accept(undefined, update(interactionKind, { ...current, pendingSecondFactor }))
    })
  }

  const begun = async (
    { interaction }: Pending,
    now: Seconds,
  ): Promise<Omit<PendingFactor, 'step'> | undefined> => {
    const { pendingSecondFactor } = interaction
    if (pendingSecondFactor === undefined || now >= pendingSecondFactor.at + pendingSecondFactorSeconds)
      return undefined
    const user = await store.find('user', pendingSecondFactor.userId)
    return user !== undefined && hashSecret(user.passwordHash ?? '') === pendingSecondFactor.password
      ? { user }
      : undefined
  }

  /** A session that is good but for what the client asks for is not asked for its password again. */
  const steppedUp = async (
    pending: Pending,
    now: Seconds,
  ): Promise<Omit<PendingFactor, 'step'> | undefined> => {
    const { session, request, step } = pending
    if (session === undefined || step !== 'login' || !session.methods.includes('pwd')) return undefined
    if (mustAuthenticate(request, session, now)) return undefined
    if ((request.requiredSub ?? session.userId) !== session.userId) return undefined
    const user = await store.find('user', session.userId)
    // After the account: a session that outlived a new password is none.
    const isAlive = (await store.find('session', session.id)) !== undefined
    return user !== undefined && isAlive ? { user, from: session } : undefined
  }

  const pendingFactorOf = async (pending: Pending, now: Seconds): Promise<PendingFactor | undefined> => {
    const pendingFactor = (await begun(pending, now)) ?? (await steppedUp(pending, now))
    if (pendingFactor === undefined || pendingFactor.user.lockedAt !== undefined) return undefined
    const step = secondStepOf(await factorsOf(deps, pendingFactor.user.id), pending.request.acr)
    return step && { ...pendingFactor, step }
  }

  const show = async (
    pending: Pending,
    { user, step }: PendingFactor,
    reply: FastifyReply,
    shown: { readonly recovery?: boolean; readonly problem?: Text; readonly status?: number } = {},
  ) => {
    const { recovery = false, problem, status = 200 } = shown
    const passkeys = step.passkey ? await store.listOf(passkeyKind, user.id) : []
    const url = forms.pageUrl(pending)
    const model = {
      ...forms.frameOf(pending),
      user: displayName(user),
      anotherUrl: `${url}&another=1`,
      ...(step.codes && { codes: recovery ? ('recovery' as const) : ('one-time' as const) }),
      ...(step.codes && { insteadUrl: recovery ? url : `${url}&recovery=1` }),
      ...(await forms.passkeyOf(pending, passkeys)),
      ...(problem !== undefined && { problem }),
    }
    return reply.page('second-factor', model, { status, ...formActionOf(pending) })
  }

  /** Takes what was typed, once; the seal tells which secret it belonged to. */
  const take = async (user: User, form: Parameters, reply: FastifyReply, now: Seconds) => {
    const opened = await store.find(secondFactorKind, user.id)
    if (opened === undefined) return undefined
    const typed = single(form, 'code') ?? ''
    const isRecovery = single(form, 'decision') === 'recovery'
    const step = isRecovery ? undefined : await stepOfCode(keys, opened, typed, now)
    const context = userContext(reply.request, now)
    const isTaken = await store.transact(secondFactorKind, user.id, (current) => {
      if (!isRecovery) return takeCode(current, opened, step)
      const decision = takeRecoveryCode(current, typed)
      const event = auditEvent('recovery-code-used', context, { userId: user.id })
      return 'result' in decision && decision.result ? withWrites(decision, event) : decision
    })
    return isTaken ? opened.sealedSecret : undefined
  }

  const byCode = async (
    pending: Pending,
    pendingFactor: PendingFactor,
    form: Parameters,
    reply: FastifyReply,
    now: Seconds,
  ): Promise<LoginProof | undefined> => {
    const { user, from } = pendingFactor
    const recovery = single(form, 'decision') === 'recovery'
    const limits = config.signInThrottle
    const known = await app.browser.knownBrowser(reply.request, user)
    const buckets = secondFactorBuckets(user.id, known, limits)
    try {
      const trial = { buckets, limits, now, userId: user.id }
      const sealedSecret = await throttled(store, trial, () =>
        pendingFactor.step.codes ? take(user, form, reply, now) : Promise.resolve(undefined),
      )
      if (sealedSecret !== undefined) {
        const passkey = from?.methods.includes('pop') ?? false
        const methods = methodsOf({ password: true, codes: true, passkey })
        return { user, methods, sealedSecret, ...(from && { continues: from }) }
      }
      await fail(
        pending,
        pendingFactor,
        reply,
        now,
        msg(recovery ? 'second.wrongRecovery' : 'second.wrong'),
        recovery,
      )
    } catch (error) {
      if (!(error instanceof OAuthError) || error.code !== 'temporarily_unavailable') throw error
      recordRejection(error, reply)
      reply.headers(error.headers)
      await show(pending, pendingFactor, reply, {
        recovery,
        problem: comeBack(error, pending),
        status: error.status,
      })
    }
    return undefined
  }

  const byPasskey = async (
    pending: Pending,
    pendingFactor: PendingFactor,
    form: Parameters,
    reply: FastifyReply,
    now: Seconds,
  ): Promise<LoginProof | undefined> => {
    const { user, from } = pendingFactor
    const shown = await provePasskey(pending, form, reply, now, user)
    if (!isProof(shown)) {
      await fail(pending, pendingFactor, reply, now, shown)
      return undefined
    }
    const codes = from?.methods.includes('otp') ?? false
    const methods = methodsOf({ password: true, codes, passkey: true }, shown.ownerChecked)
    const { id: passkeyId } = shown.passkey
    return { user, methods, passkeyId, ...(from && { continues: from }) }
  }

  const fail = async (
    pending: Pending,
    pendingFactor: PendingFactor,
    reply: FastifyReply,
    now: Seconds,
    problem: Text,
    recovery = false,
  ) => {
    const rejection = notSignedIn(problem)
    recordRejection(rejection, reply)
    const context = userContext(reply.request, now)
    const who = { userId: pendingFactor.user.id, ...clientOf(pending) }
    await store.write(auditEvent('sign-in-failed', context, who))
    // The challenge was used up: the page needs the interaction as it is now.
    const interaction = (await store.find(interactionKind, pending.interaction.id)) ?? pending.interaction
    await show({ ...pending, interaction }, pendingFactor, reply, {
      recovery,
      problem,
      status: rejection.status,
    })
  }

  return {
    pendingFactorOf,
    begin,
    show,
    /** What the second factor proved, or undefined after the page was shown again with what is wrong. */
    check: (
      pending: Pending,
      pendingFactor: PendingFactor,
      form: Parameters,
      reply: FastifyReply,
    ): Promise<LoginProof | undefined> => {
      const prove = single(form, 'decision') === 'passkey' ? byPasskey : byCode
      return prove(pending, pendingFactor, form, reply, clock())
    },
  }
}

function isProof(shown: ShownPasskey | Text): shown is ShownPasskey {
  return 'passkey' in shown
}
