import { type Check, checksBy, clauses } from './check.ts'
import { authorizationChecks } from './checks/authorization.ts'
import { clientAuthenticationChecks } from './checks/client-authentication.ts'
import { codeChecks } from './checks/codes.ts'
import { metadataChecks } from './checks/metadata.ts'
import { openidChecks } from './checks/openid.ts'
import { pkceChecks } from './checks/pkce.ts'
import { pushedChecks } from './checks/pushed.ts'
import { redirectChecks } from './checks/redirects.ts'
import { refreshChecks } from './checks/refresh.ts'
import { tokenChecks } from './checks/token.ts'
import { runRow } from './table.ts'

/** The checks that clauses.json has as data. */
const tableChecks = checksBy(
  Object.fromEntries(
    Object.entries(clauses)
      .filter(([, row]) => row.send !== undefined || row.steps !== undefined)
      .map(([name, row]) => [name, (lab) => runRow(lab, row)]),
  ),
)

/** Every check, in the order in which they run: what changes the least comes first. */
export const checks: readonly Check[] = [
  ...metadataChecks,
  ...tableChecks,
  ...redirectChecks,
  ...authorizationChecks,
  ...pkceChecks,
  ...codeChecks,
  ...tokenChecks,
  ...clientAuthenticationChecks,
  ...refreshChecks,
  ...pushedChecks,
  ...openidChecks,
]
