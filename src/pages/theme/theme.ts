/**
 * How an installation looks: what its operator set in `service` and put into the folder `views`, read and checked once
 * at start. Nothing of it is ever fetched from anywhere.
 */
import { ConfigError } from '../../config/error.ts'
import type { Config } from '../../config/schema.ts'
import { accentIcon, accentSheet } from './accent.ts'
import { type Image, readImage } from './logo.ts'
import { loadViews, type Views } from './views.ts'

export type { Image } from './logo.ts'

/** What the operator set; all of it may be absent. */
export type ThemeOptions = Pick<Config, 'views'> & {
  readonly service: Pick<Config['service'], 'accent' | 'logo' | 'logoDark'>
}

/** What the pages are made of. */
export interface Theme extends Views {
  readonly logo?: Image
  readonly logoDark?: Image
}

/**
 * The look of this installation; the accent is part of its stylesheet, and of the shipped icon.
 * @throws {ConfigError} a line for every file that cannot be used.
 */
export function loadLook({ service, views: folder }: ThemeOptions): Theme {
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
    return path === undefined ? undefined : collect(() => readImage(path, `service.${name}`))
  }
  const [logo, logoDark] = [image('logo'), image('logoDark')]
  const views = collect(() => loadViews(folder))
  if (views === undefined || faults.length > 0) throw new ConfigError(faults)
  const { accent } = service
  return {
    ...views,
    ...(accent !== undefined && {
      style: Buffer.concat([views.style, Buffer.from(accentSheet(accent))]),
      icon: Buffer.from(accentIcon(views.icon.toString('utf8'), accent)),
    }),
    ...(logo && { logo }),
    ...(logoDark && { logoDark }),
  }
}
