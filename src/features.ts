import type { FastifyInstance } from 'fastify'
import { adminApi } from './admin/api/feature.ts'
import { adminPages } from './admin/pages/feature.ts'
import type { AppDeps } from './feature/deps.ts'
import { declarationsOf, type Feature } from './feature/feature.ts'
import { forwardAuth } from './forward-auth/feature.ts'
import { clientIdMetadata } from './specs/client-id-metadata/feature.ts'
import { securityProfile } from './specs/fapi2-security-profile/feature.ts'
import { signedResponses } from './specs/jarm/feature.ts'
import { backchannelLogout } from './specs/oidc-backchannel-logout/feature.ts'
import { upstreamSignIn } from './specs/oidc-client/feature.ts'
import { openidConnect } from './specs/oidc-core/feature.ts'
import { logout } from './specs/oidc-logout/feature.ts'
import { authorizationFramework } from './specs/rfc6749-authorization/feature.ts'
import { clientCredentials } from './specs/rfc6749-client-credentials/feature.ts'
import { revocation } from './specs/rfc7009-revocation/feature.ts'
import { clientAssertions } from './specs/rfc7523-client-assertions/feature.ts'
import { registration } from './specs/rfc7591-registration/feature.ts'
import { introspection } from './specs/rfc7662-introspection/feature.ts'
import { deviceGrant } from './specs/rfc8628-device-grant/feature.ts'
import { exchangeOfTokens } from './specs/rfc8693-token-exchange/feature.ts'
import { requestObjects } from './specs/rfc9101-request-objects/feature.ts'
import { pushedRequests } from './specs/rfc9126-pushed-requests/feature.ts'
import { issuerIdentification } from './specs/rfc9207-issuer/feature.ts'
import { dpop } from './specs/rfc9449-dpop/feature.ts'
import { resourceMetadata } from './specs/rfc9728-resource-metadata/feature.ts'
import { groups } from './users/groups/feature.ts'
import { signInPolicy } from './users/policy/feature.ts'

/**
 * Every specification, in the order of registration. The application, the configuration and the command line read this
 * list; removing a line and its folder removes the specification. RFC 6749 (with RFC 7636) and RFC 8414 are the core,
 * which stays.
 */
export const features: readonly Feature[] = [
  authorizationFramework,
  clientCredentials,
  issuerIdentification,
  signedResponses,
  logout,
  backchannelLogout,
  clientAssertions,
  registration,
  clientIdMetadata,
  revocation,
  introspection,
  requestObjects,
  deviceGrant,
  exchangeOfTokens,
  pushedRequests,
  dpop,
  securityProfile,
  openidConnect,
  upstreamSignIn,
  groups,
  forwardAuth,
  signInPolicy,
  adminApi,
  adminPages,
  resourceMetadata,
]

/** All declarations of the features together. */
export const declared = declarationsOf(features)

/** Registers the features with these callers, below the path of the issuer or at the origin. */
export async function registerFeatures(
  scope: FastifyInstance,
  deps: AppDeps,
  callers?: Feature['callers'],
): Promise<void> {
  const { prefix } = deps.service
  for (const feature of features.filter((one) => one.callers === callers)) {
    const plugin = await feature.load()
    if (callers === undefined || feature.atOrigin) await scope.register(plugin, deps)
    else await scope.register(async (below) => below.register(plugin, deps), { prefix })
  }
  if (callers !== 'browsers') return
  for (const feature of features) {
    const pages = await feature.loadPages?.()
    if (pages !== undefined) await scope.register(async (below) => below.register(pages, deps), { prefix })
  }
}
