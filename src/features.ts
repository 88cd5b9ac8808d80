import { type Feature, joined } from './feature.ts'
import { openidConnect } from './oidc-core/feature.ts'
import { logout } from './oidc-logout/feature.ts'
import { revocation } from './rfc7009-revocation/feature.ts'
import { registration } from './rfc7591-registration/feature.ts'
import { introspection } from './rfc7662-introspection/feature.ts'
import { pushedRequests } from './rfc9126-pushed-requests/feature.ts'
import { issuerIdentification } from './rfc9207-issuer/feature.ts'
import { resourceMetadata } from './rfc9728-resource-metadata/feature.ts'

/**
 * Every specification beside the core (RFC 6749, RFC 7636, RFC 8414), in the order in which it is registered. The
 * application, the configuration and the command line learn from this list what there is; removing a line and its folder
 * removes the specification.
 */
export const features: readonly Feature[] = [
  issuerIdentification,
  logout,
  registration,
  revocation,
  introspection,
  pushedRequests,
  openidConnect,
  resourceMetadata,
]

/** The client metadata that they add. */
export const clientMembers = joined(features, ({ clientMetadata }) => clientMetadata)
