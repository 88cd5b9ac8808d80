import { Type } from '@sinclair/typebox'
import type { User } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { cursorOf, readKeyCursor } from '../../http/cursor.ts'
import type { Reach } from '../../users/delegation.ts'
import { describeSignIn } from '../../users/factors.ts'
import { canonicalLogin, isNamed } from '../../users/rules/user.ts'
import { searchUsers } from '../../users/search.ts'
import { isSeen, pageOfMembers, shownIn } from './member-pages.ts'
import { type Call, findUser, listed, listedRows, type Operation, pageOfAll } from './operation.ts'
import { describeFor, tagOfUser } from './rules.ts'
import { AttributeResource, listQuery, pageOf, SignIn, UserResource } from './schema.ts'

export const listUsers: Operation = {
  operationId: 'listUsers',
  area: 'users',
  kind: 'list',
  url: '/users',
  delegates: true,
  summary: 'List users, in the order in which they were added',
  response: pageOf(UserResource, 'Users'),
  querystring: listQuery({
    login: Type.Optional(Type.String({ description: 'Only the user with this user name or email address.' })),
    search: Type.Optional(
      Type.String({
        description:
          'Only users whose user name or email address begins with this text, sorted by the one that does.',
      }),
    ),
    state: Type.Optional(Type.Union([Type.Literal('locked'), Type.Literal('unlocked')])),
  }),
  async perform(call) {
    const { query } = call
    const { store } = call.deps
    const [login, state] = [query('login'), query('state') as 'locked' | 'unlocked' | undefined] // as the schema says
    const search = query('search')
    const isWanted = (user: User) =>
      (state === undefined || (user.lockedAt === undefined ? 'unlocked' : 'locked') === state) &&
      (search === undefined || isNamed(user, search))
    if (login !== undefined) {
      const canonical = canonicalLogin(login)
      const user = canonical === undefined ? undefined : await store.find('userByLogin', canonical)
      const isShown = user !== undefined && isWanted(user) && (await isSeen(call, user.id))
      return { body: { items: isShown ? [describeFor(call, user)] : [] } }
    }
    const reach = await call.reach()
    if (reach !== undefined) return pageOfReach(call, reach, isWanted)
    if (search !== undefined) {
      const [limit, after] = [Number(query('limit') ?? 50), readKeyCursor(query('after'))]
      const { users, next } = await searchUsers(store, search, { after, limit })
      const items = users.filter(isWanted).map((user) => describeFor(call, user))
      return { body: { items, ...(next !== undefined && { next: cursorOf(next) }) } }
    }
    return listedRows(
      call,
      (page) => store.page('user', { ...page, only: state }),
      (user) => describeFor(call, user),
    )
  },
}

/** Lists the members of the groups that the caller administers, each once: with the first of their groups. */
function pageOfReach(call: Call, reach: Reach, isWanted: (user: User) => boolean) {
  const { store } = call.deps
  const isShown = shownIn(store, reach)
  return pageOfMembers(call, store, reach.groups, async (membership) => {
    const user = await store.find('user', membership.userId)
    if (user === undefined || !isWanted(user)) return undefined
    return (await isShown(membership)) ? describeFor(call, user) : undefined
  })
}

export const readUser: Operation = {
  operationId: 'readUser',
  area: 'users',
  kind: 'read',
  url: '/users/:sub',
  delegates: true,
  summary: 'Read a user',
  response: UserResource,
  async perform(call) {
    const user = await findUser(call)
    return { body: describeFor(call, user), tag: tagOfUser(user) }
  },
}

export const readSignIn: Operation = {
  operationId: 'readSignIn',
  area: 'users',
  kind: 'read',
  url: '/users/:sub/sign-in',
  delegates: false,
  summary: 'Read the ways a user signs in other than by password, and their recent failures',
  response: SignIn,
  perform: async (call) => ({ body: await describeSignIn(call.deps.store, (await findUser(call)).id) }),
}

export const listAttributes: Operation = {
  operationId: 'listAttributes',
  area: 'users',
  kind: 'list',
  url: '/attributes',
  delegates: false,
  summary: 'List the attributes that the configuration declares, in the order of their names',
  response: pageOf(AttributeResource, 'DeclaredAttributes'),
  querystring: listQuery({}),
  perform: (call) =>
    listed(
      call,
      async (rows) => pageOfAll(call.deps.config.accounts.attributes, ({ name }) => name, rows),
      ({ name }) => name,
      ({ name, type, values, visible, editable }) => ({
        name,
        type,
        ...omitUndefined({ values }),
        visible,
        editable,
      }),
    ),
}
