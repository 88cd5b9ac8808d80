import type { Browser } from './world.ts'

export type Pair = readonly [name: string, value: string]

/** A request before it is damaged and serialised. */
export interface Draft {
  readonly method: string
  readonly path: string
  readonly query: readonly Pair[]
  readonly headers: readonly Pair[]
  readonly form?: readonly Pair[]
  readonly json?: unknown
  /** The browser whose cookies are sent. */
  readonly browser?: Browser
}

/** A request as it is sent. */
export interface Sent {
  readonly method: string
  readonly target: string
  readonly headers: readonly Pair[]
  readonly body: Buffer
  readonly browser?: Browser
  /** Sent instead of all this: bytes that may be no HTTP. */
  readonly bytes?: Buffer
}

/** Serialises the draft, form-encoded or as JSON, with the headers it needs. */
export function writeDraft(draft: Draft): Sent {
  const query = formEncode(draft.query)
  const cookie = [...(draft.browser?.cookies ?? [])].map((pair) => pair.join('=')).join('; ')
  const [type, text] =
    draft.form !== undefined
      ? ['application/x-www-form-urlencoded', formEncode(draft.form)]
      : draft.json !== undefined
        ? ['application/json', JSON.stringify(draft.json)]
        : [undefined, '']
  return {
    method: draft.method,
    target: query === '' ? draft.path : `${draft.path}?${query}`,
    headers: [
      ...(cookie === '' ? [] : [['Cookie', cookie] as const]),
      ...(type === undefined ? [] : [['Content-Type', type] as const]),
      ...draft.headers,
    ],
    body: Buffer.from(text),
    ...(draft.browser && { browser: draft.browser }),
  }
}

/** The bytes on the wire; nothing is corrected. */
export function bytesOf({ method, target, headers, body, bytes }: Sent): Buffer {
  if (bytes) return bytes
  const has = (name: string) => headers.some(([each]) => each.toLowerCase() === name)
  const lines = [
    `${method} ${target} HTTP/1.1`,
    ...(has('host') ? [] : ['Host: localhost']),
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...(body.length === 0 || has('content-length') || has('transfer-encoding')
      ? []
      : [`Content-Length: ${body.length}`]),
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body])
}

/** The request as one line of shell. */
export function curlLine(sent: Sent, origin: string): string {
  const { hostname, port } = new URL(origin)
  if (sent.bytes) return `printf ${quote(sent.bytes)} | nc ${hostname} ${port}`
  const headers = sent.headers.map(
    ([name, value]) => `-H ${quote(Buffer.from(`${name}: ${value}`, 'latin1'))}`,
  )
  const body = sent.body.length === 0 ? [] : [`--data-binary ${quote(sent.body)}`]
  const url = quote(Buffer.from(origin + sent.target, 'latin1'))
  return ['curl -i -g --path-as-is', `-X ${sent.method}`, ...headers, ...body, url].join(' ')
}

/** HTTP Basic for a client, RFC 6749 §2.3.1. */
export function basic(id: string, secret: string): Pair {
  const encoded = [id, secret].map((text) => encodeURIComponent(text.toWellFormed())).join(':')
  return ['Authorization', `Basic ${Buffer.from(encoded).toString('base64')}`]
}

/** A bearer token in the header, RFC 6750 §2.1. */
export function bearer(token: string): Pair {
  return ['Authorization', `Bearer ${token}`]
}

function quote(bytes: Buffer): string {
  const text = bytes.toString('latin1')
  const escaped = text.replaceAll(
    /[^\x20-\x26\x28-\x5b\x5d-\x7e]/g,
    (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
  return escaped === text ? `'${text}'` : `$'${escaped}'`
}

function formEncode(pairs: readonly Pair[]): string {
  return pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&')
}

function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replaceAll('%20', '+')
}
