import type { Feature } from '../../feature/feature.ts'

/** RFC 9207: every authorization response names its issuer. */
export const issuerIdentification: Feature = {
  spec: 'RFC 9207',
  load: async () => (await import('./plugin.ts')).issuerIdentification,
}
