import fp from 'fastify-plugin'

declare module 'fastify' {
  interface FastifyInstance {
    /** The methods that this path supports, for 405 and its `Allow`, RFC 9110 §15.5.6. */
    methodsOf(path: string): readonly string[]
  }
}

/** Records the methods of each path, as the router only reports that one was not found. */
export const methods = fp(
  async (app) => {
    const fixed = new Map<string, Set<string>>()
    const patterns = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>()
    app.addHook('onRoute', ({ url, method }) => {
      if (url.includes('*')) return
      const served = [method].flat()
      if (!url.includes(':')) {
        fixed.set(url, new Set([...(fixed.get(url) ?? []), ...served]))
        return
      }
      const known = patterns.get(url)
      const pattern = known?.pattern ?? new RegExp(`^${url.replaceAll(/:[^/]+/g, '[^/]+')}$`)
      patterns.set(url, { pattern, methods: new Set([...(known?.methods ?? []), ...served]) })
    })
    app.decorate('methodsOf', (path: string) => {
      const match =
        fixed.get(path) ?? [...patterns.values()].find(({ pattern }) => pattern.test(path))?.methods
      return [...(match ?? [])].sort()
    })
  },
  { name: 'methods' },
)
