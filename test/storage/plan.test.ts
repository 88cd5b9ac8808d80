/** The sizes for a plan in the documentation are those that `npm run bench -- sizes` computes from its bytes. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { planOf } from '../../scripts/bench/plan.ts'

const [, section = ''] = readFileSync('docs/scaling.md', 'utf8').split('## Sizes for a plan\n')
const rows = section.split('\n').filter((line) => line.startsWith('| '))

t.test('what 1, 10 and 100 million users need follows from the bytes, the trips and the CPU', async (t) => {
  const bytes = rows
    .map((line) => /^\| ([\w ()]+) \| (\d+) \| \d+ \| \d+ \|$/.exec(line) ?? [])
    .flatMap(([, name, total]) => (name === undefined ? [] : [[name, Number(total)] as const]))
  t.equal(bytes.length, 6)
  const from = rows.findIndex((line) => line.startsWith('| computed |')) + 1
  const plan = planOf([1e6, 1e7, 1e8], Object.fromEntries(bytes))
  t.strictSame(rows.slice(from + 1, from + 1 + plan.length), plan)
})
