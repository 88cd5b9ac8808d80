import { Argument, type Command } from 'commander'
import { declared } from '../features.ts'
import { changesClients, clientOperations, ofClient } from './client-operations.ts'
import { addAnywhereFlags, type ServerFlags } from './files/open-target.ts'
import { withOperator } from './operate.ts'
import { printColumns, printJson } from './print.ts'

const profileHelp = `
fapi2 is the FAPI 2.0 Security Profile: the client pushes its requests, authenticates by a key of its own (private_key_jwt)
with PS256, ES256 or EdDSA, and gets tokens bound to a key. A client with a secret has to be added again, with a key. Prints
each member that changes, as it was and as it is. none takes the profile off, and the other members stay as they are.

Examples:
  lychgate client profile fapi2 client_x1f8…
  lychgate client profile none client_x1f8…
`

/** Adds `lychgate client profile`, unless no feature has one. */
export function addClientProfileCommand(client: Command): void {
  const names = Object.keys(declared.clientProfiles)
  if (names.length === 0) return
  const command = client
    .command('profile')
    .description('choose the profile that a client must conform to, and show what that changes')
    .addArgument(new Argument('<name>', 'the profile').choices([...names, 'none']))
    .argument('<client_id>')
  addAnywhereFlags(command, profileHelp).action(clientProfile)
}

/** `lychgate client profile`: brings a client in line with a profile, or takes every profile off. */
async function clientProfile(name: string, clientId: string, flags: ServerFlags): Promise<void> {
  await withOperator(flags, changesClients, async ({ perform }) => {
    const { profile } = await clientOperations()
    const done = await ofClient(perform(profile, { client_id: clientId }, { profile: name }))
    // `as`: what the response of the operation has.
    const differences = Object.entries(done['changed'] as Readonly<Record<string, Difference>>)
    if (flags.json) printJson(done)
    else if (differences.length === 0) process.stdout.write('nothing changed\n')
    else
      printColumns(
        differences.map(([member, { before, after }]) => [member, shown(before), '→', shown(after)]),
      )
  })
}

interface Difference {
  readonly before: unknown
  readonly after: unknown
}

function shown(value: unknown): string {
  return value === null ? 'none' : typeof value === 'string' ? value : JSON.stringify(value)
}
