import { cpuAnOperation, type Growth } from './result.ts'
import { bytesAGrant as mostBytes, timesGrowth as mostTimes } from './targets.ts'

/** A table in Markdown that compares every number of grants with the fewest. */
export function growthTable({ samples, held }: Growth): string[] {
  const loads = [...new Set(samples.map(({ workload }) => workload))]
  const counts = [...new Set(samples.map(({ connections }) => connections))]
  const columns = loads.flatMap((load) =>
    counts.map((count) => ({ load, count, title: `${load}, ${count} connection${count === 1 ? '' : 's'}` })),
  )
  const [few] = held
  const lines = [
    `| grants | bytes each (${mostBytes}) | memory idle, MiB | loaded, MiB | ${columns.map(({ title }) => `${title}: CPU µs (${mostTimes})`).join(' | ')} |`,
    `| --- | --- | --- | --- | ${columns.map(() => '---').join(' | ')} |`,
  ]
  for (const { grants, bytesAGrant, idle, loaded } of held) {
    const cells = columns.map(({ load, count }) => {
      const [own, least] = [grants, few?.grants].map((number) =>
        cpuAnOperation(
          samples.filter(
            (one) => one.workload === load && one.connections === count && one.server === String(number),
          ),
        ),
      ) as [number, number] // Two of two.
      return grants === few?.grants ? own.toFixed(0) : `${own.toFixed(0)}: ${(own / least).toFixed(2)} times`
    })
    const sizes = [bytesAGrant, idle, loaded].map((size) => size.toFixed(0))
    lines.push(`| ${[grants.toLocaleString('en'), ...sizes, ...cells].join(' | ')} |`)
  }
  return lines
}
