import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { auditEvent } from '../../domain/audit.ts'
import { accept, insert, remove } from '../../domain/decision.ts'
import { interactionKind, noProgress } from '../../domain/interaction.ts'
import type { Passkey } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import { hashSecret } from '../../domain/secret.ts'
import type { Text } from '../../domain/text.ts'
import { userContext } from '../../http/address-prefix.ts'
import { RecordExists } from '../../storage/store.ts'
import { browserName } from '../../users/browser-name.ts'
import { userCredentials } from '../../users/factors.ts'
import { creationOptions, verifyCreation } from '../../users/passkeys.ts'
import { addPasskey, mostPasskeys, passkeyKind } from '../../users/rules/passkey.ts'
import { msg } from '../i18n/catalogue.ts'
import type { Submission, Visit } from '../own-pages.ts'
import { factorEntry } from './factor-entry.ts'

const page = '/account/passkeys'
const longestName = 60

/** The passkeys of a user, Web Authentication Level 3: which there are, one more, one less. */
export function ownPasskeys(app: FastifyInstance, deps: AppDeps): void {
  const { config, service, store, random } = deps
  const { visit, submission, back, stepUp } = factorEntry(app, deps, page)
  const { relyingParty } = service

  app.get(page, { schema: { hide: true } }, async (request, reply) => {
    const here = await visit(request, reply)
    return here === undefined ? reply : show(here, reply)
  })

  app.post(page, { schema: { hide: true } }, async (request, reply) => {
    const here = await submission(request, reply)
    if (here === undefined) return reply
    const removed = single(here.form, 'remove')
    if (removed !== undefined)
      return back(reply, (await removePasskey(here, removed, request)) ? 'passkey-removed' : 'gone')
    const problem = await add(here, request, reply)
    return problem === undefined ? back(reply, 'passkey-added') : show(here, reply, problem)
  })

  const show = async ({ frame, hidden, user, now, handleOf }: Visit, reply: FastifyReply, problem?: Text) => {
    const passkeys = await store.listOf(passkeyKind, user.id)
    const isFull = passkeys.length >= mostPasskeys
    const offer = relyingParty && !isFull ? await offerChallenge(reply, now) : undefined
    const model = {
      frame,
      action: service.prefix + page,
      hidden: { ...hidden, ...(offer && { interaction: offer.id }) },
      passkeys: passkeys.map((passkey) => ({
        handle: handleOf(passkey.id),
        name: passkey.name,
        addedAgoSeconds: Math.max(1, now - passkey.createdAt),
        ...(passkey.usedAt > passkey.createdAt && { usedAgoSeconds: Math.max(1, now - passkey.usedAt) }),
        synced: passkey.backedUp,
      })),
      isFull,
      ...(relyingParty &&
        offer && {
          creation: {
            options: JSON.stringify(
              creationOptions(relyingParty, config.service.name, user, passkeys, offer.challenge),
            ),
            name: (await browserName(reply.request.headers['user-agent'])) ?? '',
          },
        }),
      ...(problem !== undefined && { problem }),
    }
    return reply.page('account-passkeys', model, { status: problem === undefined ? 200 : 400 })
  }

  /** What the next passkey is to sign: kept here, and good once. */
  const offerChallenge = async (reply: FastifyReply, now: number) => {
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
    return { id, challenge }
  }

  const takeChallenge = (form: Parameters, request: FastifyRequest, now: number) => {
    const browserHash = hashSecret(app.browser.secret(request) ?? '')
    const id = (single(form, 'interaction') ?? '').slice(0, 64)
    return store.transact(interactionKind, id, (current) => {
      const isOurs = current?.browserHash === browserHash && 'page' in current.request
      if (!isOurs || current.request.page !== page || now >= current.expiresAt) return accept(undefined)
      return accept(current.challenge, remove(interactionKind, id))
    })
  }

  /** Undefined when it was added, otherwise what to say. */
  const add = async (
    here: Submission,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Text | undefined> => {
    const { user, form, now } = here
    const challenge = await takeChallenge(form, request, now)
    if (challenge === undefined || relyingParty === undefined) return msg('passkeys.outdated')
    const made = await verifyCreation(relyingParty, single(form, 'credential'), challenge)
    if (made === undefined) return msg('passkeys.refused')
    const name = nameOf(single(form, 'name'))
    const passkey: Passkey = { ...made, userId: user.id, name, createdAt: now, usedAt: now }
    const context = userContext(request, now)
    try {
      const addition = await store.transact(userCredentials, user.id, (current) =>
        addPasskey(current, passkey, here.session.id, context),
      )
      if (addition === 'full') return msg('passkeys.full')
      if (addition === 'gone') return msg('passkeys.refused')
      await stepUp(here, 'passkey', reply)
      return undefined
    } catch (error) {
      if (error instanceof RecordExists) return msg('passkeys.known')
      throw error
    }
  }

  /** Ends every other session too: one of them may have begun with it. */
  const removePasskey = async (
    { user, session, now, handleOf }: Submission,
    handle: string,
    request: FastifyRequest,
  ): Promise<boolean> => {
    const passkeys = await store.listOf(passkeyKind, user.id)
    const wanted = passkeys.find(({ id }) => handleOf(id) === handle)
    if (wanted === undefined) return false
    const { id: userId } = user
    const context = userContext(request, now)
    return store.transact(userCredentials, userId, (current) => {
      const own = current?.passkeys ?? []
      if (!own.some(({ id }) => id === wanted.id)) return accept(false)
      const facts = { userId, name: wanted.name, left: own.length - 1 }
      return accept(
        true,
        remove(passkeyKind, wanted.id),
        { op: 'deleteSessionsOf', userId, except: session.id },
        auditEvent('passkey-removed', context, facts),
      )
    })
  }
}

/** What the user calls it, on one line. */
function nameOf(typed: string | undefined): string {
  const name = (typed ?? '').replaceAll(/[\p{C}\s]+/gu, ' ').trim()
  return name === '' ? 'Passkey' : [...name].slice(0, longestName).join('')
}
