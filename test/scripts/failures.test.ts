/** The failures that are read from the TAP of a run. */
import t from 'tap'
import { describeFailure, failuresIn } from '../../scripts/failures.ts'

const run = `TAP version 14
1..4
# Subtest: test/a.test.ts
    # Subtest: passes
        ok 1 - should be equal
        1..1
    ok 1 - passes # time=1ms

    # Subtest: differs
        # Subtest: inside
            not ok 1 - is two
              ---
              compare: ===
              source: |
                not ok 7 - a line of the test's own source
              diff: |
                -2
                +1
              ...

            not ok 2 - is three
            1..2
        not ok 1 - inside # time=2ms
          ---
          at:
            lineNumber: 3
          ...

        1..1
    not ok 2 - differs # time=3ms

    1..2
    # time=4ms
not ok 1 - test/a.test.ts # time=5ms
  ---
  exitCode: 1
  ...

# Subtest: test/b.test.ts
    # Subtest: passes too
        ok 1 - should be equal
        1..1
    ok 1 - passes too # time=1ms
    1..1
not ok 2 - test/b.test.ts # time=6ms
  ---
  exitCode: 7
  ...

ok 3 - test/c.test.ts # time=7ms
not ok 4 - timeout!
  ---
  expired: test/d.test.ts
  ...
`

t.test('a failure is reported where it happened, and not again by the tests around it', async (t) => {
  t.same(failuresIn(run), [
    {
      path: ['test/a.test.ts', 'differs', 'inside', 'is two'],
      diagnostic: [
        'compare: ===',
        'source: |',
        "  not ok 7 - a line of the test's own source",
        'diff: |',
        '  -2',
        '  +1',
      ],
    },
    { path: ['test/a.test.ts', 'differs', 'inside', 'is three'], diagnostic: [] },
    { path: ['test/b.test.ts'], diagnostic: ['exitCode: 7'] },
    { path: ['timeout!'], diagnostic: ['expired: test/d.test.ts'] },
  ])
})

t.test('a run without failures reports nothing', async (t) => {
  t.same(
    failuresIn(
      'TAP version 14\n# Subtest: test/a.test.ts\n    ok 1 - is so\n    1..1\nok 1 - test/a.test.ts\n',
    ),
    [],
  )
})

t.test('a failure is described on as many lines as fit a screen', async (t) => {
  t.equal(
    describeFailure({ path: ['test/a.test.ts', 'differs', 'is two'], diagnostic: ['diff: |', '  -2', ''] }),
    'not ok: test/a.test.ts > differs > is two\n  diff: |\n    -2\n\n',
  )
  const long = describeFailure({ path: ['x'], diagnostic: Array.from({ length: 100 }, () => 'line') })
  t.match(long, /^not ok: x\n(?: {2}line\n){40} {2}\(60 lines more\)\n$/)
})
