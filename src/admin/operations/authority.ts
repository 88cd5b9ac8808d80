import type { Reading, RecordReads } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { isAdministrator } from '../../users/administrators.ts'
import { mayAdministerGroup, mayAdministerUser, readGroupsOf, readLineOf } from '../../users/delegation.ts'
import { personalTokenKind, personalTokenRule } from '../../users/rules/personal-token.ts'
import { type Caller, describeCaller, notFound } from './rules.ts'

/** What an operation is about. */
export interface Subject {
  readonly userId?: string | undefined
  readonly groupId?: string | undefined
}

/**
 * Returns why a caller may not call an operation about this; undefined if they may. Users must be administrators of
 * the server, or of the groups of the subject: what an administrator of groups cannot see does not exist for them. A
 * client without a user must not change an administrator, nor who is one, and neither must a personal token: that of an
 * administrator who was demoted would have made another one before.
 */
export function* authorityFault(
  read: RecordReads,
  caller: Pick<Caller, 'kind' | 'sub' | 'personalTokenId'> & { readonly isDelegate: boolean },
  { userId, groupId }: Subject,
  administrators: string,
): Reading<OAuthError | undefined> {
  if (caller.kind !== 'user') {
    const groups =
      groupId !== undefined
        ? yield* readLineOf(read, groupId)
        : userId !== undefined
          ? yield* readGroupsOf(read, userId)
          : []
    if (isAdministrator(groups, administrators)) return overAdministrators(caller)
    if (caller.kind === 'client') return undefined
    const token = yield* read.find(personalTokenKind, caller.personalTokenId ?? '')
    const owner = yield* read.find('user', caller.sub)
    if (token === undefined || owner === undefined || owner.lockedAt !== undefined) return endedToken()
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

function overAdministrators(caller: Pick<Caller, 'kind'>): OAuthError {
  return new OAuthError('access_denied', `${describeCaller(caller)} must not change an administrator`, {
    rule: 'lychgate-admin-over-administrators',
  })
}

function endedToken(): OAuthError {
  const rule = personalTokenRule
  return new OAuthError('access_denied', 'the personal token was revoked, or its owner was locked', { rule })
}

function noAdministrator(): OAuthError {
  return new OAuthError('access_denied', 'the user of the access token is no longer an administrator', {
    rule: 'lychgate-admin-membership',
  })
}
