import { type Static, Type } from '@sinclair/typebox'
import type { Config } from '../../config/schema.ts'
import { type Feature, section } from '../../feature/feature.ts'
import { grantType } from './rules/codes.ts'

const settings = {
  deviceGrant: Type.Object(
    {
      seconds: Type.Integer({
        default: 600,
        minimum: 60,
        maximum: 3600,
        description: 'Lifetime of the codes of a device, in which its user has to approve.',
      }),
      intervalSeconds: Type.Integer({
        default: 5,
        minimum: 1,
        maximum: 60,
        description: 'Least time between two polls of a device.',
      }),
      wrongCodesPerPrefix: Type.Integer({
        default: 30,
        minimum: 5,
        description:
          'Wrong codes typed from one address prefix in a window of `signInThrottle.windowSeconds`; a browser may type five.',
      }),
    },
    section('Devices without a browser, RFC 8628.'),
  ),
}

declare module '../../config/schema.ts' {
  interface FeatureSettings {
    deviceGrant: Static<typeof settings.deviceGrant>
  }
}

declare module '../../domain/errors.ts' {
  interface FeatureErrors {
    /** RFC 8628 §3.5: the user has not decided. */
    authorization_pending: 400
    /** RFC 8628 §3.5: the device polls too often. */
    slow_down: 400
    /** RFC 8628 §3.5: the codes have expired. */
    expired_token: 400
  }
}

/** Without RFC 7591 there is no such option. */
type WithRegistration = Config & { readonly registration?: { readonly deviceGrant?: 'on' | 'off' } }

/** RFC 8628: a device without a browser shows a code, and its user approves in a browser elsewhere. */
export const deviceGrant: Feature = {
  spec: 'RFC 8628',
  settings,
  grantTypes: {
    [grantType]: {
      withoutRedirect: true,
      title: 'poll of a device',
      closedBy: ({ mode, registration }: WithRegistration) =>
        (registration?.deviceGrant ?? (mode === 'dev' ? 'on' : 'off')) === 'on'
          ? undefined
          : 'registration.deviceGrant',
      parameters: {
        device_code: Type.Optional(Type.String({ description: `${grantType}: the code of the device.` })),
      },
    },
  },
  callers: 'clients',
  load: async () => (await import('./plugin.ts')).deviceGrant,
  loadDevelopment: async () => (await import('./development.ts')).deviceDevelopment,
  loadPages: async () => (await import('./pages.ts')).devicePages,
}
