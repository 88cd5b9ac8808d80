import type { FastifyInstance } from 'fastify'
import type { Seconds } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { RecordExists } from '../../storage/store.ts'
import { keepAdministrator, lastAdministrator } from '../../users/administrators.ts'
import { userCredentials, waysToSignIn } from '../../users/factors.ts'
import { addPasskey, mostPasskeys, passkeyKind, removePasskey } from '../../users/rules/passkey.ts'
import { ago } from '../describe.ts'
import { msg } from '../i18n/i18n.ts'
import { type PasskeyCreation, passkeyCreation } from '../passkey-creation.ts'
import { type AccountModel, type AccountPage, addFactorToSession, type Visit } from './account-page.ts'

declare module '../pages.ts' {
  interface Pages {
    'account-passkeys': AccountModel & {
      readonly passkeys: readonly {
        /** What a form sends to name it. */
        readonly handle: string
        readonly name: string
        readonly addedAgoSeconds: Seconds
        /** Absent until it is used. */
        readonly usedAgoSeconds?: Seconds
        /** Whether more than one device keeps it. */
        readonly synced: boolean
      }[]
      /** Whether no other one can be added. */
      readonly isFull: boolean
      /** Absent where no passkey can be created. */
      readonly creation?: PasskeyCreation
    }
  }
}

const path = '/account/passkeys'

/** The passkeys of a user, Web Authentication Level 3: lists them, adds one, removes one. */
export function passkeysPage(app: FastifyInstance, deps: PageDeps): AccountPage {
  const { config, store } = deps
  const creation = passkeyCreation(app, deps, path)

  const show = async (visit: Visit, problem?: Text) => {
    const { user, now, handleOf, reply } = visit
    const passkeys = await store.listOf(passkeyKind, user.id)
    const isFull = passkeys.length >= mostPasskeys
    const offer = isFull ? undefined : await creation.offer(reply, user, passkeys, now)
    const content = {
      ...offer,
      passkeys: passkeys.map((passkey) => ({
        handle: handleOf(passkey.id),
        name: passkey.name,
        addedAgoSeconds: ago(passkey.createdAt, now),
        ...(passkey.usedAt > passkey.createdAt && { usedAgoSeconds: ago(passkey.usedAt, now) }),
        synced: passkey.backedUp,
      })),
      isFull,
    }
    return visit.render('account-passkeys', content, problem)
  }

  /** Returns why the passkey was not added. */
  const add = async (visit: Visit): Promise<Text | undefined> => {
    const { user, session, form, now, context, request } = visit
    const passkey = await creation.take(form, request, user.id, now)
    if ('key' in passkey) return passkey
    try {
      const addition = await store.transact(userCredentials, user.id, (current) =>
        addPasskey(current, passkey, session.id, context),
      )
      if (addition === 'full') return msg('passkeys.full')
      if (addition === 'gone') return msg('passkeys.refused')
      await addFactorToSession(app, deps, visit, 'passkey')
      return undefined
    } catch (error) {
      if (error instanceof RecordExists) return msg('passkeys.known')
      throw error
    }
  }

  const removeOne = async ({ user, session, context, handleOf }: Visit, handle: string) => {
    const passkeys = await store.listOf(passkeyKind, user.id)
    const id = passkeys.find((passkey) => handleOf(passkey.id) === handle)?.id ?? ''
    return store.transact(waysToSignIn, user.id, (current) =>
      keepAdministrator(removePasskey(current, id, context, session.id), config.admin.group, context.at),
    )
  }

  return {
    path,
    section: 'security',
    requires: 'every-factor',
    enrols: true,
    problems: { [lastAdministrator]: 'passkeys.lastAdministrator' },
    show,
    submit: async (visit) => {
      const { form, done, reply, waitingUrl } = visit
      const handle = single(form, 'remove')
      const removal = handle === undefined ? undefined : await removeOne(visit, handle)
      if (removal === 'last') return show(visit, msg('passkeys.last'))
      if (removal !== undefined) return done(removal === 'removed' ? 'passkey-removed' : 'gone')
      const problem = await add(visit)
      if (problem !== undefined) return show(visit, problem)
      return waitingUrl === undefined ? done('passkey-added') : reply.redirect(waitingUrl, 303)
    },
  }
}
