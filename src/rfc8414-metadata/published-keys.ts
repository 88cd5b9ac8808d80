import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { contextClasses } from '../domain/authentication-context.ts'
import { signingAlgorithms } from '../domain/key-term.ts'
import { documentResponses, serveDocument } from '../http/document.ts'

/**
 * OpenID Connect Core §10.1: the public keys ID Tokens verify with, and what a client may expect of them: subjects
 * are public, OpenID Connect Core §8.
 */
export const publishedKeys: FastifyPluginAsync<Pick<AppDeps, 'config' | 'keys'>> = async (
  app,
  { config, keys },
) => {
  app.advertise({
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: signingAlgorithms,
    claim_types_supported: ['normal'],
    acr_values_supported: contextClasses,
  })
  serveDocument(app, ['/api/oauth/jwks'], {
    endpoint: 'jwks',
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
