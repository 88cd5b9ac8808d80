import { isoInstant } from '../../system/system.ts'
import { version } from '../../system/version.ts'
import type { Exchange, Flow, Message } from './flow.ts'

/**
 * Formats a flow as an HTTP Archive 1.2. Secrets stay marked; unknown numbers are -1, as the format requires. Checks
 * and rejections are custom members, whose names start with an underscore.
 * @param origin Scheme, host and port of the server.
 */
export function formatHar(flow: Flow, origin: string): object {
  const title = flow.client?.name ?? flow.client?.id ?? flow.id
  const timings = { onContentLoad: -1, onLoad: -1 }
  return {
    log: {
      version: '1.2',
      creator: { name: 'Lychgate', version: version() },
      pages: [{ startedDateTime: instant(flow.startedAt), id: flow.id, title, pageTimings: timings }],
      entries: flow.exchanges.map((exchange) => entryOf(exchange, flow, origin)),
    },
  }
}

function entryOf(exchange: Exchange, flow: Flow, origin: string): object {
  const { method, url, request, answer: response, status, location = '', tookMs } = exchange
  const query = url.split('?').slice(1).join('?')
  const post = request.body && { mimeType: request.body.type, params: [], text: request.body.text }
  return {
    pageref: flow.id,
    startedDateTime: instant(exchange.at),
    time: tookMs,
    request: {
      method,
      url: origin + url,
      httpVersion: 'HTTP/1.1',
      cookies: [],
      headers: pairs(request),
      queryString: [...new URLSearchParams(query)].map(([name, value]) => ({ name, value })),
      ...(post && { postData: post }),
      headersSize: -1,
      bodySize: -1,
    },
    response: {
      status,
      statusText: '',
      httpVersion: 'HTTP/1.1',
      cookies: [],
      headers: pairs(response),
      content: {
        size: response.body?.text.length ?? 0,
        mimeType: response.body?.type ?? '',
        ...(response.body && { text: response.body.text }),
      },
      redirectURL: location,
      headersSize: -1,
      bodySize: -1,
    },
    cache: {},
    timings: { send: 0, wait: tookMs, receive: 0 },
    _step: exchange.step,
    _requestId: exchange.id,
    _passed: exchange.passed,
    ...(exchange.refused && { _refused: exchange.refused }),
    ...(exchange.notes.length > 0 && { _notes: exchange.notes }),
  }
}

function pairs({ headers }: Message): readonly object[] {
  return headers.map(([name, value]) => ({ name, value }))
}

/** An instant with milliseconds, which some readers require. */
function instant(at: number): string {
  return isoInstant(at).replace('Z', '.000Z')
}
