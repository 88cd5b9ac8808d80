import type { FastifyInstance } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { accept, endSessionsOf, insert, remove } from '../../domain/decision.ts'
import { interactionKind, noProgress } from '../../domain/interaction.ts'
import type { Passkey, Seconds } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import { hashSecret } from '../../domain/secret.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { RecordExists } from '../../storage/store.ts'
import { keepAdministrator, lastAdministrator } from '../../users/administrators.ts'
import { userCredentials } from '../../users/factors.ts'
import { creationOptions, verifyCreation } from '../../users/passkeys/passkeys.ts'
import { addPasskey, mostPasskeys, passkeyKind } from '../../users/rules/passkey.ts'
import { browserName } from '../../users/sessions.ts'
import { ago } from '../describe.ts'
import { msg } from '../i18n/i18n.ts'
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
      readonly creation?: {
        /** What the script of the page asks the browser for, Web Authentication Level 3 §5.4, as JSON. */
        readonly options: string
        /** The name suggested for it. */
        readonly name: string
      }
    }
  }
}

const path = '/account/passkeys'
const longestName = 60

/** The passkeys of a user, Web Authentication Level 3: lists them, adds one, removes one. */
export function passkeysPage(app: FastifyInstance, deps: PageDeps): AccountPage {
  const { config, service, store, random } = deps
  const { relyingParty } = service

  const show = async (visit: Visit, problem?: Text) => {
    const { user, now, handleOf, request } = visit
    const passkeys = await store.listOf(passkeyKind, user.id)
    const isFull = passkeys.length >= mostPasskeys
    const offer = relyingParty && !isFull ? await offerChallenge(visit) : undefined
    const content = {
      ...(offer && { hidden: { interaction: offer.id } }),
      passkeys: passkeys.map((passkey) => ({
        handle: handleOf(passkey.id),
        name: passkey.name,
        addedAgoSeconds: ago(passkey.createdAt, now),
        ...(passkey.usedAt > passkey.createdAt && { usedAgoSeconds: ago(passkey.usedAt, now) }),
        synced: passkey.backedUp,
      })),
      isFull,
      ...(relyingParty &&
        offer && {
          creation: {
            options: JSON.stringify(
              creationOptions(relyingParty, config.service.name, user, passkeys, offer.challenge),
            ),
            name: (await browserName(request.headers['user-agent'])) ?? '',
          },
        }),
    }
    return visit.render('account-passkeys', content, problem)
  }

  /** Stores a challenge for the next passkey, good once. */
  const offerChallenge = async ({ request, reply, now }: Visit) => {
    const [id, challenge] = [16, 32].map((size) => random(size).toString('base64url')) as [string, string] // two of two
    const interaction = {
      id,
      challenge,
      browserHash: hashSecret(app.browser.ensureSecret(request, reply)),
      request: { page: path, prompt: [] },
      ...noProgress,
      createdAt: now,
      expiresAt: now + config.lifetimes.interactionSeconds,
    }
    await store.write(insert(interactionKind, interaction))
    return { id, challenge }
  }

  const redeemChallenge = ({ form, request, now }: Visit) => {
    const browserHash = hashSecret(app.browser.secret(request) ?? '')
    const id = (single(form, 'interaction') ?? '').slice(0, 64)
    return store.transact(interactionKind, id, (current) => {
      const isOurs = current?.browserHash === browserHash && 'page' in current.request
      if (!isOurs || current.request.page !== path || now >= current.expiresAt) return accept(undefined)
      return accept(current.challenge, remove(interactionKind, id))
    })
  }

  /** Returns why the passkey was not added. */
  const add = async (visit: Visit): Promise<Text | undefined> => {
    const { user, session, form, now, context, request } = visit
    const challenge = await redeemChallenge(visit)
    if (challenge === undefined || relyingParty === undefined) return msg('passkeys.outdated')
    const verified = await verifyCreation(relyingParty, single(form, 'credential'), challenge)
    if (verified === undefined) return msg('passkeys.refused')
    const typed = nameOf(single(form, 'name'))
    // The suggested name is the browser's: what keeps the passkey says more.
    const isSuggested = typed === '' || typed === (await browserName(request.headers['user-agent']))
    const name = (isSuggested ? verified.maker : undefined) ?? (typed || 'Passkey')
    const passkey: Passkey = { ...verified.created, userId: user.id, name, createdAt: now, usedAt: now }
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

  /** Ends every other session, too: one of them may have begun with the passkey. */
  const removePasskey = async (visit: Visit, handle: string): Promise<boolean> => {
    const { user, session, context, handleOf } = visit
    const userId = user.id
    const passkeys = await store.listOf(passkeyKind, userId)
    const passkey = passkeys.find(({ id }) => handleOf(id) === handle)
    if (passkey === undefined) return false
    return store.transact(userCredentials, userId, (current) => {
      const own = current?.passkeys ?? []
      if (!own.some(({ id }) => id === passkey.id)) return accept(false)
      const facts = { userId, name: passkey.name, left: own.length - 1 }
      const removal = accept(
        true,
        remove(passkeyKind, passkey.id),
        endSessionsOf(userId, context.at, session.id),
        auditEvent('passkey-removed', context, facts),
      )
      return keepAdministrator(removal, config.admin.group, context.at)
    })
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
      if (handle !== undefined) return done((await removePasskey(visit, handle)) ? 'passkey-removed' : 'gone')
      const problem = await add(visit)
      if (problem !== undefined) return show(visit, problem)
      return waitingUrl === undefined ? done('passkey-added') : reply.redirect(waitingUrl, 303)
    },
  }
}

/** Returns the name a user typed, on one line. */
function nameOf(typed = ''): string {
  const name = typed.replaceAll(/[\p{C}\s]+/gu, ' ').trim()
  return [...name].slice(0, longestName).join('')
}
