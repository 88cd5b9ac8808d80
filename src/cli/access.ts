import type { lacking } from '../admin/operations/access.ts'
import { declared } from '../features.ts'
import type { ServerFlags } from './files/open-target.ts'
import { type Json, readsUsers, withOperator } from './operate.ts'
import { instant, printList } from './print.ts'

/** Loaded late: `--help` needs none of it. */
const accessOperations = async () =>
  (await import('../admin/operations/access.ts')).accessOperations(declared)

/** `lychgate user factors`: lists what users can sign in with, and what a policy requires that they lack. */
export async function userFactors(
  flags: ServerFlags & { readonly lacks?: (typeof lacking)[number] },
): Promise<void> {
  const { lacks } = flags
  await withOperator(flags, readsUsers, async ({ list }) => {
    const { listFactors } = await accessOperations()
    const rows = await list(listFactors, {}, { ...(lacks && { lacks }) })
    printList(flags, rows, (row) => row, lineOf)
  })
}

function lineOf({ username, password, codes, passkeys, lacks, required_from: from }: Json) {
  const factors = [
    password === true && 'password',
    codes === true && 'one-time codes',
    passkeys !== 0 && `passkeys: ${passkeys}`,
  ].filter(Boolean)
  const day = from === undefined ? '' : ` from ${instant(Number(from))} on`
  return [
    `${username}`,
    factors.join(', ') || 'nothing yet',
    lacks === undefined ? '' : `lacks what the policy requires${day}: ${lacks}`,
  ]
}
