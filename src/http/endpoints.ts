import fp from 'fastify-plugin'
import type { Config } from '../config/schema.ts'
import type { Needs } from '../feature/deps.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The name of a protocol endpoint: its metadata member without `_endpoint`, RFC 8414 §2 (`jwks` stands for
     * `jwks_uri`). The route then advertises itself; rate limits, flow traces and faults know it by this name.
     */
    endpoint?: string
    /** What the development server calls the endpoint. Absent: its name in words. */
    endpointTitle?: string
    /** Requests count against this member of the setting `requestsPerMinute`. */
    limit?: keyof Config['requestsPerMinute']
  }
  interface FastifyInstance {
    /** Paths of the registered endpoints below the issuer, by name. */
    readonly endpoints: ReadonlyMap<string, string>
    /** The name of the endpoint at a path, whatever the method. */
    endpointAt(path: string): string | undefined
    /** What the development server calls the endpoint. */
    endpointTitle(name: string): string
  }
}

/**
 * Collects the endpoints of all plugins from the `config` of their routes.
 * @throws {Error} at start if two paths have the same name.
 */
export const endpoints = fp<Needs<'service'>>(
  async (app, { service: { issuer, prefix } }) => {
    const paths = new Map<string, string>()
    const names = new Map<string, string>()
    const titles = new Map<string, string>()
    app.decorate('endpoints', paths)
    app.decorate('endpointAt', (path: string) => names.get(path))
    app.decorate('endpointTitle', (name: string) => titles.get(name) ?? name.replaceAll('_', ' '))
    app.addHook('onRoute', ({ url, config }) => {
      const name = config?.endpoint
      if (name === undefined) return
      const path = url.slice(prefix.length)
      const pathOfName = paths.get(name)
      if (pathOfName === path) return
      if (pathOfName !== undefined)
        throw new Error(`the endpoint ${name} is registered at ${pathOfName} and at ${path}`)
      paths.set(name, path)
      names.set(url, name)
      if (config?.endpointTitle !== undefined) titles.set(name, config.endpointTitle)
      app.seams.metadata.add({ [name === 'jwks' ? 'jwks_uri' : `${name}_endpoint`]: `${issuer}${path}` })
    })
  },
  { name: 'endpoints' },
)
