import { type Static, Type } from '@sinclair/typebox'
import { readChoice } from '../../clients/members.ts'
import { algorithmNames } from '../../domain/key-set.ts'
import { type Feature, flag, section } from '../../feature/feature.ts'
import { readRequestUris } from './rules.ts'

const settings = {
  requestObjects: Type.Object(
    {
      required: Type.Union([Type.Literal('on'), Type.Literal('off')], {
        default: 'off',
        description: 'Whether every client must sign its authorization requests.',
      }),
    },
    section('Signed authorization requests, RFC 9101.'),
  ),
}

declare module '../../config/schema.ts' {
  interface FeatureSettings {
    requestObjects: Static<typeof settings.requestObjects>
  }
}

declare module '../../domain/errors.ts' {
  interface FeatureErrors {
    /** RFC 9101 §7: the request object cannot be used. */
    invalid_request_object: 400
    /** RFC 9101 §7: the reference cannot be used; RFC 9126 has it, too. */
    invalid_request_uri: 400
  }
}

/** RFC 9101: clients sign their authorization requests, and send them by value or by reference. */
export const requestObjects: Feature = {
  spec: 'RFC 9101',
  settings,
  clientMetadata: {
    request_object_signing_alg: {
      operatorOnly: true,
      withToken: true,
      schema: Type.String({
        description: `What it signs requests with: ${algorithmNames.join(', ')}; the algorithm of its key when left out.`,
      }),
      read: (members, name) =>
        readChoice(
          members[name] === '' ? {} : members,
          name,
          algorithmNames,
          'oidc-reg-2-request-object-signing-alg',
        ),
    },
    require_signed_request_object: {
      ...flag('Whether it must sign its authorization requests, RFC 9101 §10.5.'),
      operatorOnly: true,
      withToken: true,
    },
    request_uris: {
      operatorOnly: true,
      withToken: true,
      schema: Type.Array(Type.String(), {
        description: 'The https URIs that it may send as request_uri, OpenID Connect Registration §2.',
      }),
      read: readRequestUris,
    },
  },
  authorizationParameters: {
    request: Type.Optional(
      Type.String({ description: 'The parameters as a signed JWT; with client_id, RFC 9101 §5.1.' }),
    ),
  },
  load: async () => (await import('./plugin.ts')).requestObjects,
}
