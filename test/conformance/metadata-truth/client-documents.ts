import { clientDocumentKind } from '../../../src/domain/client-document.ts'
import { insert } from '../../../src/domain/decision.ts'
import type { Exercise, Promises } from './promise.ts'
import { askAt } from './subject.ts'

/** A URL of a listed host is a client; its document was fetched a minute ago. A URL of another host is none. */
const urlIsClient: Exercise<boolean> = async (t, subject) => {
  const { client, server } = subject
  const { store, clock } = server.deps
  const stored = await store.find('client', client.id)
  if (stored === undefined) throw new Error('the client is not stored')
  const id = 'https://claude.ai/oauth/client.json'
  const at = clock()
  const document = { id, fetchedAt: at - 60, freshUntil: at + 600, digest: '' }
  const published = { host: 'claude.ai', terms: '' }
  await store.write(
    insert('client', { ...stored, id, authenticationMethod: 'none', published }),
    insert(clientDocumentKind, document),
  )
  const response = await askAt(subject, { ...client, id })
  t.equal(response.status, 303)
  t.match(response.headers.get('location'), /\/(?:login|consent)\?interaction=/)
  t.equal((await askAt(subject, { ...client, id: 'https://other.example/client.json' })).status, 400)
}

export const clientDocumentPromises: Promises = {
  client_id_metadata_document_supported: { flag: { true: urlIsClient } },
}
