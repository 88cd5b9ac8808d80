import type { Exchange, Flow } from './flow.ts'

/** Headers that curl sends by itself, or that are about the connection. */
const ofTheConnection = /^(?:host|connection|content-length|accept-encoding|transfer-encoding)$/i

/**
 * Formats the requests of a flow as curl lines, each below its step and what came. Secrets stay marked, as
 * `(code~3f9a1c)`: put in those of your run.
 * @param origin Scheme, host and port of the server.
 */
export function formatCurl(flow: Flow, origin: string): string {
  return flow.exchanges.map((exchange) => `${headOf(exchange)}\n${lineOf(exchange, origin)}\n`).join('\n')
}

function headOf({ step, status, broken, refused: rejected, times }: Exchange): string {
  const came = broken ? 'no response' : String(status)
  const why = rejected === undefined ? '' : `, ${rejected.error}: ${rejected.found} (${rejected.clause.name})`
  return `# ${step}: ${came}${why}${times === undefined ? '' : `, ${times} times`}`.replaceAll('\n', ' ')
}

function lineOf({ method, url, request: { headers, body } }: Exchange, origin: string): string {
  const hasBody = body !== undefined
  const sent = headers.filter(([name]) => !ofTheConnection.test(name))
  return [
    'curl',
    ...(method === (hasBody ? 'POST' : 'GET') ? [] : [`-X ${method}`]),
    quoted(URL.canParse(url) ? url : origin + url),
    ...sent.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(hasBody ? [`--data-raw ${quoted(body.text)}`] : []),
  ].join(' ')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
