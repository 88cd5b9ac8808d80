import type { Reading, RecordReads } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { isAdministrator } from '../../users/administrators.ts'
import { mayAdministerGroup, mayAdministerUser, readGroupsOf, readLineOf } from '../../users/delegation.ts'
import { type Caller, notFound } from './rules.ts'

/** What an operation is about. */
export interface Subject {
  readonly userId?: string | undefined
  readonly groupId?: string | undefined
}

/**
 * Returns why a caller may not call an operation about this; undefined if they may. Users must be administrators of
 * the server, or of the groups of the subject: what an administrator of groups cannot see does not exist for them. A
 * client without a user must not change an administrator, nor who is one.
 */
export function* authorityFault(
  read: RecordReads,
  caller: Pick<Caller, 'kind' | 'sub'> & { readonly isDelegate: boolean },
  { userId, groupId }: Subject,
  administrators: string,
): Reading<OAuthError | undefined> {
  if (caller.kind === 'client') {
    const groups =
      groupId !== undefined
        ? yield* readLineOf(read, groupId)
        : userId !== undefined
          ? yield* readGroupsOf(read, userId)
          : []
    return isAdministrator(groups, administrators) ? overAdministrators() : undefined
  }
  const groups = yield* readGroupsOf(read, caller.sub)
  if (!caller.isDelegate) return isAdministrator(groups, administrators) ? undefined : noAdministrator()
  const own = new Set(groups.map(({ id }) => id))
  if (groupId !== undefined && !(yield* mayAdministerGroup(read, own, groupId, administrators)))
    return notFound('group')
  if (userId !== undefined && !(yield* mayAdministerUser(read, own, userId, administrators)))
    return notFound('user')
  return undefined
}

function overAdministrators(): OAuthError {
  return new OAuthError('access_denied', 'a client without a user must not change an administrator', {
    rule: 'lychgate-admin-over-administrators',
  })
}

function noAdministrator(): OAuthError {
  return new OAuthError('access_denied', 'the user of the access token is no longer an administrator', {
    rule: 'lychgate-admin-membership',
  })
}
