import { fileURLToPath } from 'node:url'
import type { BuildOptions } from 'esbuild'
import { originOfSources } from '../../src/version.ts'

/** The top of the project. */
export const root = fileURLToPath(new URL('../..', import.meta.url))

/** Where everything that is built ends up. */
export const dist = `${root}dist`

/** How the sources become JavaScript, in the executable and in the npm package alike. */
export const bundleOptions = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node24',
  define: { builtFrom: JSON.stringify(originOfSources()) },
  // An optional driver of pg that nobody here loads.
  external: ['pg-native'],
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
} satisfies BuildOptions
