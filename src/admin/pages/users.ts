import type { FastifyInstance } from 'fastify'
import type { Seconds, User } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { cursorOf, readCursor, readKeyCursor } from '../../http/cursor.ts'
import { ago, displayName, type NamedUser } from '../../pages/describe.ts'
import { waysToSignIn } from '../../users/factors.ts'
import { isAwaited } from '../../users/rules/upstream-link.ts'
import { searchUsers } from '../../users/search.ts'
import { type AdminModel, type AdminPage, adminPath } from './admin-page.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/users': AdminModel & {
      readonly users: readonly ListedUser[]
      /** What was searched for. */
      readonly search: string
      readonly only: '' | 'locked'
      readonly nextUrl?: string
    }
  }
}

interface ListedUser extends NamedUser {
  readonly url: string
  readonly email?: string
  readonly addedAgoSeconds: Seconds
  readonly locked: boolean
  /** Invited, and not here yet. */
  readonly waiting: boolean
}

const onPage = 50

/** Lists users: all, oldest first, or those whose user name or email address begins with what was typed. */
export function usersPage(_app: FastifyInstance, { service, store }: PageDeps): AdminPage {
  const url = service.prefix + adminPath('users')
  const isWaiting = async ({ id, passwordHash }: User): Promise<boolean> => {
    const ways = passwordHash === undefined ? await store.find(waysToSignIn, id) : undefined
    return ways !== undefined && isAwaited(ways)
  }
  const describe = async (user: User, now: Seconds): Promise<ListedUser> => ({
    ...displayName(user),
    url: `${url}/${encodeURIComponent(user.id)}`,
    ...(user.email !== undefined && { email: user.email }),
    addedAgoSeconds: ago(user.createdAt, now),
    locked: user.lockedAt !== undefined,
    waiting: await isWaiting(user),
  })
  const describeAll = (users: readonly User[], now: Seconds) =>
    Promise.all(users.map((user) => describe(user, now)))
  return {
    path: '/users',
    section: 'users',
    show: async ({ query, now, render }) => {
      const search = (single(query, 'search') ?? '').trim().slice(0, 300)
      const only = single(query, 'only') === 'locked' ? 'locked' : ''
      if (search !== '') {
        const after = readKeyCursor(single(query, 'after'))
        const { users, next } = await searchUsers(store, search, { after, limit: onPage })
        const more = next && { nextUrl: `${url}?${new URLSearchParams({ search, after: cursorOf(next) })}` }
        return render('admin/users', {
          users: await describeAll(users, now),
          search,
          only,
          ...more,
        })
      }
      const rows = await store.page('user', {
        limit: onPage + 1,
        after: readCursor(single(query, 'after')),
        only: only === '' ? undefined : only,
      })
      const shown = rows.slice(0, onPage)
      const last = shown.at(-1)
      const next = new URLSearchParams({ ...(only && { only }), after: cursorOf(last?.seq ?? 0) })
      return render('admin/users', {
        users: await describeAll(
          shown.map(({ row }) => row),
          now,
        ),
        search,
        only,
        ...(rows.length > onPage && { nextUrl: `${url}?${next}` }),
      })
    },
  }
}
