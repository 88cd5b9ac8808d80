import type { Static } from '@sinclair/typebox'
import type { Feature } from '../../feature/feature.ts'
import { metadataUrl, settings } from './schema.ts'

declare module '../../config/schema.ts' {
  interface FeatureSettings {
    upstreams: Static<typeof settings.upstreams>
  }
}

declare module '../../domain/errors.ts' {
  interface FeatureErrors {
    /** An upstream, or a response in its name, breaks a rule. */
    upstream_rejected: 400
  }
}

/** OpenID Connect Core as a Relying Party: users sign in with an OpenID Provider that the operator names. */
export const upstreamSignIn: Feature = {
  spec: 'OpenID Connect Core (Relying Party)',
  settings,
  callers: 'browsers',
  fetches: ({ upstreams }) =>
    upstreams.filter(({ enabled }) => enabled).map(({ issuer }) => metadataUrl(issuer)),
  load: async () => (await import('./plugin.ts')).upstreamSignIn,
}
