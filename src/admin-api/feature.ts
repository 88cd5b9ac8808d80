import { type Static, Type } from '@sinclair/typebox'
import { type Feature, section } from '../feature.ts'
import { scopes } from './scopes.ts'

const settings = {
  admin: Type.Object(
    {
      api: Type.Optional(
        Type.Union([Type.Literal('on'), Type.Literal('off')], {
          description:
            'Whether the server has the admin API, /api/admin/v1; by default off, and on for a development server.',
          examples: ['on'],
        }),
      ),
      pages: Type.Union([Type.Literal('on'), Type.Literal('off')], {
        default: 'on',
        description: 'Whether the server has admin pages, /admin. Only administrators see them.',
      }),
      group: Type.String({
        default: 'admins',
        minLength: 1,
        description:
          'The name of the group whose members are administrators, the members of its subgroups too.',
      }),
      secondFactor: Type.Optional(
        Type.Union([Type.Literal('required'), Type.Literal('off')], {
          description:
            'Whether an administrator must have signed in with two factors to change something; by default required, and off for a development server.',
          examples: ['required'],
        }),
      ),
      secondFactorSeconds: Type.Integer({
        default: 600,
        minimum: 1,
        description: 'How long ago the administrator may have signed in to change something.',
      }),
      idempotencySeconds: Type.Integer({
        default: 86_400,
        minimum: 1,
        description: 'How long a request that is repeated with its Idempotency-Key gets the same response.',
      }),
    },
    section('Administration over HTTP.'),
  ),
}

declare module '../config/schema.ts' {
  interface FeatureSettings {
    admin: Static<typeof settings.admin>
  }
}

declare module '../domain/errors.ts' {
  interface FeatureErrors {
    not_found: 404
    conflict: 409
    // RFC 9110 §15.5.13
    precondition_failed: 412
    idempotency_key_reused: 422
    // RFC 6585 §3
    precondition_required: 428
  }
}

/** The admin API, a protected resource of this server: what an operator does with the command line, over HTTP. */
export const adminApi: Feature = {
  spec: 'Admin API',
  settings,
  scopes,
  callers: 'clients',
  load: async () => (await import('./plugin.ts')).adminApi,
}
