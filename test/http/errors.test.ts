import t from 'tap'
import { StoreUnavailable } from '../../src/storage/store.ts'
import { post, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { assertRejected } from '../helpers/wire.ts'

const server = await startServer(t)
const client = await register(server)

t.test('an internal error is sent without its cause, which is only logged', async (t) => {
  const { store } = server.deps
  const { find } = store
  t.teardown(() => Object.assign(store, { find }))
  const send = () => post(server, '/api/oauth/token', { grant_type: 'x', client_id: client.id })
  for (const [fault, error, status] of [
    [new Error('a disk of glass'), 'server_error', 500],
    [new StoreUnavailable(new Error('a disk of sand')), 'temporarily_unavailable', 503],
  ] as const) {
    Object.assign(store, { find: () => Promise.reject(fault) })
    const response = await send()
    const text = await response.clone().text()
    await assertRejected(t, response, error, status)
    t.notMatch(text, /glass|sand|unavailable_|at .*\.ts/)
    t.equal(response.headers.has('retry-after'), status === 503)
    const line = server.log.find((one) => one.includes(`"reqId":"${response.headers.get('x-request-id')}"`))
    t.match(line, status === 503 ? 'a disk of sand' : 'a disk of glass', 'the response names its line')
  }
  Object.assign(store, { find })
  await assertRejected(t, await send(), 'unsupported_grant_type')
  t.match(server.log.join(''), 'a disk of glass')
  t.match(server.log.join(''), 'a disk of sand')
})
