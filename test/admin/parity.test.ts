/** The command line and the admin API do the same: what one can do, the other can, or it says why not. */
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import t from 'tap'
import { commandLine } from '../../src/main.ts'

/** For each command the operations that do the same, or the reason why only a terminal has it. */
const counterparts: Readonly<Record<string, readonly string[] | string>> = {
  'dev report': 'reports the flows of a development server, which is on this machine',
  serve: 'runs a server',
  init: 'makes the folder of a server',
  'client add': ['addClient', 'listRecipes'],
  'client list': ['listClients'],
  'client show': ['readClient'],
  'client set': ['replaceClient'],
  'client rotate-secret': ['rotateClientSecret'],
  'client key add': ['changeClient'],
  'client key list': ['readClient'],
  'client key remove': ['changeClient'],
  'client trust add': ['changeClient'],
  'client trust list': ['readClient'],
  'client trust remove': ['changeClient'],
  'client document show': ['readClientDocument', 'listClientDocuments'],
  'client document refresh': ['refreshClientDocument'],
  'client document deny': ['denyClientDocument'],
  'client document allow': ['allowClientDocument'],
  'client profile': ['profileClient'],
  'client access': ['changeClient'],
  'client claims': ['changeClient'],
  'client lock': ['lockClient'],
  'client unlock': ['unlockClient'],
  'client delete': ['deleteClient'],
  'client delete-unused': ['listClients', 'deleteClient'],
  'user add': ['inviteUser'],
  'user invite': ['inviteUser'],
  'user reset-link': ['createLink'],
  'user list': ['listUsers'],
  'user show': ['readUser', 'readSignIn', 'listGroupsOfUser', 'listSessions', 'listGrants'],
  'user set': ['changeUser'],
  'user links': ['listLinks'],
  'user delete-link': ['deleteLink'],
  'user passwd': ['setPassword'],
  'user lock': ['lockUser'],
  'user unlock': ['unlockUser'],
  'user revoke': ['revokeUser'],
  'user remove-second-factor': ['removeCodes'],
  'user remove-passkeys': ['removePasskeys'],
  'user delete': ['deleteUser'],
  'group create': ['createGroup'],
  'group list': ['listGroups'],
  'group show': ['readGroup', 'listMembers'],
  'group rename': ['changeGroup'],
  'group set': ['changeGroup'],
  'group delete': ['deleteGroup'],
  'group add': ['addMember'],
  'group remove': ['removeMember'],
  apply: 'uses the API with --server',
  export: 'uses the API with --server',
  'grant list': ['listAllGrants'],
  'grant show': ['readGrant'],
  'grant revoke': ['revokeGrant', 'revokeGrants', 'revokeClient'],
  'session list': ['listAllSessions'],
  'session end': ['readSession', 'endSession', 'signOutUser'],
  'logout deliveries': ['listPendingDeliveries', 'listFinishedDeliveries'],
  'registration token create': ['createRegistrationToken'],
  'registration token list': ['listRegistrationTokens', 'readRegistrationToken'],
  'registration token revoke': ['revokeRegistrationToken'],
  'keys list': ['listKeys'],
  'keys rotate': ['rotateKeys'],
  'keys retire': ['retireKey'],
  'keys secret': 'makes a secret for the configuration of the host',
  token: 'is for development servers, which have /_dev/token',
  backup: 'copies the database of the host',
  restore: 'replaces the database of the host',
  explain: ['explainToken', 'readRejection', 'listRejections'],
  audit: ['listEvents'],
  'config print': ['readSettings', 'listResources', 'listAttributes'],
  'config validate': 'reads the configuration of the host before a server has it',
  healthcheck: 'asks the server, for a container',
  doctor: 'examines the host, and works while no server does',
  completion: 'is for a shell',
}

/** Operations without a command, and why. */
const onlyApi: Readonly<Record<string, string>> = {
  adminDescription: 'describes the API',
  compareClientSecret: 'lets apply --server see what apply reads in the store',
}

/** Commands that have operations, and work on a store alone. */
const onStoreOnly = /^(?:keys|config)/

/** The commands without those that only group others. */
function namesOf(command: Command, path: readonly string[] = []): readonly string[] {
  const inner = command.commands.flatMap((one) => namesOf(one, [...path, one.name()]))
  return inner.length > 0 ? inner : [path.join(' ')]
}

t.test('every command has operations that do the same, or a reason', async (t) => {
  t.strictSame(namesOf(await commandLine()).toSorted(), Object.keys(counterparts).toSorted())
})

t.test('a command that has operations works on a running server, too', async (t) => {
  const program = await commandLine()
  for (const [name, operations] of Object.entries(counterparts)) {
    if (typeof operations === 'string' || onStoreOnly.test(name)) continue
    let command: Command | undefined = program
    for (const part of name.split(' ')) command = command?.commands.find((one) => one.name() === part)
    t.ok(
      command?.options.some(({ long }) => long === '--server'),
      name,
    )
  }
})

t.test('every operation has a command that does the same, or a reason', async (t) => {
  const { paths } = JSON.parse(
    readFileSync(new URL('../../openapi/admin.json', import.meta.url), 'utf8'),
  ) as { paths: Readonly<Record<string, Readonly<Record<string, { operationId: string }>>>> }
  const operations = Object.values(paths).flatMap((one) =>
    Object.values(one).map(({ operationId }) => operationId),
  )
  const named = Object.values(counterparts).filter((one) => typeof one !== 'string')
  t.strictSame(operations.toSorted(), [...new Set([...named.flat(), ...Object.keys(onlyApi)])].toSorted())
})
