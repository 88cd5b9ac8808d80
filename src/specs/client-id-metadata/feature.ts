import { type Static, Type } from '@sinclair/typebox'
import { type Feature, section } from '../../feature/feature.ts'
import { knownDocuments } from './known.ts'

const settings = {
  clientDocuments: Type.Object(
    {
      mode: Type.Optional(
        Type.Union([Type.Literal('off'), Type.Literal('allow-list'), Type.Literal('any')], {
          description:
            'Which clients may use the https URL of their metadata document as client_id: none (off), those of `clientDocuments.allowed` (allow-list), or every one (any). Absent: allow-list; on a development server any, also on loopback.',
          examples: ['allow-list'],
        }),
      ),
      allowed: Type.Array(Type.String(), {
        default: knownDocuments.map(({ url }) => url),
        description:
          'The documents that are accepted with `allow-list`: whole URLs, or hosts for all of their documents. A document that is named by its URL is fetched at the expense of no other. The default names the documents of well-known agents.',
        examples: [['https://agents.example.com/oauth/client.json', 'agents.example.com']],
      }),
      floorSeconds: Type.Integer({
        default: 300,
        minimum: 0,
        maximum: 86_400,
        description: 'How long a fetched document is used at least before an authorization fetches it again.',
      }),
      ceilingSeconds: Type.Integer({
        default: 86_400,
        minimum: 60,
        maximum: 604_800,
        description: 'How long a fetched document is used at most, also while it cannot be fetched again.',
      }),
    },
    section('Client ID metadata documents: clients that are known by a URL.'),
  ),
}

declare module '../../config/schema.ts' {
  interface FeatureSettings {
    clientDocuments: Static<typeof settings.clientDocuments>
  }
}

/**
 * OAuth Client ID Metadata Document (draft-ietf-oauth-client-id-metadata-document-01, whose sections are cited): the
 * client_id is the URL at which the client publishes its metadata.
 */
export const clientIdMetadata: Feature = {
  spec: 'Client ID Metadata Document',
  settings,
  load: async () => (await import('./plugin.ts')).clientIdMetadata,
  loadPublishedClients: async () => (await import('./documents.ts')).publishedClients,
  fetches: ({ clientDocuments: { mode, allowed } }) =>
    mode === 'off' ? [] : allowed.map((entry) => (/^https?:/.test(entry) ? entry : `https://${entry}/`)),
}
