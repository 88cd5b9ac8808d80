/** Client metadata documents that this server publishes itself, for authors of clients without a domain. */
import { Type } from '@sinclair/typebox'
import { clientDocumentKind } from '../domain/client-document.ts'
import { put, remove } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import { recordKind } from '../domain/record.ts'
import { requireBody } from './json-body.ts'
import { type DevPart, missing } from './part.ts'

interface HostedDocument {
  readonly id: string
  /** The document, as it was sent. */
  readonly members: Readonly<Record<string, unknown>>
}

const hostedDocumentKind = recordKind<HostedDocument>('dev-client-document', { id: ({ id }) => id })
const rule = 'lychgate-dev-document'
const AnyObject = Type.Record(Type.String(), Type.Unknown())

/**
 * PUT publishes a document, whatever it contains; its URL is the client_id. `client_id` is added if it is missing. GET
 * returns it, as the site of a client would, and DELETE removes it. The next authorization request fetches it again.
 */
export const documentRoutes: DevPart = async (app, { service, store }) => {
  const path = '/documents/:name'
  const urlOf = (name: string) => `${service.issuer}/_dev/documents/${name}`

  app.put<{ Params: { name: string } }>(path, async (request) => {
    const { name } = request.params
    if (!/^[\w.-]{1,80}$/.test(name) || /^\.+$/.test(name))
      throw new OAuthError('invalid_request', 'the name has other characters than A-Z, a-z, 0-9, . _ and -', {
        rule,
      })
    const url = urlOf(name)
    const members = { client_id: url, ...requireBody(AnyObject, request.body) }
    await store.write(put(hostedDocumentKind, { id: name, members }), remove(clientDocumentKind, url))
    app.publishedClients?.forget(url)
    return members
  })

  app.get<{ Params: { name: string } }>(path, async (request, reply) => {
    const found = await store.find(hostedDocumentKind, request.params.name)
    if (found === undefined) throw missing(rule, 'no such document; PUT it here first')
    return reply.header('cache-control', 'max-age=300').send(found.members)
  })

  app.delete<{ Params: { name: string } }>(path, async (request, reply) => {
    const { name } = request.params
    await store.write(remove(hostedDocumentKind, name), remove(clientDocumentKind, urlOf(name)))
    app.publishedClients?.forget(urlOf(name))
    return reply.code(204).send()
  })
}
