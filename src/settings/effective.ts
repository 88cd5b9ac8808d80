import type { Config } from '../config/schema.ts'
import type { Origins, Setting } from '../config/setting.ts'
import { shownUrl } from '../domain/server-url.ts'
import { valueAt } from './file.ts'
import { storeUrl } from './load.ts'
import { confidentialPaths, configOptions } from './options.ts'

/** Returns every setting in the order of the schema; a list is one setting. */
export function settingsOf(config: Config, origins: Origins): readonly Setting[] {
  const effective = { ...config, store: storeUrl(config) }
  return configOptions().flatMap(({ path }): Setting[] => {
    if (path.includes('[]')) return []
    const value = valueAt(effective, path)
    const origin = origins.get(path)
    const printed = confidentialPaths.includes(path) ? masked(value) : value
    return [
      {
        option: path,
        value: printed,
        source: origin?.kind ?? 'default',
        ...(origin && { name: origin.name }),
      },
    ]
  })
}

/** Masks the password in the address of a database or mail server, and any other text completely. */
function masked(value: unknown): unknown {
  if (typeof value !== 'string') return value
  return /^(?:sqlite|postgres(?:ql)?|smtps?):/.test(value) ? shownUrl(value) : '***'
}
