import type { Command } from 'commander'
import { changeIntegration } from '../clients/integration.ts'
import type { JsonObject } from '../clients/members.ts'
import type { Decision } from '../domain/decision.ts'
import { isObject } from '../domain/is-object.ts'
import type { Client } from '../domain/model.ts'
import { knownTo } from '../feature/known-to.ts'
import { declared } from '../features.ts'
import { subjectTaken } from './client-metadata.ts'
import { CommandFailed } from './failure.ts'
import { requireClient } from './find.ts'
import { addOperatorFlags, addYesFlag, type DestructiveFlags, type OperatorFlags } from './flags.ts'
import { withStore } from './open.ts'
import { confirmOrAbort, operatorContext } from './operator.ts'
import { printColumns, printJson } from './print.ts'

const trustHelp = `
For clients that authenticate by private_key_jwt: a token of the issuer with this subject counts as the client's own, so
that there is neither a secret nor a key to store. The subject is compared exactly, and there are no patterns. The
audience is the issuer of this server unless --audience names another. A token is used once, unless --reusable says that
its platform hands out the same one until it expires, as Kubernetes does.

Examples:
  lychgate client trust add client_x1f8… --issuer https://token.actions.githubusercontent.com \\
    --subject repo:example/courses:ref:refs/heads/main
  lychgate client trust add client_x1f8… --issuer https://cluster.example.com \\
    --subject system:serviceaccount:courses:import --reusable
  lychgate client trust list client_x1f8…
  lychgate client trust remove client_x1f8… --issuer https://cluster.example.com \\
    --subject system:serviceaccount:courses:import --yes
`

interface TrustFlags {
  readonly issuer: string
  readonly subject: string
  readonly audience?: string
  readonly reusable?: true
}

/**
 * Adds `lychgate client trust …`, which manages the issuers that a client trusts. A token of such an issuer replaces
 * a key of the client.
 */
export function addClientTrustCommands(client: Command): void {
  const group = client
    .command('trust')
    .description('add, list and remove issuers; a token of a trusted issuer replaces a key of the client')
  const withEntry = (command: Command) =>
    command
      .requiredOption('--issuer <url>', 'iss of the tokens; its metadata says where its keys are')
      .requiredOption('--subject <text>', 'sub of the tokens, compared exactly')
      .option('--audience <text>', 'aud of the tokens (default: the issuer of this server)')
  const add = withEntry(
    group.command('add <client_id>').description('trust an issuer to name this client by a subject'),
  ).option('--reusable', 'a token may be used until it expires (default: once)')
  addOperatorFlags(add, trustHelp).action(trustAdd)
  const list = group.command('list <client_id>').description('list what the client trusts')
  addOperatorFlags(list, trustHelp).action(trustList)
  const removal = withEntry(
    group.command('remove <client_id>').description('stop trusting: such tokens are rejected'),
  )
  addOperatorFlags(addYesFlag(removal), trustHelp).action(trustRemove)
}

/** `lychgate client trust add`: adds an issuer and a subject to those that the client trusts. */
async function trustAdd(clientId: string, flags: TrustFlags & OperatorFlags): Promise<void> {
  const { issuer, subject, audience, reusable } = flags
  await changeTrust(clientId, flags, (trusted) => [...trusted, { issuer, subject, audience, reusable }])
}

/** `lychgate client trust list`: lists what a client trusts. */
async function trustList(clientId: string, flags: OperatorFlags): Promise<void> {
  await withStore(flags, async (store) =>
    print(trustedBy(requireClient(await store.find('client', clientId))), flags),
  )
}

/** `lychgate client trust remove`: removes an entry; the last way to authenticate stays. */
async function trustRemove(clientId: string, flags: TrustFlags & DestructiveFlags): Promise<void> {
  const { issuer, subject, audience } = flags
  await confirmOrAbort(flags, `Stop trusting ${subject} of ${issuer}?`, 'nothing was removed')
  await changeTrust(clientId, flags, (trusted) => {
    const left = trusted.filter(
      (entry) => entry['issuer'] !== issuer || entry['subject'] !== subject || entry['audience'] !== audience,
    )
    if (left.length < trusted.length) return left
    throw new CommandFailed('the client does not trust this issuer, subject and audience')
  })
}

async function changeTrust(
  clientId: string,
  flags: TrustFlags & OperatorFlags,
  change: (trusted: readonly JsonObject[]) => readonly JsonObject[],
): Promise<void> {
  await withStore(flags, async (store, config) => {
    const decide = (found: Client | undefined): Decision<Client> => {
      const trusted = change(trustedBy(requireClient(found)))
      return changeIntegration(
        found,
        { trusted_issuers: trusted },
        knownTo(config, declared),
        operatorContext(),
      )
    }
    const changed = await store.transact('client', clientId, decide).catch(subjectTaken)
    print(trustedBy(changed), flags)
  })
}

/** @throws {CommandFailed} for a client that authenticates otherwise: to trust an issuer would do nothing. */
function trustedBy({ authenticationMethod, extra }: Client): readonly JsonObject[] {
  if (authenticationMethod !== 'private_key_jwt')
    throw new CommandFailed(`the client authenticates by ${authenticationMethod}, not by private_key_jwt`)
  const trusted = extra?.['trusted_issuers'] ?? []
  return Array.isArray(trusted) ? trusted.filter(isObject) : []
}

function print(trusted: readonly JsonObject[], flags: OperatorFlags): void {
  if (flags.json) printJson(trusted)
  else
    printColumns(
      trusted.map(({ issuer, subject, audience = '', reusable }) => [
        `${issuer}`,
        `${subject}`,
        `${audience}`,
        reusable === true ? 'reusable' : 'once',
      ]),
    )
}
