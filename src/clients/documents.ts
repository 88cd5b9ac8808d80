import { type AuditContext, auditEvent } from '../domain/audit.ts'
import { check } from '../domain/check.ts'
import {
  type ClientDocument,
  clientDocumentKind,
  type DeniedDocument,
  deniedDocumentKind,
} from '../domain/client-document.ts'
import { accept, type Decision, put, remove } from '../domain/decision.ts'
import type { Client } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import type { Store } from '../storage/store.ts'
import { describeClient } from './describe.ts'
import type { ClientVocabulary } from './members.ts'
import { lockClient, unlockClient } from './operator-client.ts'

/** What is stored about a client that is known by the URL of its metadata document. */
export interface StoredDocument {
  readonly client?: Client | undefined
  readonly document?: ClientDocument | undefined
  readonly denied?: DeniedDocument | undefined
}

/** Reads what is stored of a document; undefined: nothing is. */
export async function findDocument(
  store: Pick<Store, 'find'>,
  url: string,
): Promise<StoredDocument | undefined> {
  const [client, document, denied] = await Promise.all([
    store.find('client', url),
    store.find(clientDocumentKind, url),
    store.find(deniedDocumentKind, url),
  ])
  return client?.published === undefined && denied === undefined ? undefined : { client, document, denied }
}

/** Describes a document to an operator: its client, when it was fetched, and whether it is denied. */
export function describeDocument(
  url: string,
  { client, document, denied }: StoredDocument,
  vocabulary: ClientVocabulary,
) {
  return {
    ...(client === undefined ? undefined : describeClient(client, vocabulary)),
    client_id: url,
    ...omitUndefined({
      host: client?.published?.host,
      fetched_at: document?.fetchedAt,
      fresh_until: document?.freshUntil,
      sha256: document?.digest,
      denied_at: denied?.deniedAt,
    }),
  }
}

/** Denies a document, also one that was never fetched, and locks its client. */
export function denyDocument(
  client: Client | undefined,
  url: string,
  context: AuditContext,
): Decision<Pick<StoredDocument, 'client' | 'denied'>> {
  check(
    /^https?:\/\/[\x21-\x7e]{1,2040}$/.test(url),
    'cimd-3-client-id-url',
    'invalid_client',
    'only the https URL of a client metadata document can be denied; lock another client',
    { status: 400, received: url.slice(0, 100) },
  )
  const lock = client && lockClient(client, context)
  const denied = { id: url, deniedAt: context.at }
  return accept(
    { client: lock && 'result' in lock ? lock.result : undefined, denied },
    ...(lock?.writes ?? [auditEvent('client-locked', context, { clientId: url })]),
    put(deniedDocumentKind, denied),
  )
}

/** Accepts a denied document again, and unlocks its client. */
export function allowDocument(
  client: Client | undefined,
  url: string,
  context: AuditContext,
): Decision<Pick<StoredDocument, 'client'>> {
  const unlock = client && unlockClient(client, context)
  return accept(
    { client: unlock && 'result' in unlock ? unlock.result : undefined },
    ...(unlock?.writes ?? [auditEvent('client-unlocked', context, { clientId: url })]),
    remove(deniedDocumentKind, url),
  )
}
