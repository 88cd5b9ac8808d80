import type { Command } from 'commander'
import type { JsonObject } from '../clients/members.ts'
import { isObject } from '../domain/is-object.ts'
import { changesClients, editClient, readClient, readsClients } from './client-operations.ts'
import { CommandFailed } from './failure.ts'
import { addAnywhereFlags, type ServerFlags } from './files/open-target.ts'
import { addYesFlag, type DestructiveFlags, type OperatorFlags } from './flags.ts'
import { type Json, withOperator } from './operate.ts'
import { confirmOrAbort } from './operator.ts'
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
  addAnywhereFlags(add, trustHelp).action(trustAdd)
  const list = group.command('list <client_id>').description('list what the client trusts')
  addAnywhereFlags(list, trustHelp).action(trustList)
  const removal = withEntry(
    group.command('remove <client_id>').description('stop trusting: such tokens are rejected'),
  )
  addAnywhereFlags(addYesFlag(removal), trustHelp).action(trustRemove)
}

/** `lychgate client trust add`: makes the client trust an issuer and a subject. */
async function trustAdd(clientId: string, flags: TrustFlags & ServerFlags): Promise<void> {
  const { issuer, subject, audience, reusable } = flags
  await changeTrust(clientId, flags, (trusted) => [...trusted, { issuer, subject, audience, reusable }])
}

/** `lychgate client trust list`: lists what a client trusts. */
async function trustList(clientId: string, flags: ServerFlags): Promise<void> {
  await withOperator(flags, readsClients, async (operator) =>
    print(trustedBy(await readClient(operator, clientId)), flags),
  )
}

/** `lychgate client trust remove`: removes an entry; the last way to authenticate stays. */
async function trustRemove(
  clientId: string,
  flags: TrustFlags & ServerFlags & DestructiveFlags,
): Promise<void> {
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
  flags: TrustFlags & ServerFlags,
  change: (trusted: readonly JsonObject[]) => readonly JsonObject[],
): Promise<void> {
  await withOperator(flags, changesClients, async (operator) => {
    const changed = await editClient(operator, clientId, (found) => ({
      trusted_issuers: change(trustedBy(found)),
    }))
    print(trustedBy(changed), flags)
  })
}

/** @throws {CommandFailed} for a client that authenticates otherwise: to trust an issuer would do nothing. */
function trustedBy({
  token_endpoint_auth_method: method,
  trusted_issuers: trusted,
}: Json): readonly JsonObject[] {
  if (method !== 'private_key_jwt')
    throw new CommandFailed(`the client authenticates by ${method}, not by private_key_jwt`)
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
