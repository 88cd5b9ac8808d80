import { Type } from '@sinclair/typebox'
import type { Plugin } from '../../feature/deps.ts'
import { documentResponses, serveDocument } from '../../http/document.ts'

/** RFC 8414 §2, `jwks_uri`: the public keys that JWT access tokens (RFC 9068 §4) and ID Tokens verify with. */
export const publishedKeys: Plugin<'config' | 'keys'> = async (app, { config, keys }) => {
  serveDocument(app, ['/api/oauth/jwks'], {
    endpoint: 'jwks',
    endpointTitle: 'keys',
    content: () => keys.jwks(),
    maxAgeSeconds: config.lifetimes.metadataCacheSeconds,
    schema: {
      operationId: 'jwks',
      tags: ['discovery'],
      summary: 'Public signing keys, RFC 7517',
      response: documentResponses({ keys: Type.Array(Type.Object({ kid: Type.String() })) }),
    },
  })
}
