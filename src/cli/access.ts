import type { lacking } from '../admin/operations/access.ts'
import type { Seconds } from '../domain/model.ts'
import { declared } from '../features.ts'
import { ofClient } from './client-operations.ts'
import type { ServerFlags } from './files/open-target.ts'
import { type Json, readsUsers, withOperator } from './operate.ts'
import { instant, printColumns, printJson, printList, visible } from './print.ts'

const explainsAccess = ['admin:users:read', 'admin:audit:read']

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

/** `lychgate explain access`: shows which rules let a user use a client, or do not. */
export async function explainAccess(
  login: string,
  clientId: string,
  flags: ServerFlags & { readonly at?: Seconds },
): Promise<void> {
  const { at } = flags
  await withOperator(flags, explainsAccess, async ({ findUser, perform }) => {
    const { readAccess } = await accessOperations()
    const { sub, username } = await findUser(login)
    const query = at === undefined ? undefined : { at: `${at}` }
    const access = await ofClient(perform(readAccess, { sub, client_id: clientId }, undefined, query))
    if (flags.json) return printJson(access)
    const when = at === undefined ? '' : ` at ${instant(at)}`
    process.stdout.write(`${visible(`${username} at ${clientId}${when}: ${access['result']}`)}\n\n`)
    const rules = access['rules'] as readonly Json[] // as it is described
    printColumns(rules.map(({ about, result, why }) => [`${about}`, `${result}`, visible(`${why}`)]))
  })
}
