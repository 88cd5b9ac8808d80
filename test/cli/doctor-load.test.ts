/** What `lychgate doctor` reads from the metrics of a running server about its load. */
import t from 'tap'
import { examineLoad } from '../../src/cli/doctor/load.ts'
import { createListener } from '../../src/observability/listener.ts'
import { createMetrics } from '../../src/observability/metrics.ts'
import { count, countOngoing } from '../../src/system/count.ts'
import { freePort } from '../helpers/free-port.ts'

t.test('too much load is a problem while it lasts, and a warning afterwards', async (t) => {
  const metrics = createMetrics()
  const listener = createListener({ host: '127.0.0.1' }, () => false)
  listener.get('/metrics', () => metrics.scrape(undefined))
  t.teardown(async () => {
    metrics.close()
    await listener.close()
  })
  const port = await freePort()
  await listener.listen({ host: '127.0.0.1', port })
  // `as`: the rest of the configuration is not read.
  const examine = () => examineLoad({ config: { management: { host: '0.0.0.0', port } } } as never)
  t.match(await examine(), [{ check: 'load', level: 'ok' }])
  const end = countOngoing('overloaded', 'Whether requests are rejected because of overload.', {})
  for (const sender of ['anonymous', 'client', 'client'])
    count('requests_shed_total', 'Requests rejected with 503 because of overload.', { sender })
  const found = '3 requests were rejected with 503'
  t.match(await examine(), [{ check: 'load', level: 'problem', said: 'is too high', found }])
  end()
  const [after] = await examine()
  t.match(after, { level: 'warning', said: 'was too high since the server started', found })
  t.match(after?.change, [/workers/])
})

t.test('nothing is said of a server that measures nothing, or does not run', async (t) => {
  const examine = (management: object) => examineLoad({ config: { management } } as never)
  t.strictSame(await examine({ host: '127.0.0.1' }), [])
  t.strictSame(await examine({ host: '::1', port: 1 }), [])
})
