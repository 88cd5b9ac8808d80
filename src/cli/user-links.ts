import { auditEvent } from '../domain/audit.ts'
import { remove } from '../domain/decision.ts'
import type { OneTimeLink } from '../domain/model.ts'
import { systemClock } from '../system/system.ts'
import { describeLink, findLinkOf, linksOf } from '../users/one-time-links.ts'
import { linkKinds } from '../users/rules/one-time-link.ts'
import { CommandFailed } from './failure.ts'
import { findUser } from './find.ts'
import type { DestructiveFlags, OperatorFlags } from './flags.ts'
import { withStore } from './open.ts'
import { confirmOrAbort, operatorContext } from './operator.ts'
import { instant, printList, printResult } from './print.ts'

/** `lychgate user links`: lists the links of a user that can be used, without their secrets. */
export async function userLinks(login: string, flags: OperatorFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id: userId } = await findUser(store, login)
    const lineOf = ({ id, purpose, email = '', expiresAt }: OneTimeLink) => [
      id,
      purpose,
      email,
      `valid until ${instant(expiresAt)}`,
    ]
    printList(flags, await linksOf(store, userId, systemClock()), describeLink, lineOf)
  })
}

/** `lychgate user delete-link`: deletes a link, so that it cannot be used. */
export async function userDeleteLink(login: string, linkId: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const { id: userId, username } = await findUser(store, login)
    const link = await findLinkOf(store, userId, linkId)
    if (link === undefined) throw new CommandFailed(`${username} has no link with this id`)
    await confirmOrAbort(flags, `Delete the ${link.purpose} link of ${username}?`, 'nothing was deleted')
    const event = auditEvent('link-deleted', operatorContext(), { userId, purpose: link.purpose })
    await store.write(remove(linkKinds[link.purpose], linkId), event)
    printResult(flags, { link_id: linkId, deleted: true }, { deleted: linkId })
  })
}
