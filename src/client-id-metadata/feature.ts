import { type Static, Type } from '@sinclair/typebox'
import { type Feature, section } from '../feature.ts'

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
        default: ['claude.ai', 'vscode.dev', 'chatgpt.com'],
        description:
          'Hosts, or whole URLs, whose documents are accepted with `allow-list`. The default names well-known agents.',
        examples: [['claude.ai', 'https://agents.example.com/oauth/client.json']],
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
        description:
          'How long a fetched document is used at most, and how long a client authenticates by its keys while the document cannot be fetched.',
      }),
    },
    section('Client ID metadata documents: clients that are known by a URL.'),
  ),
}

declare module '../config/schema.ts' {
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
