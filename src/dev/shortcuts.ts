import { ConfigError } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import type { User } from '../domain/model.ts'
import type { Shortcuts } from '../pages/sign-in/login-forms.ts'
import type { Store } from '../storage/store.ts'
import { canonicalLogin } from '../users/rules/user.ts'

/** The most users the sign-in page lists. */
const mostListed = 12

/**
 * Signs in and consents automatically, as the options say, and only as users that the development server added.
 */
export function shortcutsOf({
  config: { dev },
  store,
}: {
  readonly config: Pick<Config, 'dev'>
  readonly store: Pick<Store, 'find' | 'list'>
}): Shortcuts {
  const usable = (user: User | undefined) => (user?.seeded && user.lockedAt === undefined ? user : undefined)
  const named = async (login: string) => {
    const canonical = canonicalLogin(login)
    return usable(canonical === undefined ? undefined : await store.find('userByLogin', canonical))
  }

  return {
    agrees: dev.autoConsent === 'on',
    users: async () =>
      (await store.list('user'))
        .filter(usable)
        .sort((one, other) => (one.username < other.username ? -1 : 1))
        .slice(0, mostListed),
    signsIn: async ({ requiredSub, loginHint }) => {
      if (dev.autoSignIn === undefined && dev.loginHintSignsIn === 'off') return undefined
      if (requiredSub !== undefined) return usable(await store.find('user', requiredSub))
      const hinted = loginHint === undefined ? undefined : await named(loginHint)
      return hinted ?? (dev.autoSignIn === undefined ? undefined : named(dev.autoSignIn))
    },
  }
}

/** @throws {ConfigError} if the options name a user that does not exist. */
export async function assertListed(
  { dev }: Pick<Config, 'dev'>,
  store: Pick<Store, 'find' | 'list'>,
): Promise<void> {
  if (dev.autoSignIn === undefined) return
  const user = await shortcutsOf({ config: { dev }, store }).signsIn({ prompt: [], page: '/' })
  if (user === undefined) {
    throw new ConfigError(
      'dev.autoSignIn: there is no such user; name one of the users of this development server',
    )
  }
}
