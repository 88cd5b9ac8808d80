// What `lychgate/dev` is: the sources in a checkout, the bundle in the npm package, where Node strips no types.
// `require` and not `await import`, so that tests in CommonJS can require it, too.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'

const isCheckout = existsSync(new URL('dev/start.ts', import.meta.url))
export const { start } = createRequire(import.meta.url)(isCheckout ? './dev/start.ts' : '../dist/dev.js')
