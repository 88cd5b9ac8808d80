import { Type } from '@sinclair/typebox'
import { wellKnownUrl } from '../../domain/well-known.ts'
import type { Plugin } from '../../feature/deps.ts'
import { contentFrom, documentResponses, serveDocument } from '../../http/document.ts'
import { languagesOf } from '../../pages/i18n/i18n.ts'

/**
 * RFC 8414 §2 and OpenID Connect Discovery §3. One document for both, since they must agree (RFC 9068 §4 too); each
 * member belongs to the plugin that advertised it, no list is empty, RFC 8414 §3.2, and the issuer is exactly the
 * configured one, RFC 8414 §3.3 and OpenID Connect Discovery §4.3. Registered last, at the root: an issuer's path
 * comes after the well-known string, RFC 8414 §3.1, and for OpenID Connect also before it, OpenID Connect Discovery
 * §4. The appended RFC 8414 form is what "relative to the base URL" means.
 */
export const metadataDocuments: Plugin<'config' | 'service'> = async (app, { config, service }) => {
  const { issuer, prefix } = service
  const { metadata, publishedMetadata } = app.seams
  const { documentation, policy, terms } = config.service
  const build = () => ({
    issuer,
    ...publishedMetadata.apply(metadata.all()),
    scopes_supported: [...service.openScopes],
    ui_locales_supported: languagesOf(config.texts),
    ...(documentation && { service_documentation: documentation }),
    ...(policy && { op_policy_uri: policy }),
    ...(terms && { op_tos_uri: terms }),
  })
  const document = {
    content: contentFrom(() => service.catalogue, build),
    maxAgeSeconds: config.lifetimes.metadataCacheSeconds,
  }
  const pathsOf = (name: string) => [
    ...new Set([new URL(wellKnownUrl(issuer, name)).pathname, `${prefix}/.well-known/${name}`]),
  ]
  serveDocument(app, pathsOf('oauth-authorization-server'), {
    ...document,
    schema: {
      operationId: 'authorizationServerMetadata',
      tags: ['discovery'],
      summary: 'Authorization server metadata, RFC 8414',
      response,
    },
  })
  serveDocument(app, pathsOf('openid-configuration'), {
    ...document,
    schema: {
      operationId: 'openidConfiguration',
      tags: ['discovery'],
      summary: 'OpenID Connect discovery document',
      response,
    },
  })
}

// Required of both documents, RFC 8414 §2 and OpenID Connect Discovery §3.
const response = documentResponses({
  issuer: Type.String(),
  authorization_endpoint: Type.String(),
  token_endpoint: Type.String(),
  jwks_uri: Type.String(),
  response_types_supported: Type.Array(Type.String()),
})
