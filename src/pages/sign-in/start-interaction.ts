import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import type { AppDeps } from '../../deps.ts'
import { insert } from '../../domain/decision.ts'
import { interactionKind, noProgress } from '../../domain/interaction.ts'
import type { Interaction } from '../../domain/model.ts'
import { hashSecret } from '../../domain/secret.ts'

declare module 'fastify' {
  interface FastifyReply {
    /** Stores what has to wait for the user in this browser, and sends them to the page where it goes on. */
    startInteraction(wanted: Interaction['request'], page: 'login' | 'consent'): Promise<FastifyReply>
  }
}

/** Decorates `reply.startInteraction`: the browser only ever has a handle of its request. */
export const interactionStarter = fp<Pick<AppDeps, 'config' | 'service' | 'store' | 'clock' | 'random'>>(
  async (app, { config, service, store, clock, random }) => {
    app.decorateReply('startInteraction', async function (this: FastifyReply, wanted, page) {
      const now = clock()
      const interaction = {
        id: random(16).toString('base64url'),
        browserHash: hashSecret(app.browser.ensureSecret(this.request, this)),
        request: wanted,
        ...noProgress,
        createdAt: now,
        expiresAt: now + config.lifetimes.interactionSeconds,
      }
      await store.write(insert(interactionKind, interaction))
      return this.redirect(`${service.prefix}/${page}?interaction=${interaction.id}`, 303)
    })
  },
  { name: 'waiting', dependencies: ['browser'] },
)
