import type { Fault } from './fault.ts'

const authorize = 'src/specs/rfc6749-authorization/authorize.ts'

/** Faults of the metadata, RFC 8414, RFC 9728 and OpenID Connect Discovery. */
export const metadataFaults = [
  {
    id: 'metadata-promises-plain',
    rule: 'service-5-pkce-s256-only',
    file: authorize,
    find: "code_challenge_methods_supported: ['S256']",
    replace: "code_challenge_methods_supported: ['plain', 'S256']",
  },
  {
    id: 'metadata-promises-implicit',
    rule: 'rfc8414-2-response-types',
    file: authorize,
    find: "response_types_supported: ['code']",
    replace: "response_types_supported: ['code', 'token']",
  },
  {
    id: 'metadata-forgets-request-uri',
    rule: 'oidc-disc-3-request-uri-default-true',
    file: 'src/specs/rfc9101-request-objects/plugin.ts',
    find: 'request_uri_parameter_supported: true,',
    replace: 'request_uri_parameter_supported: false,',
  },
  {
    id: 'metadata-promises-private-key-jwt',
    rule: 'rfc8414-2-auth-methods-default',
    file: 'src/specs/rfc6749-authorization/token.ts',
    find: 'token_endpoint_auth_methods_supported: Object.keys(declared.clientAuthentication)',
    replace:
      "token_endpoint_auth_methods_supported: ['private_key_jwt', ...Object.keys(declared.clientAuthentication)]",
  },
  {
    id: 'metadata-forgets-revocation-methods',
    rule: 'rfc8414-2-revocation-endpoint',
    file: 'src/specs/rfc7009-revocation/plugin.ts',
    find: '    revocation_endpoint_auth_methods_supported: Object.keys(declared.clientAuthentication),\n',
    replace: '',
  },
  {
    id: 'metadata-promises-a-scope',
    rule: 'service-5-scope-table',
    file: 'src/specs/rfc8414-metadata/plugin.ts',
    find: 'scopes_supported: [...service.openScopes]',
    replace: "scopes_supported: [...service.openScopes, 'phone']",
  },
  {
    id: 'resource-asks-for-offline-access',
    rule: 'mcp-scope-no-offline-access',
    file: 'src/specs/rfc9728-resource-metadata/plugin.ts',
    find: 'name !== offlineAccess.name && !isReserved(name)',
    replace: '!isReserved(name)',
  },
  {
    id: 'offline-access-without-refresh-tokens',
    rule: 'oidc-core-11-offline-access-ignored',
    file: 'src/domain/authorization-request.ts',
    find: "return client.grantTypes.includes('refresh_token')\n    ? scope",
    replace: "return client.grantTypes.includes('authorization_code')\n    ? scope",
  },
  {
    id: 'offline-access-alone-is-an-approval',
    rule: 'oidc-core-11-offline-access-ignored',
    file: 'src/domain/interaction.ts',
    find: 'const left = chosen.some((name) => name !== offlineAccess.name) ? chosen : []',
    replace: 'const left = chosen',
  },
  {
    id: 'metadata-denies-iss',
    rule: 'rfc9207-2.3-flag',
    file: 'src/specs/rfc9207-issuer/plugin.ts',
    find: 'authorization_response_iss_parameter_supported: true',
    replace: 'authorization_response_iss_parameter_supported: false',
  },
  {
    id: 'issuer-of-the-metadata-has-a-slash',
    rule: 'rfc8414-3.3-issuer-identical',
    file: 'src/specs/rfc8414-metadata/plugin.ts',
    find: '    issuer,\n    ...published',
    replace: '    issuer: `${issuer}/`,\n    ...published',
  },
  {
    id: 'metadata-not-at-the-inserted-path',
    rule: 'rfc8414-3-path-insertion',
    file: 'src/specs/rfc8414-metadata/plugin.ts',
    find: 'new URL(wellKnownUrl(issuer, name)).pathname, ',
    replace: '',
  },
  {
    id: 'metadata-not-cached',
    rule: 'rfc9728-7.10-caching',
    file: 'src/http/document.ts',
    find: '`public, max-age=${document.maxAgeSeconds}`',
    replace: "document.maxAgeSeconds > 0 ? 'no-cache' : 'no-store'",
  },
  {
    id: 'resource-has-another-name',
    rule: 'rfc9728-3.3-resource-identical',
    file: 'src/specs/rfc9728-resource-metadata/plugin.ts',
    find: 'resource: identifier,',
    replace: 'resource: `${identifier}/`,',
  },
  {
    id: 'resource-promises-query-tokens',
    rule: 'rfc9728-2-bearer-methods',
    file: 'src/specs/rfc9728-resource-metadata/plugin.ts',
    find: "bearer_methods_supported: ['header']",
    replace: "bearer_methods_supported: ['header', 'query']",
  },
  {
    id: 'resource-names-a-metadata-url',
    rule: 'rfc9728-2-authorization-servers',
    file: 'src/specs/rfc9728-resource-metadata/plugin.ts',
    find: 'authorization_servers: [service.issuer]',
    replace: 'authorization_servers: [`${service.issuer}/.well-known/oauth-authorization-server`]',
  },
] as const satisfies readonly Fault[]
