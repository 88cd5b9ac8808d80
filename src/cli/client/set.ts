import { changeIntegration, type IntegrationChange } from '../../clients/integration.ts'
import { auditEvent } from '../../domain/audit.ts'
import { withWrites } from '../../domain/decision.ts'
import { parseScope } from '../../domain/scope.ts'
import { WrongUsage } from '../failure.ts'
import { withStore } from '../open.ts'
import { operatorContext } from '../operator.ts'
import { printJson, printMembers } from '../print.ts'
import { describeClient } from './description.ts'
import { descriptionOf, type MetadataFlags } from './flags.ts'
import { knownTo } from './known.ts'

/** `lychgate client set`: other metadata for a client that an operator added; what is not named stays. */
export async function clientSet(clientId: string, flags: MetadataFlags): Promise<void> {
  const change = changeOf(flags)
  const changed = Object.entries(change).filter(([, value]) => value !== undefined)
  if (changed.length === 0) throw new WrongUsage('nothing to change; name at least one flag, see --help')
  await withStore(flags, async (store, config) => {
    const facts = { clientId, changed: changed.map(([name]) => name).join(' ') }
    const event = auditEvent('client-changed', operatorContext(), facts)
    const client = await store.transact('client', clientId, (found) =>
      withWrites(changeIntegration(found, change, knownTo(config)), event),
    )
    const description = describeClient(client, config)
    if (flags.json) printJson(description)
    else printMembers(description)
  })
}

function changeOf(flags: MetadataFlags): IntegrationChange {
  const description = descriptionOf(flags)
  return {
    name: flags.name,
    redirectUris: flags.redirectUri,
    postLogoutRedirectUris: flags.postLogoutRedirectUri?.filter((uri) => uri !== ''),
    authenticationMethod: flags.auth,
    pkce: flags.pkce,
    consent: flags.consent,
    scope: flags.scope === undefined ? undefined : parseScope(flags.scope),
    idTokenSignedResponseAlg: flags.idTokenAlg,
    introspects: flags.resource,
    description: Object.keys(description).length === 0 ? undefined : description,
  }
}
