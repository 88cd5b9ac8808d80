/** `npm run bench -- [what] [options]`: the benchmarks. Each has its own `--help`. */
import { spawnSync } from 'node:child_process'

const heap = ['--min-semi-space-size=4', '--max-semi-space-size=4']
const benchmarks: Readonly<Record<string, readonly string[]>> = {
  dpop: ['scripts/bench/dpop.ts'],
  'forward-auth': ['scripts/bench/forward-auth.ts'],
  floor: ['scripts/bench/floor.ts'],
  nodes: ['scripts/bench/nodes.ts'],
  overload: ['scripts/bench/overload.ts'],
  sizes: ['scripts/bench/sizes.ts'],
  trips: ['scripts/bench/trips.ts'],
  sweep: [...heap, 'scripts/bench/sweep.ts'],
  workers: ['scripts/bench/workers.ts'],
  build: ['scripts/build/measure.ts'],
}

const [name = '', ...rest] = process.argv.slice(2)
const own = benchmarks[name]
process.exitCode = own === undefined ? peers([name, ...rest].filter(Boolean)) : run('node', [...own, ...rest])

/** Lychgate compared with its peers, which are packages of the benchmark alone. */
function peers(options: readonly string[]): number {
  const install = run('npm', ['ci', '--prefix', 'scripts/bench', '--no-audit', '--no-fund'])
  return install === 0 ? run('node', ['scripts/bench/bench.ts', ...options]) : install
}

function run(file: string, args: readonly string[]): number {
  return spawnSync(file, args, { stdio: 'inherit' }).status ?? 1
}
