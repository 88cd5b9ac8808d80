import type { Command } from 'commander'
import { ConfigError } from '../../config/error.ts'
import { WouldChange } from '../failure.ts'
import {
  addForceFlag,
  addOperatorFlags,
  addYesFlag,
  collect,
  type DestructiveFlags,
  type ForceFlag,
} from '../flags.ts'
import { withOperator } from '../operate.ts'
import { confirmOrAbort } from '../operator.ts'
import { jsonText, printJson, printMembers, visible } from '../print.ts'
import type { Use } from './admin-api.ts'
import { planClients, pruneClients } from './clients.ts'
import { planGroups, pruneGroups } from './groups.ts'
import { addServerFlags, type ServerFlags, serverHelp } from './open-target.ts'
import type { Batch, Change, Setting } from './plan.ts'
import { readFiles, type Wanted } from './read.ts'
import type { Difference, State } from './state.ts'
import type { Target } from './target.ts'
import { planUpstreams, pruneUpstreams } from './upstreams.ts'
import { planUsers, pruneUsers } from './users.ts'

const help = `
Brings users, groups, clients and upstreams in line with YAML files, and prints what changes. Repeated, it changes nothing.
A folder stands for its .yaml files. Everything is checked before the first change; each object is a transaction, all groups are
one. A running server has the changes with the next request.

New users are invited: by email if mail.url is set, and otherwise by a link that is printed. Secrets are named
(secretFile, newSecretFile, env:), and never in the files. With --prune, objects are deleted that no file has, of
those kinds that some file has. With --dry-run, the exit code is 2 if something would change.

Examples:
  lychgate export --to config
  lychgate apply -f config --dry-run
  lychgate apply -f config --prune --yes
  lychgate apply -f config --server https://id.example.com --client-id client_x1f8… --secret-env APPLY_SECRET
${serverHelp}`

interface ApplyFlags extends DestructiveFlags, ForceFlag, ServerFlags {
  readonly file: readonly string[]
  readonly prune?: true
  readonly dryRun?: true
}

/** Adds `lychgate apply`. */
export function addApplyCommand(program: Command): void {
  const command = program
    .command('apply')
    .description('bring users, groups, clients and upstreams in line with files')
    .requiredOption('-f, --file <path>', 'a YAML file, or a folder with some; may be repeated', collect)
    .option('--prune', 'delete what no file has, of the kinds that some file has')
    .option('--dry-run', 'only print what would change; the exit code is 2 if something would')
    .option('--print', 'print the links of invitations instead of sending them')
  addOperatorFlags(addForceFlag(addYesFlag(addServerFlags(command))), help).action(apply)
}

async function apply({ file, prune, dryRun, ...flags }: ApplyFlags): Promise<void> {
  const entries = readFiles(file)
  await withTarget(flags, { wanted: entries, writes: dryRun !== true }, async (target) => {
    const reports: Readonly<Record<string, unknown>>[] = []
    const tell = (members: Readonly<Record<string, unknown>>) => {
      if (flags.json) reports.push(members)
      else printMembers(members)
    }
    const setting: Setting = { target, faults: [], tell }
    const planned = plan(setting, await target.readState(entries), entries, prune === true)
    const changes = [...planned.kept, ...planned.pruned].flatMap((batch) => batch.changes)
    if (!flags.json) printChanges(changes)
    const isWritten = dryRun !== true && changes.length > 0
    if (isWritten) await writeAll(flags, planned)
    if (flags.json) printJson({ changes, applied: isWritten, told: reports })
    else process.stdout.write(`${summaryOf(changes, dryRun === true)}\n`)
    if (dryRun && changes.length > 0) throw new WouldChange()
  })
}

/** Runs a command on a running server, or on the store of this configuration. */
export async function withTarget<T>(
  flags: ServerFlags,
  use: Use,
  action: (target: Target) => Promise<T>,
): Promise<T> {
  return withOperator(flags, use, async (operator) => {
    // Loaded late: `--help` needs no operations.
    const { targetOf } = await import('./target.ts')
    return action(targetOf(operator, flags.print === true))
  })
}

/** What is written: first what is added and changed, then what is deleted. */
interface Plan {
  readonly kept: readonly Batch[]
  readonly pruned: readonly Batch[]
}

/** @throws {ConfigError} with everything that cannot be applied. */
function plan(setting: Setting, state: State, entries: Wanted, isPruned: boolean): Plan {
  const { groups, batches } = planGroups(setting, state.groups, entries.groups ?? [])
  const users = planUsers(setting, state, groups, entries.users ?? [])
  const clients = planClients(setting, state, groups, entries.clients ?? [])
  const upstreams = planUpstreams(setting, state, entries.upstreams ?? [])
  if (setting.faults.length > 0) throw new ConfigError(setting.faults)
  const pruned = !isPruned
    ? []
    : [
        entries.upstreams === undefined ? [] : pruneUpstreams(setting, state.upstreams, entries),
        entries.clients === undefined ? [] : pruneClients(setting, state.clients, entries),
        entries.users === undefined ? [] : pruneUsers(setting, state.users, users.named, entries),
        entries.groups === undefined ? [] : (pruneGroups(setting, groups, entries) ?? []),
      ].flat()
  return { kept: [...batches, ...users.batches, ...clients, ...upstreams], pruned }
}

async function writeAll(flags: DestructiveFlags, { kept: batches, pruned }: Plan): Promise<void> {
  if (pruned.length > 0) {
    const deleted = countOf(pruned.flatMap(({ changes }) => changes))
    await confirmOrAbort(flags, `Delete ${deleted}? Their sessions and tokens end.`, 'nothing was changed')
  }
  for (const { write } of batches) await write()
  for (const { finish } of batches) await finish?.()
  for (const { write } of pruned) await write()
}

const signs = { add: '+', change: '~', delete: '-' } as const
const verbs = { add: 'added', change: 'changed', delete: 'deleted' } as const

function printChanges(changes: readonly Change[]): void {
  for (const { action, kind, name, members } of changes) {
    process.stdout.write(`${signs[action]} ${kind} ${visible(name)}\n`)
    for (const difference of members) process.stdout.write(`    ${lineOf(action, difference)}\n`)
  }
}

/** Says what was done, or what a dry run would do: `2 groups and 1 user added, 1 client deleted`. */
function summaryOf(changes: readonly Change[], isDryRun: boolean): string {
  const parts = Object.entries(verbs).flatMap(([action, done]) => {
    const some = changes.filter((one) => one.action === action)
    return some.length === 0 ? [] : [`${countOf(some)} ${isDryRun ? 'would be ' : ''}${done}`]
  })
  return parts.join(', ') || 'nothing to change'
}

function lineOf(action: Change['action'], { member, before, after }: Difference): string {
  const shown = (value: unknown) => (value === undefined ? '(none)' : textOf(value))
  const values = action === 'change' ? `${shown(before)} → ${shown(after)}` : shown(after)
  return visible(`${member}: ${values}`)
}

function textOf(value: unknown): string {
  if (Array.isArray(value) && value.every((one) => typeof one === 'string'))
    return value.length === 0 ? '(none)' : value.join(', ')
  return typeof value === 'string' ? value : jsonText(value)
}

/** Counts by kind: `2 users and 1 client`. */
function countOf(changes: readonly Change[]): string {
  const counts = (['group', 'user', 'client', 'upstream'] as const).flatMap((kind) => {
    const count = changes.filter((one) => one.kind === kind).length
    return count === 0 ? [] : [`${count} ${kind}${count === 1 ? '' : 's'}`]
  })
  return new Intl.ListFormat('en').format(counts)
}
