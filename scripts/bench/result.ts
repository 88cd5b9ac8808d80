/** The measurements of one server under one workload. */
export interface Sample {
  readonly workload: string
  readonly server: string
  readonly connections: number
  readonly operations: number
  readonly seconds: number
  /** Of the server, user and system, microseconds. */
  readonly cpu: number
  /** Milliseconds, sorted. */
  readonly latencies: Float64Array
}

/** The measurements of one run of the benchmark. */
export interface Result {
  readonly samples: readonly Sample[]
  readonly starts: readonly { readonly server: string; readonly milliseconds: number }[]
  readonly memory: readonly { readonly server: string; readonly idle: number; readonly loaded: number }[]
  readonly machine: string
  readonly growth?: Growth
  readonly sequences?: readonly MemorySequence[]
}

/** Resident memory of one process that runs every workload, MiB, after each. */
export interface MemorySequence {
  /** Variables of its environment other than settings. */
  readonly environment: string
  readonly after: readonly { readonly workload: string; readonly memory: number }[]
}

/** The same work with few grants and with many; `server` of a sample is their number. */
export interface Growth {
  readonly samples: readonly Sample[]
  readonly held: readonly {
    readonly grants: number
    readonly bytesAGrant: number
    readonly idle: number
    readonly loaded: number
  }[]
}

/** In µs, the median of the rounds: other work of the machine shows in some of them. */
export function cpuAnOperation(samples: readonly Sample[]): number {
  return median(samples.map(({ cpu, operations }) => cpu / operations))
}

/** The middle one, the lower of two. */
export function median(figures: readonly number[]): number {
  const sorted = figures.toSorted((one, other) => one - other)
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN
}

/** The geometric mean of the ratios of the pairs, with its 95 % interval. */
export function ratio(figures: readonly number[], base: readonly number[]): string {
  const logs = figures.map((figure, index) => Math.log(figure / (base[index] ?? Number.NaN)))
  const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length
  const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (logs.length - 1)
  const half = 2 * Math.sqrt(variance / logs.length)
  const [low, middle, high] = [mean - half, mean, mean + half].map((log) => Math.exp(log).toFixed(2))
  return `${middle} (${low} to ${high})`
}
