import type { FastifyInstance } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { type Factors, methodsOf } from '../../domain/authentication-context.ts'
import { withWrites } from '../../domain/decision.ts'
import { interactionKind, mustAuthenticate } from '../../domain/interaction.ts'
import type { Session, SignInElsewhere, User } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import { hashSecret } from '../../domain/secret.ts'
import type { Text } from '../../domain/text.ts'
import type { Needs } from '../../feature/deps.ts'
import { userContext } from '../../http/address-prefix.ts'
import { factorsOf } from '../../users/factors.ts'
import { recordNotSignedIn } from '../../users/failed-sign-ins.ts'
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
import { displayName, type NamedUser } from '../describe.ts'
import { msg } from '../i18n/i18n.ts'
import { comeBack, type LoginForms, type SignInModel } from './login-forms.ts'
import type { PasskeyProof } from './passkey-proof.ts'
import { changeInteraction, clientOf, type Pending } from './pending.ts'
import type { LoginProof } from './start-session.ts'

declare module '../pages.ts' {
  interface Pages {
    'second-factor': SignInModel & {
      readonly user: NamedUser
      /** Signs in as another user. */
      readonly anotherUrl: string
      /** The kind of code to type; absent: only a passkey is accepted. */
      readonly codes?: 'one-time' | 'recovery'
      /** The same page for the other kind of code. */
      readonly insteadUrl?: string
    }
  }
}

/** A sign-in that lacks its second factor: the password was right, now or in the session that is stepped up. */
export interface PendingFactor {
  readonly user: User
  readonly step: SecondStep
  /** The session that is stepped up, or the sign-in that took the place of a password. */
  readonly from?: Pick<Session, 'methods' | 'authenticatedAt' | 'expiresAt'> | SignInElsewhere
}

interface Shown {
  readonly recovery?: boolean
  readonly problem?: Text
  readonly status?: number
}

/** The step after the password: a one-time code, a recovery code or a passkey. */
export function secondStep(
  app: FastifyInstance,
  deps: Needs<'config' | 'store' | 'keys' | 'service'>,
  forms: LoginForms,
  provePasskey: PasskeyProof,
) {
  const { config, store, keys } = deps

  /** @param elsewhere The sign-in that took the place of a password. */
  const begin = async (pending: Pending, user: User, elsewhere?: SignInElsewhere): Promise<void> => {
    const password = hashSecret(user.passwordHash ?? '')
    const pendingSecondFactor = {
      userId: user.id,
      password,
      at: pending.now,
      ...(elsewhere && { elsewhere }),
    }
    await changeInteraction(store, pending, (current) => ({ ...current, pendingSecondFactor }))
  }

  const begun = async ({ interaction, now }: Pending): Promise<Omit<PendingFactor, 'step'> | undefined> => {
    const { pendingSecondFactor } = interaction
    if (pendingSecondFactor === undefined || now >= pendingSecondFactor.at + pendingSecondFactorSeconds)
      return undefined
    const user = await store.find('user', pendingSecondFactor.userId)
    return user !== undefined && hashSecret(user.passwordHash ?? '') === pendingSecondFactor.password
      ? { user, ...(pendingSecondFactor.elsewhere && { from: pendingSecondFactor.elsewhere }) }
      : undefined
  }

  /** Returns a session that only lacks the second factor: the user need not type the password again. */
  const steppedUp = async (pending: Pending): Promise<Omit<PendingFactor, 'step'> | undefined> => {
    const { session, request, step, now } = pending
    if (session === undefined || step !== 'login' || !session.methods.includes('pwd')) return undefined
    if (mustAuthenticate(request, session, now)) return undefined
    if ((request.requiredSub ?? session.userId) !== session.userId) return undefined
    const user = await store.find('user', session.userId)
    // Read after the user: a new password ends the session.
    const isAlive = (await store.find('session', session.id)) !== undefined
    return user !== undefined && isAlive ? { user, from: session } : undefined
  }

  const pendingFactorOf = async (pending: Pending): Promise<PendingFactor | undefined> => {
    const pendingFactor = (await begun(pending)) ?? (await steppedUp(pending))
    if (pendingFactor === undefined || pendingFactor.user.lockedAt !== undefined) return undefined
    const step = secondStepOf(
      await factorsOf(deps, pendingFactor.user.id),
      pending.remedy?.acr ?? pending.request.acr,
    )
    return step && { ...pendingFactor, step }
  }

  const show = async (pending: Pending, { user, step }: PendingFactor, shown: Shown) => {
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
    return pending.reply.page('second-factor', model, { status })
  }

  /** Uses up the typed code. Returns the seal of the secret it belonged to. */
  const take = async (user: User, { sent, reply, now }: Pending) => {
    const opened = await store.find(secondFactorKind, user.id)
    if (opened === undefined) return undefined
    const typed = single(sent, 'code') ?? ''
    const isRecovery = single(sent, 'decision') === 'recovery'
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
  ): Promise<LoginProof | Required<Shown>> => {
    const { sent, reply, now } = pending
    const { user, from, step } = pendingFactor
    const recovery = single(sent, 'decision') === 'recovery'
    const limits = config.signInThrottle
    const known = await app.browser.knownBrowser(reply.request, user)
    const buckets = secondFactorBuckets(user.id, known, limits)
    try {
      const trial = { buckets, limits, now, userId: user.id }
      const attempt = () => (step.codes ? take(user, pending) : Promise.resolve(undefined))
      const sealedSecret = await throttled(store, trial, attempt)
      if (sealedSecret === undefined) {
        const problem = msg(recovery ? 'second.wrongRecovery' : 'second.wrong')
        return { recovery, problem, status: await fail(pending, user, problem) }
      }
      const passkey = from?.methods.includes('pop') ?? false
      const methods = withFirst(from, { codes: true, passkey })
      return { user, methods, sealedSecret, ...beginningOf(user, from) }
    } catch (error) {
      return { recovery, ...comeBack(error, pending) }
    }
  }

  const byPasskey = async (
    pending: Pending,
    { user, from }: PendingFactor,
  ): Promise<LoginProof | Required<Shown>> => {
    const shown = await provePasskey(pending, user)
    if (!('passkey' in shown))
      return { recovery: false, problem: shown, status: await fail(pending, user, shown) }
    const codes = from?.methods.includes('otp') ?? false
    const methods = withFirst(from, { codes, passkey: true }, shown.ownerChecked)
    return { user, methods, passkeyId: shown.passkey.id, ...beginningOf(user, from) }
  }

  /** Logs a factor that was wrong. Returns the status of the page. */
  const fail = async (pending: Pending, { id: userId }: User, problem: Text): Promise<number> => {
    const { status } = recordNotSignedIn(pending, problem)
    const context = userContext(pending.reply.request, pending.now)
    await store.write(auditEvent('sign-in-failed', context, { userId, ...clientOf(pending) }))
    return status
  }

  return {
    pendingFactorOf,
    begin,
    show,
    /** Returns what the second factor proved; undefined after it showed the page again with the problem. */
    prove: async (pending: Pending, pendingFactor: PendingFactor): Promise<LoginProof | undefined> => {
      const isPasskey = single(pending.sent, 'decision') === 'passkey'
      const outcome = await (isPasskey ? byPasskey : byCode)(pending, pendingFactor)
      if ('methods' in outcome) return outcome
      // Read again: the challenge was used up.
      const interaction = (await store.find(interactionKind, pending.interaction.id)) ?? pending.interaction
      await show({ ...pending, interaction }, pendingFactor, outcome)
      return undefined
    },
  }
}

/** Returns the methods of a sign-in with a second factor; what came before it is a factor, but not always a password. */
function withFirst(
  from: PendingFactor['from'],
  factors: Omit<Factors, 'password'>,
  ownerChecked?: boolean,
): readonly string[] {
  const methods = methodsOf({ ...factors, password: true }, ownerChecked)
  return methods.filter((method) => method !== 'pwd' || from === undefined || from.methods.includes(method))
}

/** Returns what the session continues, or begins with. */
function beginningOf(
  { id: userId }: User,
  from: PendingFactor['from'],
): Pick<LoginProof, 'continues' | 'elsewhere'> {
  if (from === undefined) return {}
  return { continues: from, ...('upstream' in from && { elsewhere: { ...from, userId } }) }
}
