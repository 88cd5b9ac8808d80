import type { Dice } from './dice.ts'
import { bytesOf, type Sent } from './request.ts'

/** The same request as bytes that are hardly HTTP; the response can only be expected not to be a success. */
export function malform(sent: Sent, dice: Dice): Sent {
  const bytes = bytesOf(sent)
  const text = bytes.toString('latin1')
  const at = dice.below(text.length)
  const head = text.indexOf('\r\n')
  const withHeader = (line: string) => `${text.slice(0, head)}\r\n${line}${text.slice(head)}`
  const damaged = dice.pick([
    () => text.slice(0, at),
    () => text.replace('HTTP/1.1', dice.pick(['HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'HTTP/9.9', 'HTTP', ''])),
    () => text.replace(/^[A-Z]+/, dice.pick(['FOO', 'get', '', 'CONNECT', 'PRI', '\0', 'PROPFIND', 'QUERY'])),
    () => text.replaceAll('\r\n', '\n'),
    () => text.replace('\r\n\r\n', '\r\n'),
    () => `${text.slice(0, at)}${String.fromCharCode(dice.below(256))}${text.slice(at + 1)}`,
    () =>
      `${text.slice(0, at)}${dice.pick(['\0', '\r', '\n', '\r\n', '\r\n\r\n', '\x7f', ' ', ':'])}${text.slice(at)}`,
    () => withHeader(dice.pick(headerLines)),
    () => withHeader(`X: ${'a'.repeat(20_000)}`),
    () => withHeader(Array.from({ length: 300 }, (_, index) => `X-${index}: ${'a'.repeat(60)}`).join('\r\n')),
    () => text.replace('Host: localhost\r\n', dice.pick(['', 'Host:\r\n', 'Host: a\r\nHost: b\r\n'])),
    () =>
      text.replace(
        / \S+ HTTP/,
        ` ${dice.pick(['*', '', 'localhost:80', '/\xff', '/\0', '?', '#', 'http://', `/${'a'.repeat(20_000)}`])} HTTP`,
      ),
    () => `${text}${text}`,
    () => text.slice(at),
    () => Array.from({ length: 200 }, () => String.fromCharCode(dice.below(256))).join(''),
  ])()
  return { ...sent, bytes: Buffer.from(damaged, 'latin1') }
}

const headerLines: readonly [string, ...string[]] = [
  'Content-Length: 0\r\nContent-Length: 5',
  'Content-Length: -1',
  'Content-Length: 0x10',
  'Content-Length: 99999999999999999999',
  'Content-Length: 1000',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: chunked\r\nContent-Length: 5',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: identity',
  'Transfer-Encoding:\x0bchunked',
  'Transfer-Encoding : chunked',
  'Expect: nonsense',
  'Expect: 100-continue\r\nContent-Length: 10',
  'No colon here',
  ': no name',
  ' folded: line',
  'X Y: space in the name',
  'X: a\0b',
  'X: a\rb',
  'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__',
  'Trailer: Content-Length',
  'Keep-Alive: timeout=1000000',
]
