import { type Command, InvalidArgumentError, Option } from 'commander'
import { membersByToken } from '../clients/core-members.ts'
import { assertText } from '../clients/members.ts'
import type { InitialTokenRequest } from '../domain/initial-token.ts'
import type { Seconds } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import { declared } from '../features.ts'
import { addMemberFlags, readMemberFlags } from './client-metadata.ts'
import { unlessMissing } from './failure.ts'
import { addAnywhereFlags, type ServerFlags } from './files/open-target.ts'
import { addYesFlag, type DestructiveFlags, parseLimit, parseSpan } from './flags.ts'
import { type Json, withOperator } from './operate.ts'
import { confirmOrAbort } from './operator.ts'
import { instant, printList, printResult } from './print.ts'

const tokenHelp = `
Without a token, clients that register themselves have loopback redirect URIs only. A client that sends the token as a
bearer token to the registration endpoint may also have https redirect and post-logout URIs, keys and private_key_jwt,
request_uris, and a URI for logout tokens. Its logo is shown. It keeps these rights when the token ends.
--redirects loopback allows all of this except https redirect and post-logout URIs.

Examples:
  lychgate registration token create --redirects https --uses 1 --expires 30d
  lychgate registration token create --name 'Course team' --redirects https --uses 20 --expires 1d
  lychgate registration token list
  lychgate registration token revoke 3q2-8f…
`

/** Adds `lychgate registration …`: what clients need to register more than loopback redirect URIs. */
export function addRegistrationCommands(program: Command): void {
  const group = program
    .command('registration')
    .description('manage how clients register themselves')
    .command('token')
    .description('create, list and revoke initial access tokens, RFC 7591 section 3')
  const create = group
    .command('create')
    .description('create a token; it is shown once')
    .option('--name <text>', 'what it is for, in lists', parseName)
    .addOption(
      new Option('--redirects <kind>', 'which redirect URIs other than loopback ones a client may have')
        .choices(['https', 'loopback'])
        .default('https'),
    )
    .addOption(
      new Option('--pkce <rule>', 'whether PKCE is required; optional for confidential clients only')
        .choices(['required', 'optional'])
        .default('required'),
    )
    .option('--uses <number>', 'how many clients may register with it', parseLimit, 1)
    .addOption(
      new Option('--expires <duration>', 'how long it may be used')
        .argParser(parseLifetime)
        .default(30 * 86_400, '30d'),
    )
  addAnywhereFlags(addMemberFlags(create, settable), tokenHelp).action(tokenCreate)
  const list = group.command('list').description('list the tokens that have not expired')
  addAnywhereFlags(list, tokenHelp).action(tokenList)
  const revoke = group
    .command('revoke <token_id>')
    .description('revoke a token; clients that registered with it stay')
  addAnywhereFlags(addYesFlag(revoke), tokenHelp).action(tokenRevoke)
}

/** The client metadata that an operator may set with a token. */
const settable = membersByToken(declared)

const reads = ['admin:clients:read']
const writes = [...reads, 'admin:clients:write']

/** Loaded late: `--help` needs none of it. */
async function operations() {
  return (await import('../admin/operations/registrations.ts')).registrationOperations(declared)
}

type CreateFlags = ServerFlags & InitialTokenRequest & { readonly expires: Seconds }

/** `lychgate registration token create`: creates a token, and shows it once. */
async function tokenCreate({ name, redirects, pkce, uses, expires, ...flags }: CreateFlags): Promise<void> {
  await withOperator(flags, writes, async ({ perform }) => {
    const members = { redirects, pkce, uses, expires_in: expires, ...readMemberFlags(flags, settable) }
    const token = await perform((await operations()).create, {}, omitUndefined({ name, ...members }))
    printResult(flags, token, { ...token, expires_at: instant(Number(token['expires_at'])) })
    if (!flags.json)
      process.stdout.write('\nSave the token now: it is stored as a hash and never shown again.\n')
  })
}

/** `lychgate registration token list`: lists the tokens, the newest last. */
async function tokenList(flags: ServerFlags): Promise<void> {
  await withOperator(flags, reads, async ({ list }) => {
    const tokens = await list((await operations()).list, {})
    const inOrder = tokens.toSorted((one, other) => Number(one['created_at']) - Number(other['created_at']))
    printList(flags, inOrder, (token) => token, lineOf)
  })
}

/** `lychgate registration token revoke`: deletes a token. */
async function tokenRevoke(tokenId: string, flags: ServerFlags & DestructiveFlags): Promise<void> {
  await withOperator(flags, writes, async ({ perform }) => {
    const { read, revoke } = await operations()
    const client = await unlessMissing(
      perform(read, { token_id: tokenId }),
      'no initial access token has this id',
    )
    await confirmOrAbort(
      flags,
      `Revoke the token ${tokenId}? No client can register with it any more.`,
      'the token is not revoked',
    )
    await perform(revoke, { token_id: tokenId })
    printResult(flags, client, { revoked: tokenId })
  })
}

function lineOf(token: Json): string[] {
  const { token_id, name = '', redirects, pkce, uses, used, expires_at } = token
  const rules = [
    redirects,
    ...(pkce === 'optional' ? ['PKCE optional'] : []),
    ...Object.keys(settable).flatMap((member) => (member in token ? [`${member} ${token[member]}`] : [])),
  ]
  return [
    String(token_id),
    rules.join(', '),
    `${used} of ${uses} used`,
    `expires ${instant(Number(expires_at))}`,
    String(name),
  ]
}

function parseName(text: string): string {
  try {
    assertText(text, 'name')
    return text
  } catch (error) {
    throw new InvalidArgumentError(`The ${(error as Error).message}.`)
  }
}

function parseLifetime(text: string): Seconds {
  const seconds = parseSpan(text)
  if (seconds > 0) return seconds
  throw new InvalidArgumentError('It must be longer than nothing, such as 30d.')
}
