import { type Command, Option } from 'commander'
import { type AuditEvent, type AuditEventName, auditEventNames, type Seconds } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import type { AuditFilter, Store } from '../storage/store.ts'
import { systemClock } from '../system/system.ts'
import { ifFound } from './failure.ts'
import { addServerFlags, type ServerFlags, serverHelp } from './files/open-target.ts'
import { isSub } from './find.ts'
import { addLocationFlags, parseLimit, parseSpan } from './flags.ts'
import { type Json, type Operator, withOperator } from './operate.ts'
import { instant, jsonText, printColumns, printJson } from './print.ts'

interface AuditFlags extends ServerFlags {
  readonly since?: Seconds
  readonly until?: Seconds
  readonly user?: string
  readonly client?: string
  readonly event?: AuditEventName
  readonly limit: number
  readonly follow?: true
  readonly json?: true
  readonly csv?: true
}

/** Which events are listed. */
interface ListedEvents extends AuditFilter {
  readonly until?: Seconds
}

const help = `
Shows networks, not addresses, and for operators the user and the machine. Rotated refresh tokens and API calls are
not logged. Events are kept for auditSeconds.

Examples:
  lychgate audit --since 1d
  lychgate audit --user alice --event sign-in-failed
  lychgate audit --client client_x1f8… --limit 1000 --json
  lychgate audit --since 4w --until 2w --limit 10000 --csv > log.csv
  lychgate audit --follow --json | grep --line-buffered sign-in-failed
`

/** Adds `lychgate audit`: who did what, when and from where. */
export function addAuditCommand(program: Command): void {
  const audit = program
    .command('audit')
    .description('list who signed in, consented, registered, revoked or changed what; the newest last')
    .option('--since <duration>', 'only events of this last period: 90s, 15m, 12h, 1d or 4w', parseSpan)
    .addOption(
      new Option('--until <duration>', 'only events that are at least this old')
        .argParser(parseSpan)
        .conflicts('follow'),
    )
    .option('--user <name>', 'only about this user: user name, email address or sub')
    .option('--client <client_id>', 'only about this client')
    .addOption(new Option('--event <name>', 'only this event').choices(auditEventNames))
    .option('--limit <number>', 'at most this many, newest first', parseLimit, 100)
    .option('--follow', 'print new events as they occur, until interrupted')
    .option('--json', 'print JSON; with --follow one event per line')
    .addOption(new Option('--csv', 'print CSV, RFC 4180').conflicts(['json', 'follow']))
    .addHelpText('after', serverHelp + help)
  addServerFlags(addLocationFlags(audit)).action(auditCommand)
}

async function auditCommand(flags: AuditFlags): Promise<void> {
  await withOperator(flags, ['admin:audit:read', 'admin:users:read'], async (operator) => {
    const filter = await filterOf(flags, operator)
    const log = await logOf(operator)
    if (!flags.follow) return print(await log.audit(filter), operator, flags)
    await follow(log, filter, systemClock, (events) => print(events, operator, flags))
  })
}

/** Returns the audit log of a store or a server. */
async function logOf({
  list,
}: Operator): Promise<{ audit(which: ListedEvents): Promise<readonly AuditEvent[]> }> {
  const { listEvents } = await import('../admin/operations/activity.ts')
  return {
    async audit({ since, until, name: event, userId: sub, clientId: client_id, limit }) {
      const times = {
        since: since > 0 ? `${since}` : undefined,
        until: until === undefined ? undefined : `${until}`,
      }
      const filter = omitUndefined({ event, sub, client_id, ...times })
      return (await list(listEvents, {}, filter, limit)).toReversed().map(eventOf)
    },
  }
}

function eventOf({ event, sub, client_id, ...rest }: Json): AuditEvent {
  return { ...rest, ...omitUndefined({ name: event, userId: sub, clientId: client_id }) } as AuditEvent // as it is described
}

async function print(
  events: readonly AuditEvent[],
  operator: Operator,
  { json, follow, csv }: AuditFlags,
): Promise<void> {
  if (csv) {
    const { csvHeader, eventAsCsv } = await import('../admin/operations/event-lines.ts')
    process.stdout.write(csvHeader + events.map(eventAsCsv).join(''))
    return
  }
  const names = await namesOf(events, operator)
  const described = events.map((event) => describe(event, names))
  if (!json) printColumns(events.map((event) => lineOf(event, names)))
  else if (!follow) printJson(described)
  else for (const event of described) process.stdout.write(`${jsonText(event)}\n`)
}

async function filterOf(
  { since, until, user, client, event, limit }: AuditFlags,
  { findUser }: Operator,
): Promise<ListedEvents> {
  const now = systemClock()
  return {
    since: since === undefined ? 0 : now - since,
    ...(until !== undefined && { until: now - until }),
    name: event,
    // A removed user has no name any more, but can be found by `sub`.
    userId: user === undefined || isSub(user) ? user : (await findUser(user)).sub,
    clientId: client,
    limit,
  }
}

type Names = ReadonlyMap<string, string>

/** Returns user names by `sub`. The log does not contain names, so they disappear with their users. */
async function namesOf(events: readonly AuditEvent[], { perform }: Operator): Promise<Names> {
  const { readUser } = await import('../admin/operations/users.ts')
  const names = new Map<string, string>()
  for (const sub of new Set(events.flatMap(({ userId }) => userId ?? []))) {
    const user = await ifFound(perform(readUser, { sub }))
    if (user !== undefined) names.set(sub, String(user['username']))
  }
  return names
}

function describe({ name, at, by, from, userId, clientId, facts }: AuditEvent, names: Names) {
  return {
    at,
    event: name,
    by,
    ...(from !== undefined && { from }),
    ...(userId !== undefined && { sub: userId, username: names.get(userId) }),
    ...(clientId !== undefined && { client_id: clientId }),
    ...facts,
  }
}

function lineOf({ name, at, by, from = '', userId, clientId, facts }: AuditEvent, names: Names): string[] {
  const who = userId === undefined ? '' : (names.get(userId) ?? userId)
  const rest = Object.entries(facts).map(([fact, value]) => `${fact}=${readable(fact, value)}`)
  return [instant(at), name, by, from, who, clientId ?? '', rest.join(' ')]
}

function readable(fact: string, value: string | number): string {
  if (typeof value === 'number' && fact.endsWith('At'))
    return instant(value).replaceAll(' ', 'T').replace('TUTC', 'Z')
  return `${value}`.includes(' ') ? `"${value}"` : `${value}`
}

const pollMilliseconds = 1000
/** A transaction may commit after a later one, and clocks of several servers differ a little. */
const overlapSeconds = 30
const mostAtOnce = 10_000

/** Prints the events that exist, then new ones as they occur, until `until` aborts. */
export async function follow(
  store: Pick<Store, 'audit'>,
  filter: AuditFilter,
  clock: () => Seconds,
  show: (events: readonly AuditEvent[]) => Promise<void>,
  until?: AbortSignal,
): Promise<void> {
  const latest = () =>
    store.audit({ ...filter, since: Math.max(filter.since, clock() - overlapSeconds), limit: mostAtOnce })
  const before = await latest()
  const first = await store.audit(filter)
  await show(first)
  // Events beyond the limit are not new either.
  let shown: readonly AuditEvent[] = [...first, ...withoutThose(before, first)]
  while (!until?.aborted) {
    await new Promise((resolve) => setTimeout(resolve, pollMilliseconds))
    const events = await latest()
    const newer = withoutThose(events, shown)
    if (newer.length > 0) await show(newer)
    shown = events
  }
}

/** Returns the events that are not in `shown`. Events have no id outside of the store: two equal ones count as two. */
function withoutThose(events: readonly AuditEvent[], shown: readonly AuditEvent[]): readonly AuditEvent[] {
  const left = new Map<string, number>()
  for (const event of shown.map((one) => JSON.stringify(one))) left.set(event, (left.get(event) ?? 0) + 1)
  return events.filter((event) => {
    const key = JSON.stringify(event)
    const count = left.get(key) ?? 0
    left.set(key, count - 1)
    return count <= 0
  })
}
