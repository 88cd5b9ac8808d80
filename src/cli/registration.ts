import { type Command, InvalidArgumentError, Option } from 'commander'
import { assertText } from '../clients/members.ts'
import { auditEvent } from '../domain/audit.ts'
import { insert, remove } from '../domain/decision.ts'
import {
  describeInitialToken,
  type InitialToken,
  type InitialTokenRequest,
  initialTokenKind,
  mintInitialToken,
  nameOfToken,
} from '../domain/initial-token.ts'
import type { Seconds } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import { secretBytes } from '../domain/secret.ts'
import { declared } from '../features.ts'
import { systemClock, systemRandom } from '../system/system.ts'
import { addMemberFlags, readMemberFlags } from './client-metadata.ts'
import { CommandFailed } from './failure.ts'
import {
  addOperatorFlags,
  addYesFlag,
  type DestructiveFlags,
  type OperatorFlags,
  parseLimit,
  parseSpan,
} from './flags.ts'
import { withStore } from './open.ts'
import { confirmOrAbort, operatorContext } from './operator.ts'
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
      new Option('--redirects <kind>', 'which redirect URIs a client may have besides loopback ones')
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
  addOperatorFlags(addMemberFlags(create, settable), tokenHelp).action(tokenCreate)
  const list = group.command('list').description('list the tokens that have not expired')
  addOperatorFlags(list, tokenHelp).action(tokenList)
  const revoke = group
    .command('revoke <token_id>')
    .description('revoke a token; clients that registered with it stay')
  addOperatorFlags(addYesFlag(revoke), tokenHelp).action(tokenRevoke)
}

/** The client metadata that an operator may set with a token. */
const settable = Object.fromEntries(
  Object.entries(declared.clientMetadata).filter(([, { byToken }]) => byToken),
)

type CreateFlags = OperatorFlags & InitialTokenRequest & { readonly expires: Seconds }

/** `lychgate registration token create`: creates a token, and shows it once. */
async function tokenCreate({ name, redirects, pkce, uses, expires, ...flags }: CreateFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const extra = readMemberFlags(flags, settable)
    const request = {
      ...{ redirects, pkce, uses },
      ...omitUndefined({ name, extra: Object.keys(extra).length === 0 ? undefined : extra }),
    }
    const { token, record } = mintInitialToken(request, systemRandom(secretBytes), expires, systemClock())
    const facts = { token: nameOfToken(record), redirects, uses, expires: record.expiresAt }
    await store.write(
      insert(initialTokenKind, record),
      auditEvent('registration-token-made', operatorContext(), facts),
    )
    const described = { ...describeInitialToken(record), initial_access_token: token }
    printResult(flags, described, { ...described, expires_at: instant(record.expiresAt) })
    if (!flags.json)
      process.stdout.write('\nSave the token now: it is stored as a hash and never shown again.\n')
  })
}

/** `lychgate registration token list`: lists the tokens, the newest last. */
async function tokenList(flags: OperatorFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const now = systemClock()
    const all = await store.listKind(initialTokenKind, everything)
    const usable = all.filter(({ expiresAt }) => now < expiresAt)
    printList(flags, usable, describeInitialToken, lineOf)
  })
}

/** `lychgate registration token revoke`: deletes a token. */
async function tokenRevoke(tokenId: string, flags: DestructiveFlags): Promise<void> {
  await withStore(flags, async (store) => {
    const all = await store.listKind(initialTokenKind, everything)
    const found = all.find((one) => nameOfToken(one) === tokenId)
    if (found === undefined) throw new CommandFailed('no initial access token has this id')
    await confirmOrAbort(
      flags,
      `Revoke the token ${tokenId}? No client can register with it any more.`,
      'the token is not revoked',
    )
    const event = auditEvent('registration-token-revoked', operatorContext(), { token: tokenId })
    await store.write(remove(initialTokenKind, found.id), event)
    printResult(flags, describeInitialToken(found), { revoked: tokenId })
  })
}

const everything = { madeUntil: Number.MAX_SAFE_INTEGER, limit: 100_000 }

function lineOf(token: InitialToken): string[] {
  const { name = '', redirects, pkce, extra = {}, uses, used, expiresAt } = token
  const rules = [
    redirects,
    ...(pkce === 'optional' ? ['PKCE optional'] : []),
    ...Object.entries(extra).map(([member, value]) => `${member} ${value}`),
  ]
  return [
    nameOfToken(token),
    rules.join(', '),
    `${used} of ${uses} used`,
    `expires ${instant(expiresAt)}`,
    name,
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
