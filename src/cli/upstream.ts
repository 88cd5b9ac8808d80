import { type Command, InvalidArgumentError, Option } from 'commander'
import { readSecret } from '../config/error.ts'
import type { Seconds } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import { upstreamMembers } from '../users/upstream-members.ts'
import { issuerOf, upstreamPresets } from '../users/upstream-presets.ts'
import { unlessMissing, WrongUsage } from './failure.ts'
import { addAnywhereFlags, type ServerFlags } from './files/open-target.ts'
import { addYesFlag, collect, type DestructiveFlags, parseSpan } from './flags.ts'
import { type Json, withOperator } from './operate.ts'
import { confirmOrAbort } from './operator.ts'
import { instant, printList, printResult } from './print.ts'

const addHelp = `
Register this server at the upstream first, as a confidential client with the redirect URI that this prints. The secret
is read from a file and stored encrypted; --client-authentication private_key_jwt needs none. The sign-in page has the
button at once, on every node. An upstream of lychgate.yaml is changed there, and wins.

Examples:
  lychgate upstream add work --name Work --issuer https://id.example.com --client lychgate --client-secret-file secret
  lychgate upstream add work --name Work --issuer https://id.example.com --client lychgate --client-secret-file secret \\
    --first-sign-in domain --domain example.com --group teachers=Staff
  lychgate upstream add google --for google --client 1234.apps.googleusercontent.com --client-secret-file secret
`

const setHelp = `
What is not named stays. --domain and --group replace all; an empty text removes them.

Examples:
  lychgate upstream set work --client-secret-file secret.new
  lychgate upstream set work --group teachers=Staff --group cooks=Kitchen
`

const example = (line: string) => `\nExample:\n  lychgate upstream ${line}\n`

/** Adds `lychgate upstream …`: the servers with which users may sign in. */
export function addUpstreamCommands(program: Command): void {
  const upstream = program
    .command('upstream')
    .description('add, list, change and delete OpenID Providers that users may sign in with')
  const command = (name: string, description: string) => upstream.command(name).description(description)
  const add = command('add <id>', 'add an upstream; its id is part of its redirect URI')
    .addOption(new Option('--for <server>', 'fill in what it needs').choices(Object.keys(upstreamPresets)))
    .option('--name <text>', 'the name on its button')
    .option('--issuer <url>', 'its issuer, exactly as its metadata has it')
    .requiredOption('--client <id>', 'the client_id of this server there')
    .option('--disabled', 'add it without its button')
  addAnywhereFlags(withMembers(add), addHelp).action(upstreamAdd)
  addAnywhereFlags(command('list', 'list every upstream'), example('list --json')).action(upstreamList)
  addAnywhereFlags(command('show <id>', 'show an upstream'), example('show work')).action(upstreamShow)
  const set = command('set <id>', 'change an upstream')
    .option('--name <text>', 'the name on its button')
    .option('--client <id>', 'the client_id of this server there')
  addAnywhereFlags(withMembers(set), setHelp).action(upstreamSet)
  const enable = command('enable <id>', 'let users sign in with an upstream')
  addAnywhereFlags(enable, example('enable work')).action(upstreamEnable)
  const disable = command('disable <id>', 'take its button away, and end what came through it')
  addAnywhereFlags(addYesFlag(disable), example('disable work')).action(upstreamDisable)
  const removal = command('delete <id>', 'delete an upstream; its users stay users')
  addAnywhereFlags(addYesFlag(removal), example('delete work --yes')).action(upstreamDelete)
}

const { clientAuthentication, signingAlgorithm, firstSignIn, multiFactor } = upstreamMembers

/** The values of a member that is a choice. */
function choices({ anyOf }: { readonly anyOf: readonly { readonly const: string }[] }): readonly string[] {
  return anyOf.map((value) => value.const)
}

/** Adds the flags of the members that have a default. */
function withMembers(command: Command): Command {
  const chosen = (flag: string, description: string, member: Parameters<typeof choices>[0]) =>
    new Option(flag, description).choices(choices(member))
  return command
    .option('--client-secret-file <file>', 'the file with the client secret of this server there')
    .addOption(
      chosen('--client-authentication <method>', 'how this server authenticates there', clientAuthentication),
    )
    .addOption(chosen('--signing-algorithm <name>', 'what signs its ID Tokens', signingAlgorithm))
    .option('--scope <text>', 'the scope that is requested there')
    .addOption(chosen('--first-sign-in <rule>', 'who gets an account by signing in', firstSignIn))
    .option('--domain <name>', 'an email domain that it is an authority for; may be repeated', collect)
    .addOption(chosen('--multi-factor <rule>', 'whether mfa in its amr counts here', multiFactor))
    .option('--groups-claim <name>', 'the claim that has the groups of a user')
    .option('--group <there=here>', 'a group there and what it gives here; may be repeated', collectGroup)
    .option('--max-age <duration>', 'the longest session that a sign-in there begins here', parseSpan)
}

interface MemberFlags extends ServerFlags {
  readonly name?: string
  readonly client?: string
  readonly clientSecretFile?: string
  readonly clientAuthentication?: string
  readonly signingAlgorithm?: string
  readonly scope?: string
  readonly firstSignIn?: string
  readonly domain?: readonly string[]
  readonly multiFactor?: string
  readonly groupsClaim?: string
  readonly group?: Readonly<Record<string, string>>
  readonly maxAge?: Seconds
}

interface AddFlags {
  readonly for?: string
  readonly issuer?: string
  readonly disabled?: true
}

const reads = ['admin:upstreams:read']
const writes = [...reads, 'admin:upstreams:write']
const missing = 'no upstream has this id'

/** Loaded late: `--help` needs none of it. */
const operations = () => import('../admin/operations/upstreams.ts')

/** `lychgate upstream add`: adds an upstream. */
async function upstreamAdd(id: string, { disabled, ...flags }: MemberFlags & AddFlags): Promise<void> {
  const preset = flags.for === undefined ? undefined : upstreamPresets[flags.for]
  const issuer = flags.issuer ?? (preset && issuerOf(preset))
  const all = { scope: preset?.members?.scope, groupsClaim: preset?.members?.groupsClaim, name: preset?.name }
  const members = membersOf({ ...omitUndefined(all), ...flags })
  if (issuer === undefined)
    throw new WrongUsage(`--issuer: name it${preset === undefined ? '' : `, such as ${preset.issuer}`}`)
  if (members['name'] === undefined) throw new WrongUsage('--name: name its button')
  await withOperator(flags, writes, async ({ perform }) => {
    const body = { upstream_id: id, issuer, ...members, ...(disabled && { enabled: false }) }
    print(flags, await perform((await operations()).addUpstream, {}, body))
  })
  if (preset !== undefined && !flags.json) process.stdout.write(`\n${preset.name}: ${preset.advice}\n`)
}

/** `lychgate upstream list`: lists every upstream. */
async function upstreamList(flags: ServerFlags): Promise<void> {
  await withOperator(flags, reads, async ({ list }) => {
    printList(
      flags,
      await list((await operations()).listUpstreams, {}),
      (upstream) => upstream,
      ({ upstream_id, name, issuer, enabled, source }) => [
        `${upstream_id}`,
        `${name}`,
        `${issuer}`,
        enabled ? 'enabled' : 'disabled',
        source === 'configuration' ? 'in the configuration' : '',
      ],
    )
  })
}

/** `lychgate upstream show`: shows an upstream, without its secret. */
async function upstreamShow(id: string, flags: ServerFlags): Promise<void> {
  await withOperator(flags, reads, async ({ perform }) => {
    const { readUpstream } = await operations()
    print(flags, await unlessMissing(perform(readUpstream, { upstream_id: id }), missing))
  })
}

/** `lychgate upstream set`: changes an upstream. */
async function upstreamSet(id: string, flags: MemberFlags): Promise<void> {
  const body = membersOf(flags)
  if (Object.keys(body).length === 0) throw new WrongUsage('nothing to change; name a member, see --help')
  await change(id, flags, body)
}

/** `lychgate upstream enable`: lets users sign in with an upstream. */
async function upstreamEnable(id: string, flags: ServerFlags): Promise<void> {
  await change(id, flags, { enabled: true })
}

/** `lychgate upstream disable`: ends what came through an upstream. */
async function upstreamDisable(id: string, flags: ServerFlags & DestructiveFlags): Promise<void> {
  const question = `Disable the upstream ${id}? Its users are signed out, and their apps at the next refresh.`
  await confirmOrAbort(flags, question, 'nothing was changed')
  await change(id, flags, { enabled: false })
}

/** `lychgate upstream delete`: deletes an upstream. */
async function upstreamDelete(id: string, flags: ServerFlags & DestructiveFlags): Promise<void> {
  await withOperator(flags, writes, async ({ perform }) => {
    const { readUpstream, removeUpstream } = await operations()
    const { name } = await unlessMissing(perform(readUpstream, { upstream_id: id }), missing)
    const question = `Delete the upstream ${name}? Its users are signed out, and their apps at the next refresh.`
    await confirmOrAbort(flags, question, 'nothing was deleted')
    await perform(removeUpstream, { upstream_id: id })
    printResult(flags, { upstream_id: id, deleted: true }, { deleted: name })
  })
}

async function change(id: string, flags: ServerFlags, body: Json): Promise<void> {
  await withOperator(flags, writes, async ({ perform }) => {
    const { editUpstream } = await operations()
    print(flags, await unlessMissing(perform(editUpstream, { upstream_id: id }, body), missing))
  })
}

function membersOf(flags: MemberFlags): Json {
  const { name, client, clientSecretFile: file, domain, group, scope } = flags
  return omitUndefined({
    name,
    client_id: client,
    client_secret: file === undefined ? undefined : readSecret(file, '--client-secret-file'),
    client_authentication: flags.clientAuthentication,
    signing_algorithm: flags.signingAlgorithm,
    scope,
    first_sign_in: flags.firstSignIn,
    domains: domain?.filter((text) => text !== ''),
    multi_factor: flags.multiFactor,
    groups_claim: flags.groupsClaim,
    groups: group,
    max_age_seconds: flags.maxAge,
  })
}

function collectGroup(
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  if (text === '') return before
  const at = text.lastIndexOf('=')
  if (at < 1 || at === text.length - 1)
    throw new InvalidArgumentError('It must be a group there and a group here, such as teachers=Staff.')
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) }
}

function print(flags: ServerFlags, upstream: Json): void {
  const { created_at: createdAt, updated_at: updatedAt, ...rest } = upstream
  const instants = omitUndefined({
    created_at: typeof createdAt === 'number' ? instant(createdAt) : undefined,
    updated_at: typeof updatedAt === 'number' ? instant(updatedAt) : undefined,
  })
  const groups = Object.entries(Object(rest['groups'])).map(([there, here]) => `${there}=${here}`)
  printResult(flags, upstream, { ...rest, groups, ...instants })
}
