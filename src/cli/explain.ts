import { text } from 'node:stream/consumers'
import { type Command, InvalidArgumentError } from 'commander'
import { requestIdPattern } from '../domain/errors.ts'
import { isObject } from '../domain/is-object.ts'
import type { Rejection } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import {
  type ExplainedToken,
  type Explanation,
  explainRejection,
  explanationOf,
  type Facts,
} from '../observability/explain.ts'
import { instantOf } from '../system/system.ts'
import { explainAccess } from './access.ts'
import { CommandFailed, unlessMissing } from './failure.ts'
import { addAnywhereFlags, type ServerFlags } from './files/open-target.ts'
import { type Json, withOperator } from './operate.ts'
import { instant, printJson, printList, printMembers, visible } from './print.ts'

const help = `
Without an argument it lists the newest rejected requests. A request id is in the x-request-id header of every
error response, on its page, and in the log; the reference in an error_description is its beginning. A token on the command line is visible in process lists and in the
history of the shell: write - and paste a valid token, or pipe it.

Examples:
  lychgate explain 0f9d3c6e-7a0b-4c55-9f0e-5d9b6f8f4a52
  lychgate explain 0f9d3c6e
  lychgate explain - < token.txt
  lychgate explain --json lyc_refresh_…
`

const accessHelp = `
Rules: whether the user and the app are locked, what the user can sign in with, the groups of the app, and the
policy of sign-ins. For an earlier time the facts are those of the audit log; what it does not record, such as settings,
is not known, and so is everything before its retention (auditSeconds).

Examples:
  lychgate explain access carol client_2b0c…
  lychgate explain access carol client_2b0c… --at 2027-01-31T09:00:00Z
`

function parseInstant(text: string): number {
  const at = instantOf(text)
  if (at === undefined) throw new InvalidArgumentError('It must be a time such as 2027-01-31T09:00:00Z.')
  return at
}

/** Adds `lychgate explain`: why a request was rejected, or why a token is not active. */
export function addExplainCommand(program: Command): void {
  const explain = program
    .command('explain [request_id_or_token]')
    .description('explain why a request was rejected, or why a token is not active; - reads standard input')
  addAnywhereFlags(explain, help).action(explainCommand)
  const access = explain
    .command('access <user> <client>')
    .description('explain which rules let a user use an app, or do not')
    .option('--at <time>', 'at an earlier time, as the audit log has it: 2027-01-31T09:00:00Z', parseInstant)
  addAnywhereFlags(access, accessHelp).action((user: string, client: string, _flags, command: Command) =>
    // The flags that both commands have are those of the first.
    explainAccess(user, client, command.optsWithGlobals()),
  )
}

/** Loaded late: `--help` needs none of it. */
const operations = () => import('../admin/operations/activity.ts')
const reads = ['admin:audit:read']

async function explainCommand(given: string | undefined, flags: ServerFlags): Promise<void> {
  if (given === undefined) return listRejections(flags)
  const asked = (given === '-' ? await text(process.stdin) : given).trim()
  if (asked === '') throw new CommandFailed('there is nothing to explain')
  await withOperator(flags, reads, async ({ perform }) => {
    const { readRejection, explainOneToken } = await operations()
    if (requestIdPattern.test(asked))
      show(explainRejection(rejectionOf(await notKept(perform(readRejection, { request_id: asked })))), flags)
    else show(explanationOf(tokenOf(await perform(explainOneToken, {}, { token: asked }))), flags)
  })
}

/** Reads a rejection as the operation describes it. */
function rejectionOf({ id, at, method, path, status, error, why, rule, ...others }: Json): Rejection {
  const { stored, received, client } = others
  return {
    ...{ id: String(id), at: Number(at), method: String(method), path: String(path) },
    ...{ status: Number(status), error: String(error), why: String(why), rule: String(rule) },
    ...omitUndefined({ stored: factOf(stored), received: factOf(received) }),
    ...(client !== undefined && { client: String(client) }),
  }
}

/** Reads what was found out about a token as the operation describes it. */
function tokenOf({ kind, active, why, rule, received, stored }: Json): ExplainedToken {
  return {
    kind: String(kind),
    active: active === true,
    ...(why !== undefined && { why: String(why) }),
    ...(rule !== undefined && { rule: String(rule) }),
    received: factsOf(received),
    stored: factsOf(stored),
  }
}

function factsOf(members: unknown): Facts {
  if (!isObject(members)) return {}
  return Object.fromEntries(Object.entries(members).map(([name, fact]) => [name, factOf(fact)]))
}

function factOf(fact: unknown): Facts[string] {
  if (fact === undefined || typeof fact === 'number') return fact
  return Array.isArray(fact) ? fact.map(String) : String(fact)
}

/** How many rejected requests are listed. */
const listed = 25

async function listRejections(flags: ServerFlags): Promise<void> {
  await withOperator(flags, reads, async ({ list }) => {
    const rows = await list((await operations()).listRejections, {}, {}, listed)
    const lineOf = ({ id, at, method, path, status, error }: Rejection) => [
      id,
      instant(at),
      `${method} ${visible(path)}`,
      `${status} ${error}`,
    ]
    printList(flags, rows.map(rejectionOf), (rejection) => rejection, lineOf)
  })
}

function notKept(found: Promise<Json>): Promise<Json> {
  return unlessMissing(
    found,
    'no rejected request with this id is stored: it succeeded, its path or method does not exist (404, 405), it is older than the newest ones that are kept (rejectionsKept), or too many came at once or from its network; the log has all of them',
  )
}

function show(
  { headline, why, rule, clause, json, sections }: Explanation,
  { json: asJson }: ServerFlags,
): void {
  if (asJson) {
    printJson(json)
    return
  }
  process.stdout.write(`${visible(headline)}\n`)
  const lines: Record<string, unknown> = {
    why: why === undefined ? undefined : readableInstants(why),
    rule,
    clause: clause && [clause.name, clause.url].filter(Boolean).join('  '),
  }
  printMembers(lines)
  for (const [title, facts] of Object.entries(sections)) {
    const readable = Object.entries(facts).map(([name, fact]) => [name, readableFact(name, fact)])
    if (readable.every(([, fact]) => fact === undefined)) continue
    process.stdout.write(title === '' ? '\n' : `\n${title}\n`)
    printMembers(Object.fromEntries(readable))
  }
}

/** Instants are seconds since the epoch inside, and a date on output. */
function readableFact(name: string, fact: Facts[string]): string | undefined {
  if (fact === undefined) return undefined
  if (typeof fact === 'number' && (name === 'at' || name.endsWith('At'))) return instant(fact)
  return visible([fact].flat().join(' '))
}

function readableInstants(text: string): string {
  return text.replaceAll(/\b\d{10}\b/g, (seconds) => instant(Number(seconds)))
}
