/**
 * `npm run bench -- sweep`: how long a sweep blocks the event loop. With the garbage collector's settings of the
 * executable: the default ones would add pauses of 5 to 10 ms.
 */

import type { Channel } from 'node:diagnostics_channel'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import { accept, put, type Write } from '../../src/domain/decision.ts'
import { openStore } from '../../src/storage/open.ts'
import {
  type Checkpoint,
  type Commit,
  checkpointChannel,
  commitChannel,
  type Store,
  type SweepBounds,
} from '../../src/storage/store.ts'
import { throttleKind } from '../../src/users/rules/throttle.ts'
import { readCount, scriptCommand } from '../command.ts'
import { fill, livingGrants, sizes } from './sweep-records.ts'

const {
  folder: place,
  grants,
  calls,
} = scriptCommand(
  'bench:sweep',
  'Measures for how long a sweep holds the event loop, on a database of grants of which a quarter has ended, with ' +
    'everything else that goes due at once. What a commit waits for the disk shows beside the same on --folder ' +
    '/dev/shm, which has none.',
)
  .option('--folder <path>', 'where the database is made', tmpdir())
  .option('--grants <number>', 'how many it has', readCount, 200_000)
  .option('--calls <number>', 'how many calls of the sweep', readCount, 400)
  .parse()
  .opts<{ folder: string; grants: number; calls: number }>()
/** The pause of the server's own sweep while there is more to do. */
const pauseMilliseconds = 100
/** Simultaneous refreshes. */
const refreshers = 16

/** How long the event loop was blocked, in milliseconds. */
interface Held {
  readonly times: number[]
  /** Turns during which another process had the core: their time is not ours, and is excluded. */
  disturbed: number
}

const [commits, checkpoints] = [commitChannel, checkpointChannel].map(measure) as [Held, Held]

/** The messages of this channel, from now on. */
function measure(told: Channel): Held {
  const held: Held = { times: [], disturbed: 0 }
  let switches = 0
  told.subscribe((message) => {
    const { involuntaryContextSwitches } = process.resourceUsage()
    const isOurs = involuntaryContextSwitches === switches
    switches = involuntaryContextSwitches
    // Both channels publish nothing else.
    if (isOurs) held.times.push((message as Commit | Checkpoint).seconds * 1000)
    else held.disturbed += 1
  })
  return held
}

function forget(): void {
  for (const held of [commits, checkpoints]) {
    held.times.length = 0
    held.disturbed = 0
  }
}

const folder = mkdtempSync(join(place, 'lychgate-sweep-'))
const store = await openStore(`sqlite:${join(folder, 'lychgate.db')}`)
try {
  await fill(store, grants)
  // What that left in the journal does not belong to the measurement.
  await wait(100)
  const { now } = sizes
  const bounds: SweepBounds = {
    now,
    clientsUnusedSince: now,
    unusedClientBytes: 134_217_728,
    clientsIdleSince: now,
    rejectionsKept: 100,
    auditedSince: now,
  }
  const nothingDue = {
    ...bounds,
    now: 1,
    clientsUnusedSince: 0,
    unusedClientBytes: 134_217_728,
    clientsIdleSince: 0,
    rejectionsKept: 1e9,
    auditedSince: 0,
  }
  process.stdout.write(
    `${cpus()[0]?.model}, Node ${process.version}, ${place}, ${grants} grants\n` +
      'milliseconds the event loop is held | times | disturbed | rows each | p50 | p99 | p99.9 | max | longest turn\n',
  )
  report(
    'a commit of one row',
    await alone(calls, async (n) => {
      await store.write(put(throttleKind, { key: `probe ${n % 7}`, failures: n, expiresAt: 1e9 }))
      return 1
    }),
  )
  report('a sweep that finds nothing', await alone(calls, async () => (await store.sweep(nothingDue)).rows))
  report('a sweep with all kinds due', await alone(calls, async () => (await store.sweep(bounds)).rows))
  for (const sweeping of [false, true, false, true]) await whileRefreshing(store, bounds, sweeping)
} finally {
  await store.close()
  rmSync(folder, { recursive: true })
}

interface Run {
  readonly rows: number
  /** The longest turn of the event loop in which no other process had the core. */
  readonly longest?: number
}

/** One after the other, while only the length of each turn of the event loop is measured. */
async function alone(times: number, work: (n: number) => Promise<number>): Promise<Run> {
  forget()
  let [rows, isDone, longest] = [0, false, 0]
  let [last, before] = [performance.now(), process.resourceUsage().involuntaryContextSwitches]
  const look = () => {
    const [now, { involuntaryContextSwitches: after }] = [performance.now(), process.resourceUsage()]
    if (after === before) longest = Math.max(longest, now - last)
    ;[last, before] = [now, after]
    if (!isDone) setImmediate(look)
  }
  look()
  for (let n = 0; n < times; n += 1) rows += await work(n)
  isDone = true
  return { rows, longest }
}

/** Refreshes as fast as possible, for four seconds, with or without a sweep at the same time. */
async function whileRefreshing(target: Store, bounds: SweepBounds, sweeping: boolean): Promise<void> {
  forget()
  const delay = monitorEventLoopDelay({ resolution: 1 })
  const end = performance.now() + 4000
  let [rows, refreshes] = [0, 0]
  const sweep = async () => {
    while (sweeping && performance.now() < end) {
      rows += (await target.sweep(bounds)).rows
      await wait(pauseMilliseconds)
    }
  }
  const refresh = async (lane: number) => {
    for (let n = 0; performance.now() < end; n += 1) {
      const id = livingGrants[(lane * 997 + n * 31) % livingGrants.length] ?? ''
      await target.transact('grant', id, (grant) => {
        if (grant === undefined) throw new Error('a living grant was swept')
        const rotate: Write = {
          op: 'rotateGrant',
          grantId: id,
          fromSeq: grant.seq,
          at: sizes.now,
          refreshExpiresAt: sizes.later,
          expiresAt: sizes.later,
        }
        return accept(undefined, rotate)
      })
      refreshes += 1
    }
  }
  delay.enable()
  await Promise.all([sweep(), ...Array.from({ length: refreshers }, (_, lane) => refresh(lane))])
  delay.disable()
  const name = `${refreshes} refreshes ${sweeping ? 'beside the sweep' : 'without it'}`
  report(name, { rows })
  const [p99, max] = [delay.percentile(99) / 1e6, delay.max / 1e6]
  process.stdout.write(`  event-loop delay: p99 ${p99.toFixed(2)}, max ${max.toFixed(2)}\n`)
}

function report(name: string, { rows, longest }: Run): void {
  const perCommit = (rows / Math.max(1, commits.times.length + commits.disturbed)).toFixed(0)
  line(name, commits, perCommit, longest?.toFixed(2) ?? '')
  if (checkpoints.times.length > 0) line('  its checkpoints', checkpoints, '', '')
}

function line(name: string, { times, disturbed }: Held, perCommit: string, turn: string): void {
  const sorted = times.toSorted((one, other) => one - other)
  const at = (share: number) => (sorted[Math.ceil(sorted.length * share) - 1] ?? 0).toFixed(2)
  const cells = [name, sorted.length, disturbed, perCommit, at(0.5), at(0.99), at(0.999), at(1), turn]
  process.stdout.write(`${cells.join(' | ')}\n`)
}
