import type { FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { formBodies } from '../../http/parameters.ts'
import { assertSameSite } from '../forgery.ts'
import { ownActivity } from './activity.ts'
import { connectedApps } from './apps.ts'
import { ownEmail } from './email.ts'
import { ownCodes } from './one-time-codes.ts'
import { ownOverview } from './overview.ts'
import { ownPasskeys } from './passkeys.ts'
import { ownPassword } from './password.ts'
import { ownPrivacy } from './privacy.ts'
import { ownProfile } from './profile.ts'
import { ownSessions } from './sessions.ts'

/** The page where a user looks after their account. Each room is a file; how one gets in is http/own-pages.ts. */
export const accountPages: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { config } = deps
  await app.register(formBodies, { config })
  app.addHook('preValidation', assertSameSite)
  ownOverview(app, deps)
  connectedApps(app, deps)
  ownSessions(app, deps)
  ownPassword(app, deps)
  ownPasskeys(app, deps)
  ownCodes(app, deps)
  ownProfile(app, deps)
  ownEmail(app, deps)
  ownActivity(app, deps)
  ownPrivacy(app, deps)
}
