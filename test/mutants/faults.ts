import { accountFaults } from './account.ts'
import { adminFaults } from './admin.ts'
import { adminPageFaults } from './admin-pages.ts'
import { apiFaults } from './apis.ts'
import { attributeFaults } from './attributes.ts'
import { authorizationFaults } from './authorization.ts'
import { backchannelLogoutFaults } from './backchannel-logout.ts'
import { bearerFaults } from './bearer.ts'
import { boundTokenFaults } from './bound-tokens.ts'
import { clientAssertionFaults } from './client-assertions.ts'
import { clientAuthenticationFaults } from './client-authentication.ts'
import { clientCredentialsFaults } from './client-credentials.ts'
import { clientDocumentFaults } from './client-documents.ts'
import { configurationFaults } from './configuration.ts'
import { deviceGrantFaults } from './device-grant.ts'
import { distributionFaults } from './distribution.ts'
import type { Fault } from './fault.ts'
import { fileFaults } from './files.ts'
import { forwardAuthFaults } from './forward-auth.ts'
import { groupFaults } from './groups.ts'
import { headerFaults } from './headers.ts'
import { initialTokenFaults } from './initial-tokens.ts'
import { interactionFaults } from './interaction.ts'
import { introspectionFaults } from './introspection.ts'
import { issuerFaults } from './issuers.ts'
import { keyFaults } from './keys.ts'
import { limitFaults } from './limits.ts'
import { linkFaults } from './links.ts'
import { logoutFaults } from './logout.ts'
import { metadataFaults } from './metadata.ts'
import { mustFaults } from './musts.ts'
import { openidFaults } from './openid.ts'
import { parsingFaults } from './parsing.ts'
import { personalTokenFaults } from './personal-tokens.ts'
import { pkceFaults } from './pkce.ts'
import { proveFaults } from './prove.ts'
import { pushedRequestFaults } from './pushed-requests.ts'
import { refreshFaults } from './refresh.ts'
import { registrationFaults } from './registration.ts'
import { requestObjectFaults } from './request-objects.ts'
import { resourceFaults } from './resource.ts'
import { revocationFaults } from './revocation.ts'
import { securityProfileFaults } from './security-profile.ts'
import { signInFaults } from './sign-in.ts'
import { signInPolicyFaults } from './sign-in-policy.ts'
import { signedMessageFaults } from './signed-messages.ts'
import { stepUpFaults } from './step-up.ts'
import { storageFaults } from './storage.ts'
import { textFaults } from './texts.ts'
import { tokenFaults } from './token.ts'
import { tokenExchangeFaults } from './token-exchange.ts'
import { trustedIssuerFaults } from './trusted-issuers.ts'
import { upstreamFaults } from './upstreams.ts'
import { workerFaults } from './workers.ts'

/** Every deliberate fault, by area. `npm run mutants` shows that each is detected. */
export const faults: readonly Fault[] = [
  ...authorizationFaults,
  ...pkceFaults,
  ...tokenFaults,
  ...textFaults,
  ...clientAuthenticationFaults,
  ...clientAssertionFaults,
  ...trustedIssuerFaults,
  ...clientDocumentFaults,
  ...clientCredentialsFaults,
  ...tokenExchangeFaults,
  ...upstreamFaults,
  ...deviceGrantFaults,
  ...adminFaults,
  ...adminPageFaults,
  ...apiFaults,
  ...personalTokenFaults,
  ...proveFaults,
  ...pushedRequestFaults,
  ...requestObjectFaults,
  ...boundTokenFaults,
  ...securityProfileFaults,
  ...signedMessageFaults,
  ...refreshFaults,
  ...resourceFaults,
  ...bearerFaults,
  ...introspectionFaults,
  ...stepUpFaults,
  ...revocationFaults,
  ...registrationFaults,
  ...initialTokenFaults,
  ...metadataFaults,
  ...mustFaults,
  ...openidFaults,
  ...logoutFaults,
  ...backchannelLogoutFaults,
  ...interactionFaults,
  ...signInFaults,
  ...fileFaults,
  ...forwardAuthFaults,
  ...groupFaults,
  ...signInPolicyFaults,
  ...attributeFaults,
  ...headerFaults,
  ...parsingFaults,
  ...storageFaults,
  ...distributionFaults,
  ...keyFaults,
  ...configurationFaults,
  ...limitFaults,
  ...linkFaults,
  ...accountFaults,
  ...issuerFaults,
  ...workerFaults,
]
