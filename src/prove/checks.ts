import type { Check } from './check.ts'
import { codeChecks } from './checks/codes.ts'
import { crossOriginChecks } from './checks/cross-origin.ts'
import { metadataChecks } from './checks/metadata.ts'
import { pkceChecks } from './checks/pkce.ts'
import { redirectChecks } from './checks/redirects.ts'
import { refreshChecks } from './checks/refresh.ts'
import { tokenChecks } from './checks/token.ts'

/** Every check, in the order in which they run: what changes the least comes first. */
export const checks: readonly Check[] = [
  ...metadataChecks,
  ...crossOriginChecks,
  ...redirectChecks,
  ...pkceChecks,
  ...codeChecks,
  ...tokenChecks,
  ...refreshChecks,
]
