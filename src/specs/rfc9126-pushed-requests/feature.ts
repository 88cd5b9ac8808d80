import { type Static, Type } from '@sinclair/typebox'
import { type Feature, flag, section } from '../../feature/feature.ts'

const settings = {
  pushedRequests: Type.Object(
    {
      seconds: Type.Integer({
        default: 60,
        minimum: 5,
        maximum: 90,
        description: 'Lifetime of a pushed authorization request until its sign-in page is opened.',
      }),
      required: Type.Union([Type.Literal('on'), Type.Literal('off')], {
        default: 'off',
        description: 'Whether every client must push its authorization requests.',
      }),
    },
    section('Pushed authorization requests, RFC 9126.'),
  ),
}

declare module '../../config/schema.ts' {
  interface FeatureSettings {
    pushedRequests: Static<typeof settings.pushedRequests>
  }
}

declare module '../../domain/errors.ts' {
  interface FeatureErrors {
    /** RFC 9101 §7: the reference cannot be used. */
    invalid_request_uri: 400
  }
}

/** RFC 9126: clients push their authorization requests, and send the browser with a reference to it. */
export const pushedRequests: Feature = {
  spec: 'RFC 9126',
  settings,
  clientMetadata: {
    require_pushed_authorization_requests: flag(
      'Whether it must push its authorization requests, RFC 9126 §6.',
    ),
  },
  authorizationParameters: {
    request_uri: Type.Optional(
      Type.String({
        description:
          'A reference to the request, with client_id: to a pushed one (RFC 9126 §4), or a registered URI (RFC 9101 §5.2).',
      }),
    ),
  },
  callers: 'clients',
  load: async () => (await import('./plugin.ts')).pushedRequests,
}
