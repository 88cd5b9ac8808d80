import { parseJson } from '../../domain/strict-json.ts'
import type { Exchange, Message } from './flow.ts'
import { mark, redactForm, redactHeader, redactJson, redactText } from './redact.ts'

/** The rest of a longer body is not kept. */
const mostCharacters = 8192

/** Pairs the headers of Node's flat list, with secrets marked. */
export function requestHeaders(raw: readonly string[]): Message['headers'] {
  const pairs: [string, string][] = []
  for (let index = 0; index < raw.length; index += 2) {
    const [name = '', value = ''] = raw.slice(index, index + 2)
    pairs.push([name, redactHeader(name, value).slice(0, mostCharacters)])
  }
  return pairs
}

/** Lists the headers of a response, with secrets marked. */
export function responseHeaders(headers: Readonly<Record<string, unknown>>): Message['headers'] {
  return Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().map((each): [string, string] => [name, redactHeader(name, String(each))]),
  )
}

/**
 * Makes a body that can be shown: JSON and forms with secrets marked, the title of a page, the size of anything else.
 */
export function showBody(type: string, body: string): Message['body'] {
  if (body === '') return undefined
  const text = redacted(type, body)
  return { type, text: text.slice(0, mostCharacters), cut: text.length > mostCharacters }
}

function redacted(type: string, body: string): string {
  if (/^text\/html\b/.test(type))
    return `page: ${/<title>([^<]*)/.exec(body)?.[1]?.trim() ?? 'without a title'}`
  const json = parsed(body)
  // Clients often send JSON to a form endpoint or the reverse, so the content decides, not the type.
  if (json !== undefined) return JSON.stringify(redactJson(json), undefined, 2)
  if (/^[^\s=&]+=[^\s]*$/.test(body.trim())) return redactForm(body.trim())
  return /^(?:application\/json|application\/x-www-form-urlencoded)\b/.test(type)
    ? mark('unreadable', body)
    : `${redactText(body).length} characters that are not shown`
}

function parsed(body: string): object | undefined {
  if (!/^\s*[[{]/.test(body)) return undefined
  try {
    const value: unknown = parseJson(body)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** Formats a request, one parameter per line. */
export function requestText({ method, url, request }: Exchange): string {
  return textOf(`${method} ${apart(url)}`, request)
}

/** Formats a response. */
export function responseText({ broken, status, answer: response }: Exchange): string {
  // Without a status the server itself was the client.
  if (status === 0) return 'no response came'
  return broken ? 'no response reached the client' : textOf(String(status), response)
}

/** Headers that most responses have. They are hidden on pages, not in JSON and HAR. */
const everyResponse =
  /^(?:content-security-policy|cross-origin-|referrer-policy|x-content-type-options|x-frame-options|permissions-policy|pragma|access-control-|x-ratelimit-)/i

function textOf(first: string, { headers, body }: Message): string {
  const own = headers.filter(([name]) => !everyResponse.test(name))
  const others = headers.length - own.length
  const lines = own.map(([name, value]) => {
    const small = name.toLowerCase()
    return `${small}: ${small === 'location' ? apart(value) : value}`
  })
  const isForm = /form-urlencoded/.test(body?.type ?? '')
  const shown = body && (isForm ? body.text.replaceAll('&', '\n&') : body.text)
  if (others > 0) lines.push(`… and ${others} more that every response has`)
  return [first, ...lines, ...(shown ? ['', shown] : []), ...(body?.cut ? ['…'] : [])].join('\n')
}

function apart(url: string): string {
  return url.replaceAll(/[?&]/g, (sign) => `\n  ${sign}`)
}
