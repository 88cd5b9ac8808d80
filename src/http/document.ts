import { hash } from 'node:crypto'
import { type TSchema, Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifySchema } from 'fastify'
import { allowCaching } from './response.ts'

/** A public document that is written once and served many times. */
export interface Document {
  /** Returns the content; the same object means that it has not changed. */
  readonly content: () => object
  readonly maxAgeSeconds: number
  /** The name of the endpoint, see endpoints.ts. */
  readonly endpoint?: string
  readonly endpointTitle?: string
  readonly schema?: FastifySchema
}

/** A prebuilt response, valid until the content of the document changes. */
export interface WrittenDocument {
  readonly body: string
  readonly etag: string
}

/** The responses of a document, for the API description. */
export function documentResponses(members: Readonly<Record<string, TSchema>>) {
  return {
    200: Type.Object({ ...members }, { description: 'The document.', additionalProperties: true }),
    304: { description: 'The client has the current document.', type: 'null' },
  }
}

/**
 * Serves a JSON document at these paths from memory, as RFC 8414 §3.2, RFC 9728 §3.2 and
 * OpenID Connect Discovery §4.2 have it, with `ETag`, `max-age` and 304, RFC 9110 §8.8.3 and §13.1.2.
 */
export function serveDocument(app: FastifyInstance, paths: readonly string[], document: Document): void {
  let written: (WrittenDocument & { readonly content: object }) | undefined
  const cacheControl = `public, max-age=${document.maxAgeSeconds}`
  const write = () => {
    const content = document.content()
    if (written?.content === content) return written
    // As text: Node sends it in one piece with the headers, bytes in a second.
    const body = JSON.stringify(content)
    written = { content, body, etag: `"${hash('sha256', body, 'base64url').slice(0, 22)}"` }
    return written
  }
  for (const [index, url] of paths.entries()) {
    const { endpoint, endpointTitle } = document
    app.sharedDocuments?.add(app.prefix + url, cacheControl, write)
    const schema = index === 0 ? document.schema : { ...document.schema, hide: true }
    app.get(
      url,
      {
        ...(schema && { schema }),
        config: { ...(endpoint && { endpoint }), ...(endpointTitle && { endpointTitle }) },
      },
      (request, reply) => {
        const { body, etag } = write()
        allowCaching(reply, cacheControl).header('etag', etag)
        if (hasTag(request.headers['if-none-match'], etag)) reply.code(304).send()
        else reply.header('content-type', 'application/json; charset=utf-8').send(body)
      },
    )
  }
}

/** Returns the content of a document that follows from a source: it is built again when that is another object. */
export function contentFrom(source: () => object, build: () => object): Document['content'] {
  let written: { readonly from: object; readonly content: object } | undefined
  return () => {
    const from = source()
    if (written?.from !== from) written = { from, content: build() }
    return written.content
  }
}

/** Whether `If-None-Match` has this tag, RFC 9110 §13.1.2. */
export function hasTag(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  return header.split(',').some((candidate) => ['*', etag].includes(candidate.trim().replace(/^W\//, '')))
}
