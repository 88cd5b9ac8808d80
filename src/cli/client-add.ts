import { type Command, Option } from 'commander'
import { auditEvent } from '../domain/audit.ts'
import { addIntegration, type IntegrationRequest } from '../domain/integration.ts'
import { parseScope } from '../domain/scope.ts'
import { systemClock, systemRandom } from '../system.ts'
import { describeClient } from './client-description.ts'
import { addLocationFlags, type LocationFlags, withStore } from './open.ts'
import { operatorOccasion } from './operator.ts'
import { printJson, printMembers } from './print.ts'

interface ClientAddFlags extends LocationFlags {
  readonly json?: true
  readonly name: string
  readonly redirectUri?: string[]
  readonly postLogoutRedirectUri?: string[]
  readonly auth: IntegrationRequest['authenticationMethod']
  readonly pkce: IntegrationRequest['pkce']
  readonly consent?: IntegrationRequest['consent']
  readonly scope?: string
  readonly idTokenAlg: IntegrationRequest['idTokenSignedResponseAlg']
  readonly resource?: string[]
}

const examples = `
Examples:
  lychgate client add --name 'Course app' --redirect-uri https://app.example.com/callback
  lychgate client add --name 'Course API' --resource https://api.example.com
`

/** Adds `lychgate client add`: a client with https callbacks, or a resource server. */
export function addClientAddCommand(parent: Command): void {
  const command = parent
    .command('add')
    .description('add a client with https callbacks, or a resource server; its secret is shown once')
    .requiredOption('--name <text>', 'what people know it as')
    .option('--redirect-uri <uri>', 'https, or loopback; may be repeated', collect)
    .option('--post-logout-redirect-uri <uri>', 'where a logout may lead; may be repeated', collect)
    .addOption(
      new Option('--auth <method>', 'how it authenticates')
        .choices(['client_secret_basic', 'client_secret_post', 'none'])
        .default('client_secret_basic'),
    )
    .addOption(
      new Option('--pkce <rule>', 'optional is for confidential clients only')
        .choices(['required', 'optional'])
        .default('required'),
    )
    .addOption(
      new Option(
        '--consent <rule>',
        'ask always, for new scopes only, or never (default: remember; always for public loopback clients)',
      ).choices(['always', 'remember', 'skip']),
    )
    .option('--scope <names>', 'the most it may ask for, separated by spaces (default: everything)')
    .addOption(
      new Option('--id-token-alg <name>', 'signs its ID Tokens')
        .choices(['RS256', 'ES256', 'EdDSA'])
        .default('RS256'),
    )
    .option(
      '--resource <uri>',
      'makes a resource server that may introspect its tokens; may be repeated',
      collect,
    )
    .option('--json', 'print JSON')
    .addHelpText('after', examples)
  addLocationFlags(command).action(clientAdd)
}

async function clientAdd(flags: ClientAddFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    const scopes = config.scopes.map(({ name }) => name)
    const resources = [config.issuer, ...config.resources.map(({ identifier }) => identifier)]
    const fresh = { id: systemRandom(16), secret: systemRandom(32) }
    const { client, secret } = addIntegration(requestOf(flags), { scopes, resources }, fresh, systemClock())
    const event = auditEvent('client-added', operatorOccasion(), { clientId: client.id, name: flags.name })
    await store.write({ op: 'insertClient', client }, event)
    const credentials = { client_id: client.id, ...(secret !== undefined && { client_secret: secret }) }
    if (flags.json) return printJson({ ...describeClient(client, config), ...credentials })
    const { name, redirectUris, introspects, authenticationMethod } = client
    printMembers({
      ...credentials,
      client_name: name,
      redirect_uris: redirectUris,
      introspects,
      token_endpoint_auth_method: authenticationMethod,
    })
    if (secret !== undefined)
      process.stdout.write('\nKeep the secret now: it is stored as a hash and never shown again.\n')
  })
}

function requestOf(flags: ClientAddFlags): IntegrationRequest {
  return {
    name: flags.name,
    redirectUris: flags.redirectUri ?? [],
    postLogoutRedirectUris: flags.postLogoutRedirectUri ?? [],
    authenticationMethod: flags.auth,
    pkce: flags.pkce,
    consent: flags.consent,
    scope: flags.scope === undefined ? undefined : parseScope(flags.scope),
    idTokenSignedResponseAlg: flags.idTokenAlg,
    introspects: flags.resource ?? [],
  }
}

function collect(value: string, before: string[] = []): string[] {
  return [...before, value]
}
