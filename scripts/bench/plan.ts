import { trips } from '../../test/storage/trips.ts'

/** What each user does and leaves, by which a plan is computed. Change it to yours. */
const perUser = {
  aDay: { signIns: 1, refreshes: 10, introspections: 100, auditEvents: 4 },
  rows: { user: 1, session: 2, grant: 3, 'remembered consent': 2 },
}
/** The busiest hour has so much of a day. */
const busiestHour = 0.1

/** Seconds of CPU: a password and a code flow, a refresh, an introspection (docs/scaling.md, performance of nodes). */
const nodeCpu = { signIn: 0.065, refresh: 0.000285, introspection: 0.000142 }
const postgresCpu = { refresh: 0.000234, introspection: 0.000074 }
/** Bytes of log: of a sign-in with its code, and of a refresh on a page that was not changed since the checkpoint. */
const logBytes = { signIn: 4848, refresh: 2400 }

const signInSteps = ['sign-in with a password', 'authorize, signed in', 'exchange']
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
const ofSignIn = (cost: 'trips' | 'commits') => sum(signInSteps.map((step) => trips[step]?.[cost] ?? 0))
const [refreshName, introspectionName] = ['refresh of a public client', 'introspection']

/**
 * Computes what so many users need, a line of a table each.
 * @param bytes What each kind of row takes, by its name.
 */
export function planOf(users: readonly number[], bytes: Readonly<Record<string, number>>): readonly string[] {
  const columns = users.map((count) => {
    const aSecond = (events: number) => (count * events * busiestHour) / 3600
    const { signIns, refreshes, introspections, auditEvents } = perUser.aDay
    const [signIn, refresh, introspection] = [signIns, refreshes, introspections].map(aSecond) as [
      number,
      number,
      number,
    ]
    const disk = sum(Object.entries(perUser.rows).map(([name, each]) => each * (bytes[name] ?? 0)))
    const log = auditEvents * (bytes['audit event'] ?? 0)
    return [
      [signIn, refresh, introspection].map(rounded).join(', '),
      rounded(signIn * nodeCpu.signIn + refresh * nodeCpu.refresh + introspection * nodeCpu.introspection),
      rounded(refresh * postgresCpu.refresh + introspection * postgresCpu.introspection),
      rounded(signIn * ofSignIn('commits') + refresh),
      rounded((signIn * logBytes.signIn + refresh * logBytes.refresh) / 1e6),
      rounded(
        (signIn * ofSignIn('trips') +
          refresh * (trips[refreshName]?.trips ?? 0) +
          introspection * (trips[introspectionName]?.trips ?? 0)) /
          1000,
      ),
      gigabytes(count * disk),
      `${gigabytes(count * log * 400)}, ${gigabytes(count * log * 30)}`,
    ]
  })
  return labels.map((label, index) => `| ${[label, ...columns.map((column) => column[index])].join(' | ')} |`)
}

const labels = [
  'sign-ins, refreshes, introspections a second',
  'cores for nodes (60 ms of a password, 5 ms of a code flow, 285 and 142 µs)',
  'cores for PostgreSQL, without sign-ins (234 and 74 µs)',
  'commits a second',
  'log, MB a second (a refresh on a cold page with `lz4`: 2.4 KB)',
  'connections in use, 1 ms a round trip',
  'disk without the audit log',
  'audit log of 400 days, and of 30',
]

/** Two digits are more than the assumptions have. */
function rounded(value: number): string {
  return Number(value.toPrecision(2)).toLocaleString('en')
}

function gigabytes(bytes: number): string {
  return bytes < 1e12 ? `${rounded(bytes / 1e9)} GB` : `${rounded(bytes / 1e12)} TB`
}
