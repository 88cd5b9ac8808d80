import type { Feature } from '../../feature/feature.ts'

/** The admin pages: what an operator does with the command line, in a browser. */
export const adminPages: Feature = {
  spec: 'Admin pages',
  callers: 'browsers',
  load: async () => (await import('./plugin.ts')).adminPages,
}
