import type { FastifyInstance, FastifyReply } from 'fastify'
import { factorsOf } from '../credentials/factors.ts'
import { stepOfCode } from '../credentials/one-time-codes.ts'
import type { AppDeps } from '../deps.ts'
import { auditEvent } from '../domain/audit.ts'
import { methodsOf } from '../domain/authentication-context.ts'
import { accept, withWrites } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import { mustAuthenticate } from '../domain/interaction.ts'
import type { Account, Seconds, Session } from '../domain/model.ts'
import { type Parameters, single } from '../domain/parameters.ts'
import {
  halfSignInSeconds,
  type SecondStep,
  secondStepOf,
  takeCode,
  takeRecoveryCode,
} from '../domain/second-factor.ts'
import { hashSecret } from '../domain/secret.ts'
import { secondFactorBuckets } from '../domain/sign-in-throttle.ts'
import type { Text } from '../domain/text.ts'
import { noteRefusal } from '../http/errors.ts'
import { throttled } from '../http/throttled.ts'
import { says } from '../texts/catalogue.ts'
import { comeBack, faceOf, type LoginForms, notSignedIn } from './login-forms.ts'
import type { PasskeyProof, ShownPasskey } from './passkey-proof.ts'
import { clientOf, ended, formActionOf, type Pending } from './pending.ts'
import type { Evidence } from './start-session.ts'

/** A sign-in that lacks its second factor: the password was right, now or in the session that is to become more. */
export interface Half {
  readonly account: Account
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

  const begin = async ({ interaction }: Pending, account: Account, now: Seconds): Promise<void> => {
    const halfSignIn = { accountId: account.id, password: hashSecret(account.passwordHash ?? ''), at: now }
    await store.transact('interaction', interaction.id, (current) => {
      if (current === undefined) throw ended()
      return accept(undefined, { op: 'updateInteraction', interaction: { ...current, halfSignIn } })
    })
  }

  const begun = async ({ interaction }: Pending, now: Seconds): Promise<Omit<Half, 'step'> | undefined> => {
    const { halfSignIn } = interaction
    if (halfSignIn === undefined || now >= halfSignIn.at + halfSignInSeconds) return undefined
    const account = await store.find('account', halfSignIn.accountId)
    return account !== undefined && hashSecret(account.passwordHash ?? '') === halfSignIn.password
      ? { account }
      : undefined
  }

  /** A session that is good but for what the client asks for is not asked for its password again. */
  const steppedUp = async (pending: Pending, now: Seconds): Promise<Omit<Half, 'step'> | undefined> => {
    const { session, request, step } = pending
    if (session === undefined || step !== 'login' || !session.methods.includes('pwd')) return undefined
    if (mustAuthenticate(request, session, now)) return undefined
    if ((request.requiredSub ?? session.accountId) !== session.accountId) return undefined
    const account = await store.find('account', session.accountId)
    // After the account: a session that outlived a new password is none.
    const isAlive = (await store.find('session', session.id)) !== undefined
    return account !== undefined && isAlive ? { account, from: session } : undefined
  }

  const halfOf = async (pending: Pending, now: Seconds): Promise<Half | undefined> => {
    const half = (await begun(pending, now)) ?? (await steppedUp(pending, now))
    if (half === undefined || half.account.lockedAt !== undefined) return undefined
    const step = secondStepOf(await factorsOf(deps, half.account.id), pending.request.acr)
    return step && { ...half, step }
  }

  const show = async (
    pending: Pending,
    { account, step }: Half,
    reply: FastifyReply,
    shown: { readonly recovery?: boolean; readonly problem?: Text; readonly status?: number } = {},
  ) => {
    const { recovery = false, problem, status = 200 } = shown
    const passkeys = step.passkey ? await store.listOf('passkey', account.id) : []
    const url = forms.pageUrl(pending)
    const model = {
      ...forms.frameOf(pending),
      account: faceOf(account),
      anotherUrl: `${url}&another=1`,
      ...(step.codes && { codes: recovery ? ('recovery' as const) : ('one-time' as const) }),
      ...(step.codes && { insteadUrl: recovery ? url : `${url}&recovery=1` }),
      ...(await forms.passkeyOf(pending, passkeys)),
      ...(problem !== undefined && { problem }),
    }
    return reply.page('second-factor', model, { status, ...formActionOf(pending) })
  }

  /** Takes what was typed, once; the seal tells which secret it belonged to. */
  const take = async (account: Account, form: Parameters, reply: FastifyReply, now: Seconds) => {
    const opened = await store.find('secondFactor', account.id)
    if (opened === undefined) return undefined
    const typed = single(form, 'code') ?? ''
    const isRecovery = single(form, 'decision') === 'recovery'
    const step = isRecovery ? undefined : await stepOfCode(keys, opened, typed, now)
    const occasion = { by: 'person', at: now, from: reply.request.ip } as const
    const isTaken = await store.transact('secondFactor', account.id, (current) => {
      if (!isRecovery) return takeCode(current, opened, step)
      const decision = takeRecoveryCode(current, typed)
      const told = auditEvent('recovery-code-used', occasion, { accountId: account.id })
      return 'result' in decision && decision.result ? withWrites(decision, told) : decision
    })
    return isTaken ? opened.sealedSecret : undefined
  }

  const byCode = async (
    pending: Pending,
    half: Half,
    form: Parameters,
    reply: FastifyReply,
    now: Seconds,
  ): Promise<Evidence | undefined> => {
    const { account, from } = half
    const recovery = single(form, 'decision') === 'recovery'
    const limits = config.signInThrottle
    const known = app.browser.device(reply.request, account)
    const buckets = secondFactorBuckets(account.id, known, limits)
    try {
      const trial = { buckets, limits, now, accountId: account.id }
      const sealedSecret = await throttled(store, trial, () =>
        half.step.codes ? take(account, form, reply, now) : Promise.resolve(undefined),
      )
      if (sealedSecret !== undefined) {
        const passkey = from?.methods.includes('pop') ?? false
        const methods = methodsOf({ password: true, codes: true, passkey })
        return { account, methods, sealedSecret, ...(from && { continues: from }) }
      }
      await fail(
        pending,
        half,
        reply,
        now,
        says(recovery ? 'second.wrongRecovery' : 'second.wrong'),
        recovery,
      )
    } catch (error) {
      if (!(error instanceof OAuthError) || error.code !== 'temporarily_unavailable') throw error
      noteRefusal(error, reply)
      reply.headers(error.headers)
      await show(pending, half, reply, { recovery, problem: comeBack(error, pending), status: error.status })
    }
    return undefined
  }

  const byPasskey = async (
    pending: Pending,
    half: Half,
    form: Parameters,
    reply: FastifyReply,
    now: Seconds,
  ): Promise<Evidence | undefined> => {
    const { account, from } = half
    const shown = await provePasskey(pending, form, reply, now, account)
    if (!isProof(shown)) {
      await fail(pending, half, reply, now, shown)
      return undefined
    }
    const codes = from?.methods.includes('otp') ?? false
    const methods = methodsOf({ password: true, codes, passkey: true }, shown.ownerChecked)
    const { id: passkeyId } = shown.passkey
    return { account, methods, passkeyId, ...(from && { continues: from }) }
  }

  const fail = async (
    pending: Pending,
    half: Half,
    reply: FastifyReply,
    now: Seconds,
    problem: Text,
    recovery = false,
  ) => {
    const refusal = notSignedIn(problem)
    noteRefusal(refusal, reply)
    const occasion = { by: 'person', at: now, from: reply.request.ip } as const
    const who = { accountId: half.account.id, ...clientOf(pending) }
    await store.write(auditEvent('sign-in-failed', occasion, who))
    // The challenge was used up: the page needs the interaction as it is now.
    const interaction = (await store.find('interaction', pending.interaction.id)) ?? pending.interaction
    await show({ ...pending, interaction }, half, reply, { recovery, problem, status: refusal.status })
  }

  return {
    halfOf,
    begin,
    show,
    /** What the second factor proved, or undefined after the page was shown again with what is wrong. */
    check: (
      pending: Pending,
      half: Half,
      form: Parameters,
      reply: FastifyReply,
    ): Promise<Evidence | undefined> => {
      const prove = single(form, 'decision') === 'passkey' ? byPasskey : byCode
      return prove(pending, half, form, reply, clock())
    },
  }
}

function isProof(shown: ShownPasskey | Text): shown is ShownPasskey {
  return 'passkey' in shown
}
