import { type Static, Type } from '@sinclair/typebox'
import { type Feature, section } from '../../feature/feature.ts'

const settings = {
  registration: Type.Object(
    {
      loopbackHosts: Type.Array(Type.Union([Type.Literal('localhost')]), {
        default: ['localhost'],
        description:
          'Host names accepted in redirect URIs in addition to 127.0.0.1 and [::1]; [] accepts these two only.',
      }),
      foreignRedirects: Type.Union([Type.Literal('refuse'), Type.Literal('drop')], {
        default: 'refuse',
        description:
          'How to treat a redirect URI that is not loopback: reject the registration (refuse), or ignore that entry (drop).',
      }),
      deviceGrant: Type.Optional(
        Type.Union([Type.Literal('on'), Type.Literal('off')], {
          description:
            'Whether clients that registered themselves, or come from a metadata document, may use device codes (RFC 8628); they get no refresh token from one, and no link with the code. By default off, and on for a development server.',
          examples: ['on'],
        }),
      ),
    },
    section('What clients that register themselves may request.'),
  ),
}

declare module '../../config/schema.ts' {
  interface FeatureSettings {
    registration: Static<typeof settings.registration>
  }
}

/** RFC 7591 and RFC 7592: clients on loopback register, read, change and delete themselves. */
export const registration: Feature = {
  spec: 'RFC 7591',
  settings,
  callers: 'clients',
  load: async () => (await import('./plugin.ts')).registration,
}
