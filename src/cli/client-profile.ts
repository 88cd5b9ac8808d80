import { Argument, type Command } from 'commander'
import { describeClient } from '../clients/describe.ts'
import { changeIntegration } from '../clients/integration.ts'
import type { Client } from '../domain/model.ts'
import { knownTo } from '../feature/known-to.ts'
import { declared } from '../features.ts'
import { subjectTaken } from './client-metadata.ts'
import { requireClient } from './find.ts'
import { addOperatorFlags, type OperatorFlags } from './flags.ts'
import { withStore } from './open.ts'
import { operatorContext } from './operator.ts'
import { printColumns, printJson } from './print.ts'

const profileHelp = `
fapi2 is the FAPI 2.0 Security Profile: the client pushes its requests, authenticates by a key of its own (private_key_jwt)
with PS256, ES256 or EdDSA, and gets tokens bound to a key. A client with a secret has to be added again, with a key. Prints
each member that changes, as it was and as it is. none takes the profile off, and the other members stay as they are.

Examples:
  lychgate client profile fapi2 client_x1f8…
  lychgate client profile none client_x1f8…
`

const profiles = declared.clientProfiles

/** Adds `lychgate client profile`, unless no feature has one. */
export function addClientProfileCommand(client: Command): void {
  if (Object.keys(profiles).length === 0) return
  const command = client
    .command('profile')
    .description('choose the profile that a client must conform to, and show what that changes')
    .addArgument(new Argument('<name>', 'the profile').choices([...Object.keys(profiles), 'none']))
    .argument('<client_id>')
  addOperatorFlags(command, profileHelp).action(clientProfile)
}

/** `lychgate client profile`: brings a client in line with a profile, or takes every profile off. */
async function clientProfile(name: string, clientId: string, flags: OperatorFlags): Promise<void> {
  await withStore(flags, async (store, config) => {
    const change = (found: Client | undefined) => {
      const client = requireClient(found)
      const wanted =
        profiles[name]?.put(client) ?? Object.assign({}, ...Object.values(profiles).map(({ take }) => take))
      const decision = changeIntegration(client, wanted, knownTo(config, declared), operatorContext())
      const [before, after] = [client, 'result' in decision ? decision.result : client].map((one) =>
        describeClient(one, knownTo(config, declared)),
      )
      const differences = differencesOf(before ?? {}, after ?? {})
      return { ...decision, result: differences }
    }
    const differences = await store.transact('client', clientId, change).catch(subjectTaken)
    if (flags.json) printJson({ client_id: clientId, changed: Object.fromEntries(differences) })
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

function differencesOf(before: object, after: object): readonly (readonly [string, Difference])[] {
  const [old, now] = [new Map(Object.entries(before)), new Map(Object.entries(after))]
  return [...new Set([...old.keys(), ...now.keys()])]
    .filter((name) => JSON.stringify(old.get(name)) !== JSON.stringify(now.get(name)))
    .map((name) => [name, { before: old.get(name) ?? null, after: now.get(name) ?? null }])
}

function shown(value: unknown): string {
  return value === null ? 'none' : typeof value === 'string' ? value : JSON.stringify(value)
}
