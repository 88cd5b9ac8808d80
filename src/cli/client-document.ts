import type { Command } from 'commander'
import { declared, features } from '../features.ts'
import { unlessMissing } from './failure.ts'
import { addAnywhereFlags, type ServerFlags } from './files/open-target.ts'
import { addYesFlag, type DestructiveFlags } from './flags.ts'
import { withOperator } from './operate.ts'
import { confirmOrAbort } from './operator.ts'
import { printResult } from './print.ts'

const documentHelp = `
A client may use the https URL of its metadata document as client_id (the options under clientDocuments). The server
fetches the document when a user is asked for access and the one before is no longer fresh.

Examples:
  lychgate client document show https://agents.example.com/oauth/client.json
  lychgate client document refresh https://agents.example.com/oauth/client.json
  lychgate client document deny https://agents.example.com/oauth/client.json --yes
  lychgate client document allow https://agents.example.com/oauth/client.json
`

/** Adds `lychgate client document …`, unless the feature that fetches clients was removed. */
export function addClientDocumentCommands(client: Command): void {
  if (!features.some((feature) => feature.loadPublishedClients)) return
  const group = client
    .command('document')
    .description('show, fetch and deny clients that are known by the URL of their metadata document')
  const command = (usage: string, description: string) =>
    addAnywhereFlags(group.command(`${usage} <url>`).description(description), documentHelp)
  command('show', 'show what is stored of a document').action(show)
  command('refresh', 'fetch a document now, check it, and store what it says').action(refresh)
  addYesFlag(command('deny', 'accept a document no longer: the tokens of its client are invalid')).action(
    deny,
  )
  command('allow', 'accept a denied document again').action(allow)
}

const reads = ['admin:clients:read']
const writes = [...reads, 'admin:clients:write']

/** Loaded late: `--help` needs none of it. */
async function operations() {
  return (await import('../admin/operations/documents.ts')).documentOperations(declared)
}

/** `lychgate client document show`: shows the stored client, and when its document was fetched. */
async function show(url: string, flags: ServerFlags): Promise<void> {
  await withOperator(flags, reads, async ({ perform }) => {
    const description = await unlessMissing(
      perform((await operations()).read, { url }),
      'no document of this URL is stored; lychgate client document refresh fetches it',
    )
    printResult(flags, description, description)
  })
}

/**
 * `lychgate client document refresh`: fetches a document whatever the settings accept; the output says what is wrong
 * with it.
 */
async function refresh(url: string, flags: ServerFlags): Promise<void> {
  await withOperator(flags, writes, async ({ perform }) => {
    const description = await perform((await operations()).refresh, { url })
    printResult(flags, description, description)
  })
}

/** `lychgate client document deny`: denies a document, also one that was never fetched, and locks its client. */
async function deny(url: string, flags: ServerFlags & DestructiveFlags): Promise<void> {
  await confirmOrAbort(flags, `Deny ${url}? The tokens of its client are invalid.`, 'nothing was changed')
  await withOperator(flags, writes, async ({ perform }) => {
    const { denied_at } = await perform((await operations()).deny, { url })
    printResult(flags, { client_id: url, denied_at }, { denied: url })
  })
}

/** `lychgate client document allow`: takes a denial back. */
async function allow(url: string, flags: ServerFlags): Promise<void> {
  await withOperator(flags, writes, async ({ perform }) => {
    await unlessMissing(perform((await operations()).allow, { url }), 'this document is not denied')
    printResult(flags, { client_id: url }, { allowed: url })
  })
}
