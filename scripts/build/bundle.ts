import { fileURLToPath } from 'node:url'
import type { BuildOptions } from 'esbuild'
import { originOfSources } from '../../src/system/version.ts'

/** The root of the project. */
export const root = fileURLToPath(new URL('../..', import.meta.url))

/** The folder for all build results. */
export const dist = `${root}dist`

/** How the sources become JavaScript, in the executable and in the npm package alike. */
export const bundleOptions = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node24',
  define: { builtFrom: JSON.stringify(originOfSources()) },
  // An optional driver of pg that is not used here.
  external: ['pg-native'],
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
} satisfies BuildOptions

/**
 * Escapes what is not ASCII in code: esbuild leaves regular expressions unchanged, and one character beyond Latin-1
 * doubles the memory of the whole text.
 */
export function inAscii(code: string): string {
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
