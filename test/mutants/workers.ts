import type { OwnFault } from './fault.ts'

const supervisor = 'src/cli/workers.ts'
const processTests = ['test/process/workers.test.ts']

/** Faults of several workers as one server. */
export const workerFaults = [
  {
    id: 'connections-passed-on-to-workers',
    file: supervisor,
    find: 'cluster.schedulingPolicy = cluster.SCHED_NONE',
    replace: 'cluster.schedulingPolicy = cluster.SCHED_RR',
    tests: processTests,
  },
  {
    id: 'killed-worker-not-replaced',
    file: supervisor,
    find: 'if (!isStopping && !expected.has(worker)) void replace(worker)',
    replace: 'if (isStopping) void replace(worker)',
    tests: processTests,
  },
  {
    id: 'workers-started-for-ever',
    file: supervisor,
    find: 'if (endedLately > 4 + workers) return undefined',
    replace: '',
    tests: processTests,
  },
  {
    id: 'every-worker-sweeps',
    file: 'src/app/maintenance.ts',
    find: 'if (peers?.isLeading() === false) return rest',
    replace: '',
    tests: ['test/http/sweeper.test.ts'],
  },
  {
    id: 'counts-kept-by-each-worker',
    file: 'src/http/shared-counts.ts',
    find: "peers.tell('rates', news)",
    replace: '',
    tests: ['test/http/shared-counts.test.ts'],
  },
] as const satisfies readonly OwnFault[]
