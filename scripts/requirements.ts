/**
 * Ties every clause of the ledger (test/requirements) to a test that ran: reads the results `npm test` left, fails on
 * whatever is not so, prints a table, and writes docs/conformance.md.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { count, countRows } from './requirements/counts.ts'
import { type DocumentVerdict, judge } from './requirements/judge.ts'
import { readLedger } from './requirements/ledger.ts'
import { conformancePage } from './requirements/page.ts'
import { readRules } from './requirements/rules.ts'
import { resultsFile, testFiles, whyStale } from './requirements/run-record.ts'
import { readTap } from './requirements/tap.ts'

const usage = `Usage: npm run requirements -- [options]

  --check        compare docs/conformance.md instead of writing it
  --json         print the verdicts as JSON
  --root <path>  the checkout to read, instead of this one
  --help         print this
`

const options = readOptions()
if (options.help) process.stdout.write(usage)
else process.exitCode = answer(options)

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        check: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
        root: { type: 'string', default: fileURLToPath(new URL('..', import.meta.url)) },
      },
    })
    return values
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n\n${usage}`)
    process.exit(2)
  }
}

function answer({ root, check, json }: ReturnType<typeof readOptions>): 0 | 1 {
  const { documents, problems } = judgeRun(root)
  const drift = problems.length === 0 ? keepPage(root, conformancePage(documents), check) : undefined
  const wrong = drift === undefined ? problems : [drift]
  if (json) process.stdout.write(`${JSON.stringify(machineForm(documents, wrong), null, 2)}\n`)
  else if (documents.length > 0) process.stdout.write(`${aligned(countRows(documents))}\n`)
  for (const problem of wrong) process.stderr.write(`${problem}\n`)
  return wrong.length === 0 ? 0 : 1
}

/** Without results of these very files there is nothing to judge by. */
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
  const judged = judge(ledger.documents, run.tests, readRules(root, [...prefixes]))
  return { documents: judged.documents, problems: [...ledger.problems, ...judged.problems] }
}

/** Writes the page, or says that it is not the one that is there. */
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
