// What `lychgate/guard` is: the sources in a checkout, the bundle in the npm package, where Node strips no types.
// `require` and not `await import`, so that applications in CommonJS can require it, too.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'

const isCheckout = existsSync(new URL('guard/guard.ts', import.meta.url))
export const { dpop, guard, introspectedBy, protectedResourceMetadata, signedBy } = createRequire(
  import.meta.url,
)(isCheckout ? './guard/guard.ts' : '../dist/guard.js')
