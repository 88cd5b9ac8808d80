import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import type { Rejection } from '../domain/model.ts'
import { type Explanation, explainRejection, explanationOf, type Facts } from '../observability/explain.ts'
import { CommandFailed, unlessMissing } from './failure.ts'
import { addAnywhereFlags, type ServerFlags } from './files/open-target.ts'
import { type Json, withOperator } from './operate.ts'
import { instant, printJson, printList, printMembers, visible } from './print.ts'

const help = `
Without an argument it lists the newest rejected requests. A request id is in the x-request-id header of every
error response, on its page, and in the log. A token on the command line is visible in process lists and in the
history of the shell: write - and paste a valid token, or pipe it.

Examples:
  lychgate explain 0f9d3c6e-7a0b-4c55-9f0e-5d9b6f8f4a52
  lychgate explain - < token.txt
  lychgate explain --json lyc_refresh_…
`

/** Adds `lychgate explain`: why a request was rejected, or why a token is not active. */
export function addExplainCommand(program: Command): void {
  const explain = program
    .command('explain [request_id_or_token]')
    .description('explain why a request was rejected, or why a token is not active; - reads standard input')
  addAnywhereFlags(explain, help).action(explainCommand)
}

const requestId = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

/** Loaded late: `--help` needs none of it. */
const operations = () => import('../admin/operations/activity.ts')
const reads = ['admin:audit:read']

async function explainCommand(given: string | undefined, flags: ServerFlags): Promise<void> {
  if (given === undefined) return listRejections(flags)
  const asked = (given === '-' ? await text(process.stdin) : given).trim()
  if (asked === '') throw new CommandFailed('there is nothing to explain')
  await withOperator(flags, reads, async ({ perform }) => {
    const { readRejection, explainOneToken } = await operations()
    if (requestId.test(asked))
      show(explainRejection(asRejection(await notKept(perform(readRejection, { request_id: asked })))), flags)
    // `as`: as the operation describes it.
    else show(explanationOf((await perform(explainOneToken, {}, { token: asked })) as never), flags)
  })
}

/** Returns a rejection as the operation describes it. */
function asRejection(described: Json): Rejection {
  return described as unknown as Rejection
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
    printList(flags, rows.map(asRejection), (rejection) => rejection, lineOf)
  })
}

function notKept(found: Promise<Json>): Promise<Json> {
  return unlessMissing(
    found,
    'no rejected request with this id is stored: it succeeded, its path or method does not exist (404, 405), it is older than the newest ones that are kept (refusalsKept), or too many came at once or from its network; the log has all of them',
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
