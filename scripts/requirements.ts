/**
 * Ties every clause of the ledger (test/requirements) to a test that ran: reads the results of the last `npm test`,
 * fails on each clause that is not proven, prints a table, and writes docs/conformance.md.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { scriptCommand } from './command.ts'
import { count, countRows } from './requirements/counts.ts'
import { type DocumentVerdict, judge } from './requirements/judge.ts'
import { readLedger } from './requirements/ledger.ts'
import { conformancePage } from './requirements/page.ts'
import { readRules } from './requirements/rules.ts'
import { resultsFile, testFiles, whyStale } from './requirements/run-record.ts'
import { readTap } from './requirements/tap.ts'

interface Options {
  readonly check: boolean
  readonly json: boolean
  readonly root: string
}

process.exitCode = response(
  scriptCommand(
    'requirements',
    'Judges every clause of the ledger by the last npm test, and writes docs/conformance.md.',
  )
    .option('--check', 'compare docs/conformance.md instead of writing it', false)
    .option('--json', 'print the verdicts as JSON', false)
    .option('--root <path>', 'the checkout to read', fileURLToPath(new URL('..', import.meta.url)))
    .parse()
    .opts<Options>(),
)

function response({ root, check, json }: Options): 0 | 1 {
  const { documents, problems } = judgeRun(root)
  const drift =
    problems.length === 0
      ? keepPage(root, conformancePage(documents, resultsOfOthers(root)), check)
      : undefined
  const wrong = drift === undefined ? problems : [drift]
  if (json) process.stdout.write(`${JSON.stringify(machineForm(documents, wrong), null, 2)}\n`)
  else if (documents.length > 0) process.stdout.write(`${aligned(countRows(documents))}\n`)
  for (const problem of wrong) process.stderr.write(`${problem}\n`)
  return wrong.length === 0 ? 0 : 1
}

/** Judges the last run, if it ran all tests on the current files. */
function judgeRun(root: string): {
  readonly documents: readonly DocumentVerdict[]
  readonly problems: readonly string[]
} {
  const why = whyStale(root)
  if (why !== undefined) return { documents: [], problems: [`${why}; run npm test, all of it, first`] }
  const run = readTap(readFileSync(resultsFile(root), 'utf8'))
  const left = testFiles(root).filter((file) => !run.files.includes(file))
  if (left.length > 0) {
    const named = left.slice(0, 5).join(', ')
    return {
      documents: [],
      problems: [
        `the last run left out ${left.length} test files (${named}); run npm test, all of it, first`,
      ],
    }
  }
  const ledger = readLedger(root)
  const prefixes = new Set(
    ledger.documents.flatMap(({ clauses }) =>
      clauses.map(({ id, section }) => id.split(`-${section}-`)[0] ?? ''),
    ),
  )
  const judged = judge(ledger.documents, run.proofs, readRules(root, [...prefixes]))
  return { documents: judged.documents, problems: [...ledger.problems, ...judged.problems] }
}

/** What the OpenID Foundation's suite found when it was last run by hand. */
function resultsOfOthers(root: string): string {
  const file = join(root, 'test/requirements/openid-suite.md')
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

/** Writes the page, or returns what is wrong if it differs from the existing one. */
function keepPage(root: string, page: string, check: boolean): string | undefined {
  const file = join(root, 'docs/conformance.md')
  if (!check) {
    mkdirSync(join(root, 'docs'), { recursive: true })
    writeFileSync(file, page)
    return undefined
  }
  if (existsSync(file) && readFileSync(file, 'utf8') === page) return undefined
  return 'docs/conformance.md differs from the ledger and the tests: run npm run requirements'
}

function machineForm(documents: readonly DocumentVerdict[], problems: readonly string[]) {
  const clauses = documents.flatMap(({ verdicts }) =>
    verdicts.map(({ clause, state, proofs }) => ({
      id: clause.id,
      state,
      proofs: proofs.map(({ file, title }) => ({ file, title })),
      source: clause.source ?? [],
    })),
  )
  return { ...count(documents), clauses, problems }
}

function aligned(rows: readonly (readonly string[])[]): string {
  const widthOf = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0))
  return rows
    .map((row) =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widthOf(column)) : cell.padStart(widthOf(column))))
        .join('  '),
    )
    .join('\n')
}
