/** The real command on a made-up checkout with a ledger, sources, tests and the results of a run. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { fingerprint, writeRunRecord } from '../../scripts/requirements/run-record.ts'

const script = new URL('../../scripts/requirements.ts', import.meta.url).pathname
const page = 'docs/conformance.md'
const overHttp = 'test/conformance/rfc1.test.ts'

const must = {
  id: 'rfc1-2.1-greets',
  spec: 'RFC 1',
  section: '2.1',
  level: 'MUST',
  party: 'AS',
  endpoint: 'token',
  tier: 1,
  statement: 'The server <greets> | is polite.',
  check: 'GET / -> 200',
  source: ['src/greeting.ts'],
}
const may = { ...must, id: 'rfc1-3-smiles', section: '3', level: 'MAY' }

interface Checkout {
  readonly rows?: readonly object[]
  /** The lines below each test file; a file that is not here did not run. */
  readonly ran?: Readonly<Record<string, readonly string[]>>
  /** Further files, written before the run. */
  readonly files?: Readonly<Record<string, string>>
}

const passing = (title: string) => [
  `# Subtest: ${title}`,
  '    ok 1 - it is so',
  '    1..1',
  `ok 1 - ${title} # time=1ms`,
]
const greets = { [overHttp]: passing('[rfc1-2.1-greets] a caller is greeted') }

function checkout(t: Test, { rows = [must], ran = greets, files = {} }: Checkout): string {
  const root = t.testdir({ '.tap': {}, test: { requirements: {} }, src: { 'greeting.ts': '' } })
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  write('test/requirements/rfc1.jsonl', rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
  for (const file of Object.keys(ran)) write(file, 'a test')
  for (const [path, text] of Object.entries(files)) write(path, text)
  const subtests = Object.entries(ran).map(([file, lines], index) =>
    [
      `# Subtest: ${file}`,
      ...lines.map((line) => `    ${line}`),
      `ok ${index + 1} - ${file} # time=2ms`,
    ].join('\n'),
  )
  write('.tap/results.tap', `TAP version 14\n${subtests.join('\n')}\n`)
  writeRunRecord(root, fingerprint(root))
  return root
}

function run(root: string, ...flags: readonly string[]) {
  return spawnSync(process.execPath, [script, '--root', root, ...flags], { encoding: 'utf8' })
}

/** Asserts that exactly these problems are printed, and that no page is written. */
function assertProblems(t: Test, root: string, problems: readonly string[]): void {
  const { status, stderr } = run(root)
  t.equal(status, 1)
  t.strictSame(stderr.trim().split('\n').sort(), [...problems].sort())
  t.notOk(existsSync(join(root, page)))
}

t.test('a proven clause is counted, and listed with its test and its source', async (t) => {
  const root = checkout(t, {})
  const { status, stdout, stderr } = run(root)
  t.equal(stderr, '')
  t.equal(status, 0)
  t.match(stdout, /^RFC 1 +1 +1 +0 +0 +0 +0$/m)
  const written = readFileSync(join(root, page), 'utf8')
  const [row] = written.split('\n').filter((line) => line.includes('rfc1-2.1-greets'))
  t.match(row, '[conformance/rfc1.test.ts](../test/conformance/rfc1.test.ts) a caller is greeted |')
  t.match(row, '[greeting.ts](../src/greeting.ts)')
  t.match(row, String.raw`The server \<greets\> \| is polite.`)
  t.equal(run(root, '--check').status, 0)
})

t.test('--check fails on a page that differs from the generated one, and does not write it', async (t) => {
  const root = checkout(t, {})
  t.match(run(root, '--check'), { status: 1, stderr: /run npm run requirements/ })
  run(root)
  writeFileSync(join(root, page), 'by hand')
  t.match(run(root, '--check'), { status: 1, stderr: /run npm run requirements/ })
  t.equal(readFileSync(join(root, page), 'utf8'), 'by hand')
})

t.test('--json prints the same data as JSON', async (t) => {
  const proven = JSON.parse(run(checkout(t, {}), '--json').stdout)
  t.match(proven, {
    documents: [{ document: 'RFC 1', clauses: 1, states: { 'over HTTP': 1, unproven: 0 } }],
    total: { clauses: 1 },
    clauses: [
      {
        id: 'rfc1-2.1-greets',
        state: 'over HTTP',
        proofs: [{ file: overHttp, title: 'a caller is greeted' }],
        source: ['src/greeting.ts'],
      },
    ],
  })
  t.strictSame(proven.problems, [])
  const { status, stdout } = run(checkout(t, { ran: {} }), '--json')
  t.equal(status, 1)
  t.match(JSON.parse(stdout).problems, [/no passing test/])
})

t.test('each error of a proof is a problem', async (t) => {
  const wrong = (name: string) => ({ ...must, id: `rfc1-2.1-${name}` })
  const lines = (name: string, own: string, ...within: readonly string[]) => {
    const title = `[rfc1-2.1-${name}] the test`
    const opened = within.length > 0 ? [`# Subtest: ${title}`, ...within.map((line) => `    ${line}`)] : []
    return [...opened, own.replace('…', `1 - ${title}`)]
  }
  const names = ['fails', 'skips', 'waits', 'skips-a-part', 'asserts-nothing', 'looks-inside']
  const root = checkout(t, {
    rows: [must, ...names.map(wrong)],
    ran: {
      ...greets,
      'test/conformance/wrong.test.ts': [
        ...passing('[rfc1-2.1-greats] another caller'),
        ...lines('fails', 'not ok …', 'not ok 1 - it is so', '1..1'),
        // A test quoted in a diagnostic is no test.
        ...['  ---', '  # Subtest: [rfc1-2.1-quoted] quoted', '  ok 1 - [rfc1-2.1-quoted] quoted', '  ...'],
        ...lines('skips', 'ok … # SKIP not today'),
        ...lines('waits', 'ok … # TODO'),
        ...lines('skips-a-part', 'ok …', 'ok 1 - a', 'ok 2 - b # SKIP', '1..2'),
        ...lines('asserts-nothing', 'ok … # time=1ms', '1..0'),
      ],
      'test/domain/inside.test.ts': passing('[rfc1-2.1-looks-inside] it is so'),
    },
    files: {
      'src/refusal.ts': "throw { rule: 'lychgate-own' }; throw { rule: 'rfc1-9-gone' }",
      'src/condition.ts': "const rule = early ? 'rfc1-2.1-greets' : 'rfc1-2.1-greats'",
    },
  })
  const told = 'test/conformance/wrong.test.ts: the test'
  assertProblems(t, root, [
    'rfc1-2.1-greats: is in no ledger: test/conformance/wrong.test.ts: another caller',
    'rfc1-2.1-greats: is in no ledger: rule of an error in src/condition.ts',
    'rfc1-9-gone: is in no ledger: rule of an error in src/refusal.ts',
    `rfc1-2.1-fails: its proof failed: ${told}`,
    `rfc1-2.1-skips: its proof was skipped, in whole or in part: ${told}`,
    `rfc1-2.1-waits: its proof was skipped, in whole or in part: ${told}`,
    `rfc1-2.1-skips-a-part: its proof was skipped, in whole or in part: ${told}`,
    `rfc1-2.1-asserts-nothing: its proof asserts nothing: ${told}`,
    ...['fails', 'skips', 'waits', 'skips-a-part', 'asserts-nothing'].map(
      (name) => `rfc1-2.1-${name}: no passing test or assertion names it`,
    ),
    'rfc1-2.1-looks-inside: its check is over HTTP, and it is proven only by test/domain/inside.test.ts, which is white-box',
  ])
})

t.test('each error of a row is a problem', async (t) => {
  const rows: Readonly<Record<string, object>> = {
    unproven: {},
    'unproven-not': { level: 'MUST NOT' },
    'declined-proven': { declined: 'no' },
    'planned-proven': { planned: 'later' },
    'declined-planned': { declined: 'no', planned: 'yes' },
    'source-gone': { source: ['src/gone.ts'] },
    'no-source': { source: undefined },
    stray: { level: 'MAY', spec: 'RFC 2' },
    odd: { proven: true },
  }
  const made = Object.entries(rows).map(([name, members]) => ({
    ...must,
    id: `rfc1-2.1-${name}`,
    ...members,
  }))
  const proven = ['declined-proven', 'planned-proven', 'source-gone', 'no-source']
  const root = checkout(t, {
    rows: [must, must, ...made],
    ran: { [overHttp]: ['greets', ...proven].flatMap((name) => passing(`[rfc1-2.1-${name}] it is so`)) },
  })
  assertProblems(t, root, [
    'rfc1-2.1-greets: is in the ledger twice',
    'rfc1-2.1-unproven: no passing test or assertion names it',
    'rfc1-2.1-unproven-not: no passing test or assertion names it',
    `rfc1-2.1-declined-proven: is declined, and ${overHttp} proves it`,
    `rfc1-2.1-planned-proven: is planned, and ${overHttp} proves it`,
    'rfc1-2.1-declined-planned: is both declined and planned',
    'rfc1-2.1-source-gone: there is no src/gone.ts',
    'rfc1-2.1-no-source: is proven, and names no source',
    'rfc1-2.1-stray: is of another document than the rest of test/requirements/rfc1.jsonl',
    'test/requirements/rfc1.jsonl:11: proven: Unexpected property',
  ])
})

t.test(
  'a test names at most four clauses, and a MUST has an assertion or a title that names only it',
  async (t) => {
    const names = ['one', 'two', 'three', 'four', 'five']
    const titled = (ids: readonly string[]) => `${ids.map((name) => `[rfc1-2.1-${name}]`).join(' ')} it is so`
    const assertions = (title: string, ...messages: readonly string[]) => [
      `# Subtest: ${title}`,
      ...messages.map((message, index) => `    ok ${index + 1} - ${message}`),
      `    1..${messages.length}`,
      `ok 1 - ${title}`,
    ]
    const five = checkout(t, {
      rows: [must, ...names.map((name) => ({ ...must, id: `rfc1-2.1-${name}` }))],
      ran: { [overHttp]: [...passing('[rfc1-2.1-greets] hello'), ...passing(titled(names))] },
    })
    assertProblems(t, five, [
      `${overHttp}: names 5 clauses, and may name 4: it is so`,
      ...names.map(
        (name) =>
          `rfc1-2.1-${name}: no assertion names it alone, and each title names others too: ${overHttp}: it is so`,
      ),
    ])
    const [one, two, three] = names.map((name) => `[rfc1-2.1-${name}]`)
    const four = checkout(t, {
      rows: [
        ...names.slice(0, 3).map((name) => ({ ...must, id: `rfc1-2.1-${name}` })),
        { ...must, id: 'rfc1-2.1-four', level: 'SHOULD' },
      ],
      ran: {
        [overHttp]: [
          ...assertions(titled(['one', 'two', 'four']), `${one} status`, `${two} body`, 'unnamed'),
          ...assertions('no ids', `${three} header`, `${three} body`),
        ],
      },
    })
    const { status, stdout, stderr } = run(four, '--json')
    t.equal(stderr, '')
    t.equal(status, 0)
    const { clauses } = JSON.parse(stdout)
    t.strictSame(
      clauses.map(({ proofs }: { proofs: { title: string }[] }) => proofs.map(({ title }) => title)),
      [['it is so'], ['it is so'], ['no ids'], ['it is so']],
    )
  },
)

t.test(
  'only tests of the listed folders prove a clause over HTTP, and white-box checks do not',
  async (t) => {
    const inside = { ...must, check: 'white-box: the log' }
    for (const [file, row, state] of [
      [overHttp, must, 'over HTTP'],
      [overHttp, inside, 'white-box'],
      ['test/domain/a.test.ts', inside, 'white-box'],
      ['test/new/a.test.ts', inside, 'white-box'],
    ] as const) {
      const root = checkout(t, { rows: [row], ran: { [file]: passing('[rfc1-2.1-greets] hello') } })
      const { clauses, problems } = JSON.parse(run(root, '--json').stdout)
      t.strictSame([clauses[0].state, problems], [state, []], file)
    }
  },
)

t.test('a clause may be declined, planned, white-box, or a MAY without proof', async (t) => {
  const rows = [
    { ...must, id: 'rfc1-2.1-declined', declined: 'it greets users only' },
    { ...must, id: 'rfc1-2.1-planned', planned: 'the hall' },
    { ...must, id: 'rfc1-2.1-inside', check: 'white-box: it means it' },
    may,
  ]
  const root = checkout(t, {
    rows,
    ran: { 'test/domain/a.test.ts': passing('[rfc1-2.1-inside] it means it') },
  })
  const { status, stdout, stderr } = run(root)
  t.equal(stderr, '')
  t.equal(status, 0)
  t.match(stdout, /^RFC 1 +4 +0 +1 +1 +1 +1$/m)
  const written = readFileSync(join(root, page), 'utf8')
  t.match(written, /rfc1-2\.1-declined .*\*\*declined\*\* \| it greets users only/)
  t.match(written, /rfc1-2\.1-planned .* planned \| the hall/)
})

t.test('titles are read with TAP escapes, all their ids, and at any depth', async (t) => {
  const title = String.raw`[rfc1-2.1-greets] [rfc1-3-smiles] a \# in \\ a title`
  const lines = [
    '# Subtest: with a server',
    ...passing(title).map((line) => `    ${line}`),
    '    1..1',
    'ok 1 - with a server',
  ]
  const root = checkout(t, { rows: [must, may], ran: { [overHttp]: lines } })
  const { clauses } = JSON.parse(run(root, '--json').stdout)
  for (const { state, proofs } of clauses) {
    t.equal(state, 'over HTTP')
    t.strictSame(proofs, [{ file: overHttp, title: String.raw`a # in \ a title` }])
  }
})

t.test('results of other files are rejected', async (t) => {
  const rejections: Readonly<Record<string, readonly [(root: string) => void, RegExp]>> = {
    'there are none': [
      (root) => rmSync(join(root, '.tap/results.tap')),
      /^there are no results; run npm test/,
    ],
    'an unfinished run': [(root) => rmSync(join(root, '.tap/run.json')), /^the last run was not finished/],
    'results of another run': [
      (root) => writeFileSync(join(root, '.tap/results.tap'), 'TAP version 14\n'),
      /^the results are not those/,
    ],
    'a source changed': [
      (root) => writeFileSync(join(root, 'src/greeting.ts'), 'changed'),
      /^changed since the tests began: src\/greeting\.ts;/,
    ],
    'a test is new': [
      (root) => writeFileSync(join(root, 'test/new.test.ts'), 'new'),
      /^changed since the tests began: test\/new\.test\.ts;/,
    ],
  }
  for (const [name, [change, problem]] of Object.entries(rejections)) {
    t.test(name, async (t) => {
      const root = checkout(t, {})
      change(root)
      const { status, stderr } = run(root)
      t.equal(status, 1)
      t.match(stderr, problem)
      t.notOk(existsSync(join(root, page)))
    })
  }
  t.test('a run of only some tests', async (t) => {
    const root = checkout(t, { files: { 'test/left/out.test.ts': 'a test' } })
    assertProblems(t, root, [
      'the last run left out 1 test files (test/left/out.test.ts); run npm test, all of it, first',
    ])
  })
  t.test('a corrected row does not require another run', async (t) => {
    const root = checkout(t, {})
    writeFileSync(
      join(root, 'test/requirements/rfc1.jsonl'),
      JSON.stringify({ ...must, check: 'GET / -> 204' }),
    )
    t.equal(run(root).status, 0)
  })
})

t.test('--help explains the options, and so does an unknown option', async (t) => {
  t.match(run(checkout(t, {}), '--help'), { status: 0, stdout: /--check.*--json/s })
  t.match(run(checkout(t, {}), '--wrong'), { status: 64, stderr: /--wrong.*--check/s })
})
