import { unlessMissing } from './failure.ts'
import type { ServerFlags } from './files/open-target.ts'
import type { DestructiveFlags } from './flags.ts'
import { changesUsers, type Json, readsUsers, withOperator } from './operate.ts'
import { confirmOrAbort } from './operator.ts'
import { instant, printList, printResult } from './print.ts'

/** Loaded late: `--help` needs none of it. */
const operations = () => import('../admin/operations/personal-tokens.ts')

/** `lychgate user tokens`: lists the personal tokens of a user, without their secrets. */
export async function userTokens(login: string, flags: ServerFlags): Promise<void> {
  await withOperator(flags, readsUsers, async ({ findUser, list }) => {
    const { sub } = await findUser(login)
    const tokens = await list((await operations()).listPersonalTokens, { sub })
    const inOrder = tokens.toSorted((one, other) => Number(one['created_at']) - Number(other['created_at']))
    printList(flags, inOrder, (token) => token, lineOf)
  })
}

/** `lychgate user revoke-token`: revokes a personal token, so that no script can use it. */
export async function userRevokeToken(
  login: string,
  token_id: string,
  flags: ServerFlags & DestructiveFlags,
): Promise<void> {
  await withOperator(flags, changesUsers, async ({ findUser, perform }) => {
    const { sub, username } = await findUser(login)
    const { readPersonalToken, endPersonalToken } = await operations()
    const found = perform(readPersonalToken, { sub, token_id })
    const { name } = await unlessMissing(found, `${username} has no personal token with this id`)
    const question = `Revoke the personal token ${token_id} (${name}) of ${username}? Its script stops working.`
    await confirmOrAbort(flags, question, 'nothing was revoked')
    await perform(endPersonalToken, { sub, token_id })
    printResult(flags, { token_id, revoked: true }, { revoked: token_id })
  })
}

function lineOf({ token_id, name, scope, last_used_at: usedAt, expires_at: expiresAt }: Json): string[] {
  const used = usedAt === undefined ? 'never used' : `used ${instant(Number(usedAt))}`
  return [String(token_id), String(name), String(scope), used, `expires ${instant(Number(expiresAt))}`]
}
