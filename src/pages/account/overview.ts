import type { FastifyInstance } from 'fastify'
import type { Group } from '../../domain/group.ts'
import type { Seconds, User } from '../../domain/model.ts'
import type { AppDeps, PageDeps } from '../../feature/deps.ts'
import { isAdministrator } from '../../users/administrators.ts'
import { groupsOf, inOrder } from '../../users/groups.ts'
import { passkeyKind } from '../../users/rules/passkey.ts'
import { secondFactorKind } from '../../users/rules/second-factor.ts'
import { isSessionLive } from '../../users/rules/session.ts'
import { ago } from '../describe.ts'
import { type AccountModel, type AccountPage, type AccountSection, sectionPath } from './account-page.ts'

declare module '../pages.ts' {
  interface Pages {
    'account-overview': AccountModel & {
      readonly apps: number
      readonly sessions: number
      readonly signedInAgoSeconds: Seconds
      readonly email?: string
      readonly emailVerified: boolean
      readonly waysIn: WaysIn
      /** The groups of the user, by name. */
      readonly groups: readonly Pick<Group, 'name' | 'description'>[]
      /** The admin pages, for administrators. */
      readonly adminUrl?: string
      readonly urls: Readonly<Record<'apps' | 'sessions' | 'security' | 'profile', string>>
    }
    'account-security': AccountModel & {
      readonly waysIn: WaysIn
      readonly urls: Readonly<Record<'password' | 'passkeys' | 'codes', string>>
      /** The page of accounts elsewhere; absent if there are none to sign in with. */
      readonly upstreamsUrl?: string
    }
  }
}

/** What a user can sign in with. */
interface WaysIn {
  readonly password: boolean
  readonly passkeys: number
  /** Whether one-time codes are set up. */
  readonly codes: boolean
  readonly recoveryCodes: number
}

/** The first page of an account: a summary of each section. */
export function overviewPage(app: FastifyInstance, { config, service, store }: PageDeps): AccountPage {
  const url = (section: AccountSection) => service.prefix + sectionPath(section)
  return {
    path: '/account',
    section: 'overview',
    show: async ({ user, session, now, render }) => {
      const [sessions, groupsOfUser, { count }, waysIn] = await Promise.all([
        store.listOf('session', user.id),
        groupsOf(store, user.id),
        store.connections(user.id, { now, limit: 1, offset: 0 }),
        waysInto(store, user),
      ])
      const groups = inOrder(groupsOfUser)
      const { url: adminUrl } = app.adminPages
      return render('account-overview', {
        apps: count,
        sessions: sessions.filter((each) => isSessionLive(each, now)).length,
        signedInAgoSeconds: ago(session.authenticatedAt, now),
        ...(user.email !== undefined && { email: user.email }),
        emailVerified: user.claims['email_verified'] === true,
        waysIn,
        groups,
        ...(adminUrl !== undefined && isAdministrator(groups, config.admin.group) && { adminUrl }),
        urls: {
          apps: url('apps'),
          sessions: url('sessions'),
          security: url('security'),
          profile: url('profile'),
        },
      })
    },
  }
}

/** The ways to sign in, each with a page of its own. */
export function securityPage(app: FastifyInstance, { service, store }: PageDeps): AccountPage {
  const urls = {
    password: `${service.prefix}/account/password`,
    passkeys: `${service.prefix}/account/passkeys`,
    codes: `${service.prefix}/account/one-time-codes`,
  }
  return {
    path: '/account/security',
    section: 'security',
    show: async ({ user, render }) => {
      const upstreamsUrl = (await app.seams.signInWays.collect({}))?.accountUrl
      const waysIn = await waysInto(store, user)
      return render('account-security', { waysIn, urls, ...(upstreamsUrl !== undefined && { upstreamsUrl }) })
    },
  }
}

async function waysInto(store: AppDeps['store'], { id, passwordHash }: User): Promise<WaysIn> {
  const [codes, passkeys] = await Promise.all([
    store.find(secondFactorKind, id),
    store.listOf(passkeyKind, id),
  ])
  const isConfirmed = codes?.confirmedAt !== undefined
  return {
    password: passwordHash !== undefined,
    passkeys: passkeys.length,
    codes: isConfirmed,
    recoveryCodes: isConfirmed ? codes.recoveryHashes.length : 0,
  }
}
