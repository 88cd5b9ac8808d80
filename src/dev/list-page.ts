import type { FastifyReply } from 'fastify'

/** Things of a development server, as a page shows them. */
export interface ListPage {
  readonly title: string
  readonly lead: string
  readonly items: readonly ListItem[]
  /** What stands there if there is none. */
  readonly empty: string
  /** How a program does something about them. */
  readonly example: string
}

interface ListItem {
  readonly name: string
  readonly text: string
  readonly note?: string
  readonly url?: string
}

/** Responds to a browser with a page, and to a program with JSON. */
export function listFor(reply: FastifyReply, json: object, page: () => ListPage): object {
  reply.header('vary', 'Accept')
  const isBrowser = reply.request.headers.accept?.includes('text/html') === true
  return isBrowser ? reply.devPage('list', page()) : json
}
