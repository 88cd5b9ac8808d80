import type { FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { assertSameSite } from '../http/forgery.ts'
import { formBodies } from '../http/parameters.ts'
import { connectedApps } from './apps.ts'

/** The page where a person looks after their account. Each room is a file; how one gets in is http/own-pages.ts. */
export const account: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { config, service } = deps
  await app.register(formBodies, { config })
  app.addHook('preValidation', assertSameSite)
  app.get('/account', { schema: { hide: true } }, async (_request, reply) =>
    reply.redirect(`${service.prefix}/account/apps`, 303),
  )
  connectedApps(app, deps)
}
