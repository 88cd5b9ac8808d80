/**
 * The theme of an installation: the operator's settings and views, read and checked once at start. Nothing is
 * fetched.
 */
import { ConfigError, readBytes } from '../../config/error.ts'
import type { Config } from '../../config/schema.ts'
import { accentIcon, accentSheet } from './accent.ts'
import { loadViews, type Views } from './views.ts'

/** What an operator can set. */
export type ThemeOptions = Pick<Config, 'views'> & {
  readonly service: Pick<Config['service'], 'accent' | 'logo' | 'logoDark'>
}

/** An image for the pages, in memory. */
export interface Image {
  readonly type: string
  readonly body: Buffer
  readonly extension: string
}

/** What the pages are made of. */
export interface Theme extends Views {
  readonly logo?: Image
  readonly logoDark?: Image
}

/**
 * Loads the theme. The accent is part of the stylesheet and of the shipped icon.
 * @throws {ConfigError} a line for every file that cannot be used.
 */
export function loadTheme({ service, views: folder }: ThemeOptions): Theme {
  const faults: string[] = []
  const collect = <T>(read: () => T): T | undefined => {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      faults.push(...error.faults)
      return undefined
    }
  }
  const image = (name: 'logo' | 'logoDark') => {
    const path = service[name]
    const read = path === undefined ? undefined : collect(() => readImage(path, `service.${name}`))
    return read && { [name]: read }
  }
  const images = { ...image('logo'), ...image('logoDark') }
  const views = collect(() => loadViews(folder))
  if (views === undefined || faults.length > 0) throw new ConfigError(faults)
  const { accent } = service
  if (accent === undefined) return { ...views, ...images }
  return {
    ...images,
    eta: views.eta,
    style: Buffer.concat([views.style, Buffer.from(accentSheet(accent))]),
    icon: Buffer.from(accentIcon(views.icon.toString('utf8'), accent)),
  }
}

/** Every sign-in loads the logo. */
const mostBytes = 262_144

type ImageKind = readonly [extension: string, type: string, matches: (body: Buffer) => boolean]

const bitmaps: readonly ImageKind[] = [
  ['png', 'image/png', (body) => body.subarray(0, 8).toString('latin1') === '\x89PNG\r\n\x1a\n'],
  ['jpg', 'image/jpeg', (body) => body.subarray(0, 3).toString('latin1') === '\xff\xd8\xff'],
  ['webp', 'image/webp', (body) => /^RIFF.{4}WEBP$/s.test(body.subarray(0, 12).toString('latin1'))],
]
const kinds: readonly ImageKind[] = [...bitmaps, ['svg', 'image/svg+xml', isSvg]]

/**
 * Returns the type of a PNG, JPEG or WebP image by its first bytes; undefined for anything else, SVG included: it can
 * have scripts.
 */
export function imageType(body: Buffer): string | undefined {
  return bitmaps.find(([, , matches]) => matches(body))?.[1]
}

/**
 * Reads the image that a setting names. Its type is that of its content, whatever its name says.
 * @throws {ConfigError} if it cannot be read, is too large, or is not an image that every browser shows.
 */
function readImage(path: string, setting: string): Image {
  const body = readBytes(path, setting)
  if (body.length > mostBytes) {
    throw new ConfigError(
      `${setting}: ${path} has ${body.length} bytes; make it smaller, ${mostBytes} at most`,
    )
  }
  const kind = kinds.find(([, , matches]) => matches(body))
  if (kind === undefined) throw new ConfigError(`${setting}: ${path} is not an SVG, PNG, JPEG or WebP image`)
  const [extension, type] = kind
  return { type, body, extension }
}

/**
 * Whether the first element, after what may precede it, is `svg` in its namespace, without which browsers show
 * nothing.
 */
function isSvg(body: Buffer): boolean {
  const text = body.toString('utf8').replace(/^\ufeff?(\s|<\?[^>]*\?>|<!--.*?-->|<!doctype[^>]*>)*/is, '')
  return /^<svg\s[^>]*xmlns\s*=\s*["']http:\/\/www\.w3\.org\/2000\/svg["']/.test(text)
}
