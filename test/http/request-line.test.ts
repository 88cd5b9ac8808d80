/** The log line of a request is written by hand: it must be what the logger writes. */
import fc from 'fast-check'
import { pino } from 'pino'
import t from 'tap'
import { boundedText, lineWriter } from '../../src/http/log.ts'
import { startServer } from '../helpers/server.ts'

const written: string[] = []
const log = pino({ level: 'info' }, { write: (line: string) => void written.push(line) })
const line = lineWriter(log)
const withoutTime = (text: string | undefined) => text?.replace(/"time":\d+/, '"time":0')

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.string({ unit: 'grapheme-ascii', maxLength: 300 }),
  fc.constantFrom('"', '\\', '\u2028', '\u007f', '\u0000', '…', '\r\n{"level":60}'),
)
const bounded = anyText.map((text) => boundedText(text))

t.test('a line by hand is the line of the logger, whatever a path or a client contains', async (t) => {
  const exchange = fc.record({
    method: fc.constantFrom('GET', 'POST', 'DELETE'),
    path: bounded,
    status: fc.integer({ min: 200, max: 499 }),
  })
  const client = fc.option(fc.record({ client: bounded }), { nil: {} })
  const ms = fc.nat(1_000_000).map((tenths) => tenths / 10)
  const reason = fc.record(
    {
      error: fc.constantFrom('invalid_request', 'invalid_client'),
      why: bounded,
      rule: bounded,
      stored: fc.oneof(bounded, fc.integer(), fc.array(bounded, { maxLength: 3 })),
      received: bounded,
    },
    { requiredKeys: ['error', 'why', 'rule'] },
  )
  fc.assert(
    fc.property(exchange, client, ms, fc.option(reason, { nil: undefined }), (first, by, time, why) => {
      const described = { ...first, ...by, ms: time, ...why }
      const message = why === undefined ? 'responded' : 'rejected'
      log.child({ reqId: 'an-id' }).info(described, message)
      const wanted = written.pop()
      // The types of the parts of a line are narrower than what is generated.
      const found = line('an-id', described as Parameters<typeof line>[1], message)
      return withoutTime(found) === withoutTime(wanted)
    }),
    { numRuns: 2000 },
  )
  t.pass()
})

t.test('half a character, which the logger writes as it is, is escaped', async (t) => {
  const found = line('an-id', { method: 'GET', path: 'a\udfffb', status: 404, ms: 1 }, 'responded')
  t.match(found, '"path":"a\\udfffb"')
})

t.test('the members of a line keep their order, and a level above info silences it', async (t) => {
  const [server, quiet] = [await startServer(t), await startServer(t, { logLevel: 'warn' })]
  for (const { issuer } of [server, quiet]) {
    t.equal((await fetch(`${issuer}/api/courses`)).status, 200)
    t.equal((await fetch(`${issuer}/api/oauth/userinfo`)).status, 401)
    t.equal((await fetch(`${issuer}/livez`)).status, 200)
    // Its line is written after the others.
    t.equal((await fetch(`${issuer}/nothing`, { method: 'HEAD' })).status, 404)
  }
  while (!server.log.some((text) => text.includes('"path":"/nothing"')))
    await new Promise((resolve) => setImmediate(resolve))
  const lines = server.log.filter((text) => text.includes('"path"'))
  t.equal(lines.length, 3, 'none for the probe')
  const reason = ['error', 'why', 'rule']
  const members = ['level', 'time', 'pid', 'hostname', 'reqId', 'method', 'path', 'status', 'ms']
  t.strictSame(Object.keys(JSON.parse(lines[0] ?? '{}')), [...members, 'msg'])
  t.strictSame(Object.keys(JSON.parse(lines[1] ?? '{}')), [...members, ...reason, 'msg'])
  t.strictSame(quiet.log, [])
})
