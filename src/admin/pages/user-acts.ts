import type { FastifyInstance } from 'fastify'
import type { User } from '../../domain/model.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { type Key, msg } from '../../pages/i18n/i18n.ts'
import { type UserAct, userActs } from '../operations/user-acts.ts'
import { type Act, actPage, requireFound } from './act-page.ts'
import { type AdminPage, adminPath } from './admin-page.ts'
import { performAt } from './call.ts'

/** The keys of the texts of each act. */
type Name = keyof typeof userActs

/** What an administrator does to a user, a page each. */
export function userActPages(_app: FastifyInstance, deps: PageDeps): readonly AdminPage[] {
  const { service, store } = deps
  const find = async (id: string) => {
    const subject = requireFound(await store.find('user', id), 'user')
    const url = `${service.prefix}${adminPath('users')}/${encodeURIComponent(id)}`
    return { subject, name: subject.username, url }
  }
  const pageOf = (name: Name, operation: UserAct): AdminPage => {
    const title = `admin.user.${name}` satisfies Key
    const act: Act<User> = {
      path: `/users/:id/${operation.verb}`,
      section: 'users',
      title: msg(title),
      about: msg(`${title}.about`),
      isTyped: operation.isFinal,
      find,
      perform: async ({ id }, visit) => {
        await performAt(deps, visit, operation, { sub: id })
        const back = operation.kind === 'delete' ? '/users' : `/users/${encodeURIComponent(id)}`
        return visit.done(operation.done, back)
      },
    }
    return actPage(act)
  }
  // `as`: the names of its members.
  return (Object.keys(userActs) as Name[]).map((name) => pageOf(name, userActs[name]))
}
