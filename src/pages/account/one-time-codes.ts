import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import { accept, type Decision, remove, withWrites } from '../../domain/decision.ts'
import type { SecondFactor, User } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import { userContext } from '../../http/address-prefix.ts'
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
import { msg } from '../i18n/catalogue.ts'
import type { Submission, Visit } from '../own-pages.ts'
import { factorEntry } from './factor-entry.ts'

const page = '/account/one-time-codes'
const picture = `${page}/picture.svg`

/** What the page shows beside how things stand. */
interface Shown {
  readonly problem?: Text
  /** Shown once, here and never again. */
  readonly fresh?: readonly string[]
}

/** The one-time codes of a user, RFC 6238, and the recovery codes that stand in for them. */
export function ownCodes(app: FastifyInstance, deps: AppDeps): void {
  const { config, service, store, keys, random } = deps
  const { visit, submission, back, stepUp } = factorEntry(app, deps, page)

  app.get(page, { schema: { hide: true } }, async (request, reply) => {
    const here = await visit(request, reply)
    return here === undefined ? reply : show(here, reply)
  })

  app.get(picture, { schema: { hide: true } }, async (request, reply) => {
    const here = await visit(request, reply)
    if (here === undefined) return reply
    const codes = await store.find(secondFactorKind, here.user.id)
    if (codes === undefined || codes.confirmedAt !== undefined) return reply.callNotFound()
    const { uri } = await secretOf(codes, here.user)
    return reply
      .header('cache-control', 'no-store')
      .header('cross-origin-resource-policy', 'same-origin')
      .type('image/svg+xml')
      .send(await drawCode(uri))
  })

  app.post(page, { schema: { hide: true } }, async (request, reply) => {
    const here = await submission(request, reply)
    if (here === undefined) return reply
    const context = userContext(request, here.now)
    switch (single(here.form, 'decision')) {
      case 'begin':
        return back(reply, (await begin(here)) ? 'codes-begun' : 'gone')
      case 'confirm':
        return confirm(here, context, reply)
      case 'renew':
        return renew(here, context, reply)
      case 'remove':
        return back(reply, (await removeCodes(here, context)) ? 'codes-removed' : 'gone')
      default:
        return back(reply, 'gone')
    }
  })

  const secretOf = ({ userId, sealedSecret }: SecondFactor, { username }: User) =>
    showCodeSecret(keys.unseal(sealedSecret, userId), config.service.name, username)

  const show = async ({ frame, hidden, user, now }: Visit, reply: FastifyReply, shown: Shown = {}) => {
    const { problem, fresh } = shown
    const codes = await store.find(secondFactorKind, user.id)
    const isInUse = codes?.confirmedAt !== undefined
    const model = {
      frame,
      action: service.prefix + page,
      hidden,
      hasPassword: user.passwordHash !== undefined,
      ...(codes &&
        isInUse && {
          inUse: {
            sinceAgoSeconds: Math.max(1, now - (codes.confirmedAt ?? now)),
            recoveryCodes: codes.recoveryHashes.length,
          },
        }),
      ...(codes &&
        !isInUse && {
          setUp: { pictureUrl: service.prefix + picture, secret: (await secretOf(codes, user)).text },
        }),
      ...(fresh !== undefined && { fresh }),
      ...(problem !== undefined && { problem }),
    }
    return reply.page('account-one-time-codes', model, { status: problem === undefined ? 200 : 400 })
  }

  /**
   * Decides about the codes under the lock of the user, as what ends a session or locks the user does. False, and nothing
   * written, when the session of the request has ended or the user was locked.
   */
  const decide = (
    { user, session }: Submission,
    decision: (current: SecondFactor | undefined) => Decision<boolean>,
  ): Promise<boolean> =>
    store.transact(userCredentials, user.id, (current) => {
      const isSignedIn = current?.sessions.some(({ id }) => id === session.id) ?? false
      if (!isSignedIn || current?.user.lockedAt !== undefined) return accept(false)
      return decision(current?.secondFactor)
    })

  const begin = (here: Submission): Promise<boolean> => {
    const { user, now } = here
    const sealed = keys.seal(mintCodeSecret(random), user.id)
    return decide(here, (current) => beginCodes(current, user.id, sealed, now))
  }

  const mint = () => {
    const fresh = mintRecoveryCodes(random(recoveryCodes.count * recoveryCodes.bytes))
    return { fresh, hashes: fresh.map(hashRecoveryCode) }
  }

  const confirm = async (here: Submission, context: AuditContext, reply: FastifyReply) => {
    const { user, form, now } = here
    const opened = await store.find(secondFactorKind, user.id)
    if (opened === undefined || opened.confirmedAt !== undefined) return back(reply, 'gone')
    const step = await stepOfCode(keys, opened, single(form, 'code') ?? '', now)
    const { fresh, hashes } = mint()
    const event = auditEvent('second-factor-added', context, { userId: user.id })
    const isRight = await decide(here, (current) => {
      const decision = confirmCodes(current, opened, step, hashes, now)
      return 'result' in decision && decision.result ? withWrites(decision, event) : decision
    })
    if (!isRight) return show(here, reply, { problem: msg('codes.wrong') })
    await stepUp(here, 'codes', reply)
    return show(here, reply, { fresh })
  }

  const renew = async (here: Submission, context: AuditContext, reply: FastifyReply) => {
    const { user } = here
    const { fresh, hashes } = mint()
    const event = auditEvent('recovery-codes-made', context, { userId: user.id })
    const isDone = await decide(here, (current) => {
      const decision = renewRecoveryCodes(current, hashes)
      return 'result' in decision && decision.result ? withWrites(decision, event) : decision
    })
    return isDone ? show(here, reply, { fresh }) : back(reply, 'gone')
  }

  /** Ends every other session too: one of them may have begun with a code. */
  const removeCodes = (here: Submission, context: AuditContext): Promise<boolean> => {
    const { user, session } = here
    const { id: userId } = user
    return decide(here, (current) => {
      if (current === undefined) return accept(false)
      const gone = remove(secondFactorKind, userId)
      // Codes that were never confirmed were not in use.
      if (current.confirmedAt === undefined) return accept(true, gone)
      const others = { op: 'deleteSessionsOf', userId, except: session.id } as const
      return accept(true, gone, others, auditEvent('second-factor-removed', context, { userId }))
    })
  }
}
