import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { interactionKind } from '../../domain/interaction.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import { hashSecret } from '../../domain/secret.ts'
import { linkPath } from '../../users/one-time-links.ts'
import { msg } from '../i18n/catalogue.ts'
import { interactionIn } from './open-link.ts'

/** Where a form of a link leads, RFC 9110 §15.4.4: reloading it does nothing again. */
export function doneUrl(prefix: string, done: 'password' | 'email', interaction: string | undefined): string {
  const query = new URLSearchParams({ done, ...(interaction !== undefined && { interaction }) })
  return `${prefix}${linkPath}?${query}`
}

/** Says what was done, and leads back to what waits in this browser, or to the account page. */
export function showDone(app: FastifyInstance, { service, store, clock }: AppDeps) {
  const { prefix } = service

  const waitingUrl = async (query: Parameters, reply: FastifyReply): Promise<string | undefined> => {
    const [id, secret] = [interactionIn(query), app.browser.secret(reply.request)]
    if (id === undefined || secret === undefined) return undefined
    const interaction = await store.find(interactionKind, id)
    const isHere = interaction?.browserHash === hashSecret(secret) && clock() < interaction.expiresAt
    return isHere ? `${prefix}/login?interaction=${id}` : undefined
  }

  return async (query: Parameters, reply: FastifyReply): Promise<FastifyReply> => {
    const waiting = await waitingUrl(query, reply)
    const isEmail = single(query, 'done') === 'email'
    const link =
      waiting === undefined
        ? { url: `${prefix}/account`, label: msg(isEmail ? 'link.account' : 'login.submit') }
        : { url: waiting, label: msg('link.goOn') }
    return reply.page('link-done', {
      title: msg(isEmail ? 'link.verified' : 'link.saved'),
      about: msg(isEmail ? 'link.verified.about' : 'link.saved.about'),
      link,
    })
  }
}
