import type { FastifyReply } from 'fastify'
import { type DevPart, hidden, missing } from '../part.ts'
import { describeExchange, describeFlow, lineOf } from './describe-flow.ts'
import type { Flow } from './flow.ts'
import { formatHar } from './har.ts'

const beatSeconds = 15

/** The flow trace: pages, JSON, HAR and live events. */
export const flowRoutes: DevPart = async (app, deps) => {
  const { service } = deps
  const { book } = app.recorder
  const list = `${service.prefix}/_dev/flows`

  const flowAt = async (id: string): Promise<Flow> => {
    const kept = book.flows().find((flow) => flow.id === id)
    if (kept !== undefined) return describeFlow(kept, deps)
    throw missing('lychgate-dev-flow', 'there is no such flow; the oldest are deleted first')
  }
  const looseNow = () => book.loose().map((exchange) => describeExchange(exchange, exchange.startedMs))
  const flowsNow = () => app.recorder.flows()

  app.get('/_dev/flows', hidden, async (_request, reply) =>
    reply.devPage('flows', { flows: (await flowsNow()).map(lineOf), loose: looseNow() }),
  )
  app.get('/_dev/flows.json', hidden, async () => ({ flows: await flowsNow(), loose: looseNow() }))
  app.post('/_dev/flows/clear', hidden, async (_request, reply) => {
    book.clear()
    return reply.redirect(list, 303)
  })

  app.get<{ Params: { id: string } }>('/_dev/flows/:id', hidden, async ({ params }, reply) => {
    const [, id = '', format] = /^(\w+)(?:\.(json|har))?$/.exec(params.id) ?? []
    const flow = await flowAt(id)
    if (format === undefined) return reply.devPage('flow', { flow, title: lineOf(flow).title })
    const content = format === 'har' ? formatHar(flow, new URL(service.issuer).origin) : flow
    const name = `attachment; filename="lychgate-${id}.${format}"`
    return reply
      .header('content-disposition', name)
      .type('application/json; charset=utf-8')
      .send(JSON.stringify(content, undefined, 2))
  })

  app.get<{ Params: { id: string } }>('/_dev/flows/requests/:id', hidden, async ({ params }, reply) => {
    const { id } = params
    const flow = book.flowOf(id)
    if (flow !== undefined) return reply.redirect(`${list}/${flow.id}#r-${id}`, 303)
    if (book.loose().some((exchange) => exchange.id === id)) return reply.redirect(`${list}#r-${id}`, 303)
    throw missing('lychgate-dev-flow', 'there is no such request; the oldest are deleted first')
  })

  const watchers = new Set<FastifyReply['raw']>()
  const sendAll = (text: string) => {
    for (const watcher of watchers) watcher.write(text)
  }
  app.get('/_dev/flows/events', hidden, (_request, reply) => {
    reply.hijack()
    const { raw } = reply
    raw.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
    raw.write(': this is live\n\n')
    watchers.add(raw)
    raw.once('close', () => void watchers.delete(raw))
  })
  const forget = app.recorder.onChange(() => sendAll('data: changed\n\n'))
  // Proxies cut idle connections.
  const beat = setInterval(() => sendAll(': still here\n\n'), beatSeconds * 1000).unref()
  app.addHook('preClose', async () => {
    forget()
    clearInterval(beat)
    for (const watcher of watchers) watcher.end()
  })
}
