import type { FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { publishedKeys } from './keys.ts'
import { userInfo } from './userinfo.ts'

/** OpenID Connect Core §5.3 and OpenID Connect Core §10.1: UserInfo, and the keys that ID Tokens verify with. */
export const openidConnect: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  await app.register(publishedKeys, deps)
  await app.register(async (guarded) => {
    // There is no user without a token.
    await guarded.register(deps.guard, { anonymous: 'challenge', formToken: true })
    await guarded.register(userInfo, deps)
  })
}
