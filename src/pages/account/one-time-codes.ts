import type { FastifyInstance } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { accept, type Decision, endSessionsOf, remove, withWrites } from '../../domain/decision.ts'
import type { SecondFactor, Seconds, User } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { Needs, PageDeps } from '../../feature/deps.ts'
import { userCredentials } from '../../users/factors.ts'
import { drawCode, mintCodeSecret, showCodeSecret, stepOfCode } from '../../users/one-time-codes.ts'
import {
  beginCodes,
  confirmCodes,
  hashRecoveryCode,
  mintRecoveryCodes,
  recoveryCodes,
  renewRecoveryCodes,
  secondFactorKind,
} from '../../users/rules/second-factor.ts'
import { ago } from '../describe.ts'
import { msg } from '../i18n/i18n.ts'
import { type AccountModel, type AccountPage, addFactorToSession, type Visit } from './account-page.ts'

declare module '../pages.ts' {
  interface Pages {
    'account-one-time-codes': AccountModel & {
      /** Codes are asked for after the password only. */
      readonly hasPassword: boolean
      readonly inUse?: { readonly sinceAgoSeconds: Seconds; readonly recoveryCodes: number }
      /** A secret that is not confirmed yet: its picture, and the text for use without a camera. */
      readonly setUp?: { readonly pictureUrl: string; readonly secret: string }
      /** New recovery codes, shown this once, and what follows if a request waits. */
      readonly fresh?: readonly string[]
      readonly waitingUrl?: string
    }
  }
}

const path = '/account/one-time-codes'
const picturePath = `${path}/picture.svg`

/** The QR code of a secret that is not confirmed yet. */
export function codesPicture(_app: FastifyInstance, { config, store, keys }: PageDeps): AccountPage {
  return {
    path: picturePath,
    section: 'security',
    requires: 'every-factor',
    show: async ({ user, reply }) => {
      const codes = await store.find(secondFactorKind, user.id)
      if (codes === undefined || codes.confirmedAt !== undefined) {
        reply.callNotFound()
        return reply
      }
      return reply
        .header('cache-control', 'no-store')
        .header('cross-origin-resource-policy', 'same-origin')
        .type('image/svg+xml')
        .send(await drawCode((await openSecret({ config, keys }, codes, user)).uri))
    },
  }
}

/** The one-time codes of a user, RFC 6238, and the recovery codes that replace them. */
export function codesPage(app: FastifyInstance, deps: PageDeps): AccountPage {
  const { service, store, keys, random } = deps

  const show = async (
    { user, now, render, waitingUrl }: Visit,
    problem?: Text,
    fresh?: readonly string[],
  ) => {
    const codes = await store.find(secondFactorKind, user.id)
    const content = {
      hasPassword: user.passwordHash !== undefined,
      ...(codes?.confirmedAt !== undefined && {
        inUse: {
          sinceAgoSeconds: ago(codes.confirmedAt, now),
          recoveryCodes: codes.recoveryHashes.length,
        },
      }),
      ...(codes !== undefined &&
        codes.confirmedAt === undefined && {
          setUp: {
            pictureUrl: service.prefix + picturePath,
            secret: (await openSecret(deps, codes, user)).text,
          },
        }),
      ...(fresh !== undefined && { fresh }),
      ...(waitingUrl !== undefined && { waitingUrl }),
    }
    return render('account-one-time-codes', content, problem)
  }

  /**
   * Decides about the codes under the lock of the user, like everything that ends a session or locks the user. Returns
   * false, and writes nothing, when the session of the request has ended or the user was locked.
   */
  const decide = (
    { user, session }: Visit,
    decision: (current: SecondFactor | undefined) => Decision<boolean>,
  ): Promise<boolean> =>
    store.transact(userCredentials, user.id, (current) => {
      const isSignedIn = current?.sessions.some(({ id }) => id === session.id) ?? false
      if (!isSignedIn || current?.user.lockedAt !== undefined) return accept(false)
      return decision(current?.secondFactor)
    })

  const begin = async (visit: Visit) => {
    const { user, now, done } = visit
    const sealed = keys.seal(mintCodeSecret(random), user.id, secondFactorKind)
    const isBegun = await decide(visit, (current) =>
      withWrites(beginCodes(current, user.id, sealed, now), keys.requireSealedNow(sealed, user.id)),
    )
    return done(isBegun ? 'codes-begun' : 'gone')
  }

  const mint = () => {
    const fresh = mintRecoveryCodes(random(recoveryCodes.count * recoveryCodes.bytes))
    return { fresh, hashes: fresh.map(hashRecoveryCode) }
  }

  const confirm = async (visit: Visit) => {
    const { user, form, now, context, done } = visit
    const opened = await store.find(secondFactorKind, user.id)
    if (opened === undefined || opened.confirmedAt !== undefined) return done('gone')
    const step = await stepOfCode(keys, opened, single(form, 'code') ?? '', now)
    const { fresh, hashes } = mint()
    const event = auditEvent('second-factor-added', context, { userId: user.id })
    const isRight = await decide(visit, (current) => {
      const decision = confirmCodes(current, opened, step, hashes, now)
      return 'result' in decision && decision.result ? withWrites(decision, event) : decision
    })
    if (!isRight) return show(visit, msg('codes.wrong'))
    await addFactorToSession(app, deps, visit, 'codes')
    return show(visit, undefined, fresh)
  }

  const renew = async (visit: Visit) => {
    const { user, context, done } = visit
    const { fresh, hashes } = mint()
    const event = auditEvent('recovery-codes-made', context, { userId: user.id })
    const isRenewed = await decide(visit, (current) => {
      const decision = renewRecoveryCodes(current, hashes)
      return 'result' in decision && decision.result ? withWrites(decision, event) : decision
    })
    return isRenewed ? show(visit, undefined, fresh) : done('gone')
  }

  /** Ends every other session, too: one of them may have begun with a code. */
  const removeCodes = async (visit: Visit) => {
    const { user, session, context, done } = visit
    const userId = user.id
    const isRemoved = await decide(visit, (current) => {
      if (current === undefined) return accept(false)
      const removal = remove(secondFactorKind, userId)
      // Codes that were never confirmed were not in use.
      if (current.confirmedAt === undefined) return accept(true, removal)
      const others = endSessionsOf(userId, context.at, session.id)
      return accept(true, removal, others, auditEvent('second-factor-removed', context, { userId }))
    })
    return done(isRemoved ? 'codes-removed' : 'gone')
  }

  const decisions = new Map([
    ['begin', begin],
    ['confirm', confirm],
    ['renew', renew],
    ['remove', removeCodes],
  ])
  return {
    path,
    section: 'security',
    requires: 'every-factor',
    enrols: true,
    show,
    submit: (visit) => decisions.get(single(visit.form, 'decision') ?? '')?.(visit) ?? visit.done('gone'),
  }
}

function openSecret(
  { config, keys }: Needs<'config' | 'keys'>,
  { userId, sealedSecret }: SecondFactor,
  { username }: User,
) {
  return showCodeSecret(keys.unseal(sealedSecret, userId), config.service.name, username)
}
