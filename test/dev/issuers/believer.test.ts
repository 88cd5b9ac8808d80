/**
 * A client that checks nothing shows that each misbehaving issuer has its fault, and that a deceived client is
 * detected.
 */
import t from 'tap'
import { profiles } from '../../../src/dev/issuers/catalogue.ts'
import { deviceClients } from '../../../src/dev/issuers/device-profiles.ts'
import { startServer } from '../../helpers/server.ts'
import { believe, type Facts } from './believer.ts'
import { lies } from './lies.ts'
import { addService, reportOf, resetClock, surroundingsOf } from './results.ts'

const server = await startServer(t, { mode: 'dev' })
const service = await addService(server)
const told = new Map<string, Facts>()
// Wrong logout tokens and polls of devices have tests of their own, logout.test.ts and device.test.ts.
const ordinary = profiles.filter(
  (profile) => profile.alterLogout === undefined && !deviceClients.includes(profile),
)
for (const profile of ordinary) {
  told.set(
    profile.id,
    await believe({ ...surroundingsOf(server, profile), service, now: () => server.now() }),
  )
  await resetClock(server)
}
const report = await reportOf(server)

/** The places that differ from the correct issuer, in order; null means missing. */
function differences(id: string): readonly (readonly [string, Readonly<Record<string, unknown>>])[] {
  const [truth, said] = [told.get('reference'), told.get(id)]
  const names = [...new Set([...(truth?.keys() ?? []), ...(said?.keys() ?? [])])]
  const differing = names.filter(
    (name) => JSON.stringify(truth?.get(name)) !== JSON.stringify(said?.get(name)),
  )
  const places = new Set(names.map(placeOf))
  return [...places].flatMap((place) => {
    const here = differing.filter((name) => placeOf(name) === place)
    const values = here.map((name) => [name.slice(place.length + 1), said?.get(name) ?? null])
    return here.length === 0 ? [] : [[place, Object.fromEntries(values)] as const]
  })
}

function placeOf(name: string): string {
  return name.slice(0, name.indexOf('.'))
}

t.test('there are at least 25 profiles, each with one fault that is listed here', async (t) => {
  const ids = ordinary.map(({ id }) => id)
  t.equal(ids.length > 25, true)
  t.equal(new Set(ids).size, ids.length)
  t.strictSame(Object.keys(lies).toSorted(), ids.filter((id) => id !== 'reference').toSorted())
})

for (const [id, { msg, so = [] }] of Object.entries(lies)) {
  t.test(`${id} differs from the correct issuer only in its fault and its consequences`, async (t) => {
    const [first, ...later] = differences(id)
    const { port } = new URL(server.issuer)
    const [place, values] = first ?? ['nowhere', {}]
    t.strictSame(JSON.parse(JSON.stringify({ [place]: values }).replaceAll(`:${port}`, ':{port}')), msg)
    t.strictSame(
      later.map(([name]) => name),
      so,
    )
  })
}

t.test(
  'every misbehaving issuer has deceived the naive client, and the correct one has served it',
  async (t) => {
    const { reference, fooled, rejected, not_reached } = report
    t.strictSame(
      { reference, fooled, rejected, not_reached },
      {
        reference: 'passed',
        fooled: ordinary.length - 1,
        rejected: 0,
        not_reached: profiles.length - ordinary.length,
      },
    )
    for (const { id, verdict, evidence, told: own } of report.profiles.slice(0, ordinary.length)) {
      const isTold = id === 'introspection-active-text'
      t.equal(verdict, id === 'reference' ? 'passed' : 'fooled', id)
      t.equal(evidence !== undefined, id !== 'reference' && !isTold, id)
      t.equal(own, isTold ? 'fooled' : undefined, id)
    }
  },
)
