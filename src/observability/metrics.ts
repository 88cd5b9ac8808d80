import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { keyAlgorithms, stateOf, termsOf } from '../domain/key-term.ts'
import type { Seconds, StoredKey } from '../domain/model.ts'
import {
  type Checkpoint,
  type Commit,
  checkpointChannel,
  commitChannel,
  type StoreActivity,
} from '../storage/store.ts'
import { type Counted, countChannel } from '../system/count.ts'

/** What this process counts, and what it reads from its store at every scrape. */
export interface Metrics {
  readonly requests: Counter<'method' | 'route' | 'outcome' | 'error'>
  readonly requestSeconds: Histogram<'method' | 'route'>
  readonly throttledSignIns: Counter
  readonly storeSeconds: Histogram<'operation' | 'kind'>
  readonly storeUnavailable: Counter
  /**
   * Everything in the text format of Prometheus; without the figures of the store if it does not respond.
   * @param others What the other workers of this server count, which is added up.
   */
  scrape(status: ServerStatus | undefined, others?: readonly Samples[]): Promise<string>
  /** The same of this worker alone, for another one to add up. */
  samples(status: ServerStatus | undefined): Promise<Samples>
  /** What must not get lost when this worker ends, because its sum would decrease. */
  lasting(): Promise<Samples>
  /** Takes that over from a worker that has ended. */
  inherit(samples: Samples): void
  close(): void
}

/** Metrics as prom-client sends them from one process to another. */
export type Samples = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

/** What a scrape reads from the store. */
export interface ServerStatus {
  readonly activity: StoreActivity
  readonly keys: readonly StoredKey[]
  readonly now: Seconds
}

const requestBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
const storeBuckets = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5,
]
const jobBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256]

/** A separate registry: two servers in one process share no figures except those of commits. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  const commitJobs = new Histogram({
    name: 'lychgate_store_commit_jobs',
    help: 'Changes that shared one commit, and so one wait for the disk (SQLite).',
    buckets: jobBuckets,
    registers,
  })
  const commitSeconds = new Histogram({
    name: 'lychgate_store_commit_seconds',
    help: 'From the beginning of such a transaction to the end of its commit.',
    buckets: storeBuckets,
    registers,
  })
  const checkpointSeconds = new Histogram({
    name: 'lychgate_store_checkpoint_seconds',
    help: 'Bringing the journal into the file, while nothing else goes on (SQLite).',
    buckets: storeBuckets,
    registers,
  })
  // The channels are internal and publish nothing else.
  const onCheckpoint = (message: unknown) => checkpointSeconds.observe((message as Checkpoint).seconds)
  const onCommit = (message: unknown) => {
    const { jobs, seconds } = message as Commit
    commitJobs.observe(jobs)
    commitSeconds.observe(seconds)
  }
  const counters = new Map<string, Counter>()
  const gauges = new Map<string, Gauge>()
  const onCount = (message: unknown) => {
    const { name, help, labels, change } = message as Counted
    const labelNames = Object.keys(labels)
    if (change !== undefined) {
      const gauge = gauges.get(name) ?? new Gauge({ name: `lychgate_${name}`, help, labelNames, registers })
      gauges.set(name, gauge)
      gauge.inc(labels, change)
      return
    }
    const counter =
      counters.get(name) ?? new Counter({ name: `lychgate_${name}`, help, labelNames, registers })
    counters.set(name, counter)
    counter.inc(labels)
  }
  subscribe(countChannel.name, onCount)
  subscribe(commitChannel.name, onCommit)
  subscribe(checkpointChannel.name, onCheckpoint)
  const state = stateGauges(registers)
  let inherited: Samples = []
  const samples = async (status?: ServerStatus) => {
    state.show(status)
    const own = await registry.getMetricsAsJSON()
    return AggregatorRegistry.aggregate([own, inherited]).getMetricsAsJSON()
  }
  return {
    ...countersOf(registers),
    scrape: async (status, others) => {
      if (others !== undefined)
        return AggregatorRegistry.aggregate([await samples(status), ...others]).metrics()
      state.show(status)
      return registry.metrics()
    },
    samples,
    // As text, because the types of one and of several processes differ.
    lasting: async () => (await samples()).filter(({ type }) => ['counter', 'histogram'].includes(`${type}`)),
    inherit: (left) => {
      inherited = [...inherited, ...left]
    },
    close: () => {
      unsubscribe(countChannel.name, onCount)
      unsubscribe(commitChannel.name, onCommit)
      unsubscribe(checkpointChannel.name, onCheckpoint)
      registry.clear()
    },
  }
}

function countersOf(registers: Registry[]) {
  return {
    requests: new Counter({
      name: 'lychgate_http_requests_total',
      help: 'Requests with a response; error is the OAuth error code, even of an error sent by redirect or on a page.',
      labelNames: ['method', 'route', 'outcome', 'error'] as const,
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'lychgate_http_request_seconds',
      help: 'From the head of a request to the end of its response.',
      labelNames: ['method', 'route'] as const,
      buckets: requestBuckets,
      registers,
    }),
    throttledSignIns: new Counter({
      name: 'lychgate_sign_ins_throttled_total',
      help: 'Sign-ins rejected unchecked after too many failures.',
      registers,
    }),
    storeSeconds: new Histogram({
      name: 'lychgate_store_operation_seconds',
      help: 'Calls of the store, waiting for the commit included.',
      labelNames: ['operation', 'kind'] as const,
      buckets: storeBuckets,
      registers,
    }),
    storeUnavailable: new Counter({
      name: 'lychgate_store_unavailable_total',
      help: 'Calls of the store that failed because it was locked, full or out of reach.',
      registers,
    }),
  }
}

/** The values read at a scrape; absent if the store does not respond. */
function stateGauges(registers: Registry[]) {
  // All workers read the same from the store, but each has its own pool.
  const gauge = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Gauge<L>({
      name: `lychgate_${name}`,
      help,
      labelNames,
      registers,
      aggregator: name.startsWith('store_pool') ? 'sum' : 'first',
    })
  const grants = gauge('grants_active', 'Active grants, as the sweep counted them when it last completed.')
  const rejections = gauge('refusals_kept', 'Rejected requests that lychgate explain can look up.')
  const pool = gauge('store_pool_connections', 'Connections to PostgreSQL.', 'state')
  const waiting = gauge('store_pool_waiting', 'Requests that wait for a connection.')
  const keyCount = gauge('keys', 'Keys of the key ring.', 'algorithm', 'state')
  const keyAge = gauge('key_age_seconds', 'For how long the active key has been signing.', 'algorithm')
  const all = [grants, rejections, pool, waiting, keyCount, keyAge]

  const showKeys = (keys: readonly StoredKey[], now: Seconds) => {
    for (const key of keys) {
      keyCount.inc({ algorithm: key.algorithm, state: stateOf(key, keys, now).replaceAll(' ', '_') })
    }
    for (const algorithm of keyAlgorithms) {
      const { acting } = termsOf(keys, algorithm, now)
      if (acting !== undefined) keyAge.set({ algorithm }, now - acting.activeAt)
    }
  }
  return {
    show: (status: ServerStatus | undefined) => {
      for (const one of all) one.reset()
      // Without labels they would be 0 after a reset: an unknown value is left out altogether.
      for (const one of [grants, rejections, waiting]) one.remove()
      if (status === undefined) return
      const { activeGrants, rejectionsKept, connections } = status.activity
      if (activeGrants !== undefined) grants.set(activeGrants)
      rejections.set(rejectionsKept)
      if (connections !== undefined) {
        pool.set({ state: 'busy' }, connections.total - connections.idle)
        pool.set({ state: 'idle' }, connections.idle)
        waiting.set(connections.waiting)
      }
      showKeys(status.keys, status.now)
    },
  }
}
