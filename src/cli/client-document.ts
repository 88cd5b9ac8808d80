import type { Command } from 'commander'
import { allowDocument, denyDocument, describeDocument, findDocument } from '../clients/documents.ts'
import type { Config } from '../config/schema.ts'
import { deniedDocumentKind } from '../domain/client-document.ts'
import { OAuthError } from '../domain/errors.ts'
import { isLoopbackUri } from '../domain/redirect-uri.ts'
import type { Feature } from '../feature/feature.ts'
import { knownTo } from '../feature/known-to.ts'
import { declared, features } from '../features.ts'
import { createGuardedFetch } from '../outbound/guarded-fetch.ts'
import type { Store } from '../storage/store.ts'
import { systemClock } from '../system/system.ts'
import { CommandFailed } from './failure.ts'
import { addOperatorFlags, addYesFlag, type DestructiveFlags, type OperatorFlags } from './flags.ts'
import { withStore } from './open.ts'
import { confirmOrAbort, operatorContext } from './operator.ts'
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
  const load = features.find((feature) => feature.loadPublishedClients)?.loadPublishedClients
  if (load === undefined) return
  const group = client
    .command('document')
    .description('show, fetch and deny clients that are known by the URL of their metadata document')
  const command = (usage: string, description: string) =>
    group.command(`${usage} <url>`).description(description)
  addOperatorFlags(command('show', 'show what is stored of a document'), documentHelp).action(show)
  addOperatorFlags(
    command('refresh', 'fetch a document now, check it, and store what it says'),
    documentHelp,
  ).action((url: string, flags: OperatorFlags) => refresh(url, flags, load))
  const denial = command('deny', 'accept a document no longer: the tokens of its client are invalid')
  addOperatorFlags(addYesFlag(denial), documentHelp).action(deny)
  addOperatorFlags(command('allow', 'accept a denied document again'), documentHelp).action(allow)
}

/** `lychgate client document show`: shows the stored client, and when its document was fetched. */
async function show(url: string, flags: OperatorFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    const description = await describe(store, config, url)
    printResult(flags, description, description)
  })
}

/**
 * `lychgate client document refresh`: fetches a document whatever the settings accept; the output says what is wrong
 * with it.
 */
async function refresh(
  url: string,
  flags: OperatorFlags,
  load: NonNullable<Feature['loadPublishedClients']>,
): Promise<void> {
  const publishedClients = await load()
  await withStore(flags, async (store, config) => {
    const isDevelopment = isLoopbackUri(config.issuer)
    const fetchUrl = createGuardedFetch({ limits: config.fetch, isDevelopment, clock: systemClock })
    const clients = publishedClients({
      config: { ...config, mode: isDevelopment ? 'dev' : 'serve' },
      store,
      clock: systemClock,
      fetchUrl,
      declared,
      keys: { algorithms: ['RS256', 'ES256', 'EdDSA'] },
    })
    await clients.refresh(url, operatorContext()).catch((error: unknown) => {
      throw error instanceof OAuthError ? new CommandFailed(error.message, { cause: error }) : error
    })
    const description = await describe(store, config, url)
    printResult(flags, description, description)
  })
}

/** `lychgate client document deny`: denies a document, also one that was never fetched, and locks its client. */
async function deny(url: string, flags: DestructiveFlags): Promise<void> {
  await confirmOrAbort(flags, `Deny ${url}? The tokens of its client are invalid.`, 'nothing was changed')
  await withStore(flags, async (store) => {
    const context = operatorContext()
    await store.transact('client', url, (client) => denyDocument(client, url, context))
    printResult(flags, { client_id: url, denied_at: context.at }, { denied: url })
  })
}

/** `lychgate client document allow`: takes a denial back. */
async function allow(url: string, flags: OperatorFlags): Promise<void> {
  await withStore(flags, async (store) => {
    if ((await store.find(deniedDocumentKind, url)) === undefined)
      throw new CommandFailed('this document is not denied')
    await store.transact('client', url, (client) => allowDocument(client, url, operatorContext()))
    printResult(flags, { client_id: url }, { allowed: url })
  })
}

async function describe(store: Store, config: Config, url: string) {
  const stored = await findDocument(store, url)
  if (stored === undefined)
    throw new CommandFailed('no document of this URL is stored; lychgate client document refresh fetches it')
  return describeDocument(url, stored, knownTo(config, declared))
}
