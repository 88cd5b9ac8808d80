import { ConfigError, readBytes } from '../../config/error.ts'

/** An image for the pages, in memory. */
export interface Image {
  readonly type: string
  readonly body: Buffer
  /** The end of its name. */
  readonly extension: string
}

/** It is loaded at every sign-in. */
const mostBytes = 262_144

const kinds: readonly (readonly [extension: string, type: string, isOne: (body: Buffer) => boolean])[] = [
  ['png', 'image/png', (body) => body.subarray(0, 8).toString('latin1') === '\x89PNG\r\n\x1a\n'],
  ['jpg', 'image/jpeg', (body) => body.subarray(0, 3).toString('latin1') === '\xff\xd8\xff'],
  ['webp', 'image/webp', (body) => /^RIFF.{4}WEBP$/s.test(body.subarray(0, 12).toString('latin1'))],
  ['svg', 'image/svg+xml', isSvg],
]

/**
 * The image a setting names, by what is in the file and not by what it is called.
 * @throws {ConfigError} when it cannot be read, is too large, or is no image that every browser shows.
 */
export function readImage(path: string, setting: string): Image {
  const body = readBytes(path, setting)
  if (body.length > mostBytes) {
    throw new ConfigError(
      `${setting}: ${path} has ${body.length} bytes; make it smaller, ${mostBytes} at most`,
    )
  }
  const kind = kinds.find(([, , isOne]) => isOne(body))
  if (kind === undefined) throw new ConfigError(`${setting}: ${path} is not an SVG, PNG, JPEG or WebP image`)
  const [extension, type] = kind
  return { type, body, extension }
}

/** After what may stand before it, the first element is `svg` in its namespace, without which browsers show nothing. */
function isSvg(body: Buffer): boolean {
  const text = body.toString('utf8').replace(/^\ufeff?(\s|<\?[^>]*\?>|<!--.*?-->|<!doctype[^>]*>)*/is, '')
  return /^<svg\s[^>]*xmlns\s*=\s*["']http:\/\/www\.w3\.org\/2000\/svg["']/.test(text)
}
