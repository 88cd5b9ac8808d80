import { Type } from '@sinclair/typebox'
import { readChoice } from '../../clients/members.ts'
import { algorithmNames } from '../../domain/key-set.ts'
import { type Feature, flag } from '../../feature/feature.ts'
import { assertCanSign } from './rules/registration.ts'
import { readTrusted, trustFacts, trustRecords } from './rules/trust.ts'

/** RFC 7523: clients that an operator added authenticate with a JWT that they sign, `private_key_jwt`. */
export const clientAssertions: Feature = {
  spec: 'RFC 7523',
  clientMetadata: {
    token_endpoint_auth_signing_alg: {
      operatorOnly: true,
      withToken: true,
      schema: Type.String({
        description: `What it signs with: ${algorithmNames.join(', ')}; the algorithm of its key when left out.`,
      }),
      read: (members, name) =>
        readChoice(
          members[name] === '' ? {} : members,
          name,
          algorithmNames,
          'rfc7591-3.2.2-invalid-client-metadata',
        ),
    },
    trusted_issuers: {
      operatorOnly: true,
      schema: Type.Array(
        Type.Object({
          issuer: Type.String(),
          subject: Type.String(),
          audience: Type.Optional(Type.String()),
          reusable: Type.Optional(Type.Boolean()),
        }),
        {
          description:
            'Whose tokens it may use in place of a key, as JSON; see lychgate client trust, RFC 7521 §3.',
        },
      ),
      read: readTrusted,
      factsOf: trustFacts,
      recordsOf: trustRecords,
    },
    legacy_audience: {
      ...flag('Whether aud may be an endpoint or a list instead of the issuer alone, RFC 7523 §3.'),
      operatorOnly: true,
      byToken: true,
    },
  },
  clientAuthentication: {
    private_key_jwt: {
      operatorOnly: true,
      withToken: true,
      signingAlgorithms: algorithmNames,
      assertRegistered: assertCanSign,
      parameters: {
        client_assertion: Type.Optional(
          Type.String({ description: 'Clients registered with private_key_jwt: a JWT, RFC 7523 §2.2.' }),
        ),
        client_assertion_type: Type.Optional(
          Type.String({ description: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer' }),
        ),
      },
    },
  },
  load: async () => (await import('./plugin.ts')).clientAssertions,
}
