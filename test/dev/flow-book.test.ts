import t from 'tap'
import {
  type Belonging,
  type Bounds,
  type KeptExchange,
  openFlowBook,
} from '../../src/dev/flows/flow-book.ts'

const bounds: Bounds = { flows: 3, exchangesPerFlow: 8, looseExchanges: 2, characters: 1_000_000 }
let count = 0

function exchange(fields: Partial<KeptExchange> = {}): KeptExchange {
  count += 1
  return {
    ...{ id: `r${count}`, step: 'token', at: count, startedMs: count, tookMs: 1, method: 'POST', url: '/' },
    ...{ status: 200, broken: false, request: { headers: [] }, answer: { headers: [] } },
    ...{ passed: [], writes: [], presented: [], issued: [], notes: [] },
    ...fields,
  }
}

const belonging = (fields: Partial<Belonging> = {}): Belonging => ({
  ...{ grantIds: [], interactionIds: [], peer: '127.0.0.1 program' },
  ...fields,
})

t.test('of many flows only the newest are kept', async (t) => {
  const book = openFlowBook(bounds)
  for (const clientId of ['a', 'b', 'c', 'd']) book.add(exchange(), belonging({ clientId, peer: clientId }))
  t.strictSame(
    book.flows().map(({ clientId }) => clientId),
    ['d', 'c', 'b'],
  )
  book.add(exchange(), belonging({ clientId: 'a' }))
  t.equal(book.flows()[0]?.exchanges.length, 1, 'a forgotten client begins anew')
})

t.test('of a long flow the beginning and the end are kept, and what is dropped is counted', async (t) => {
  const book = openFlowBook(bounds)
  const ids = Array.from({ length: 12 }, () => exchange()).map((each) => {
    book.add(each, belonging({ clientId: 'a' }))
    return each.id
  })
  const [flow] = book.flows()
  t.equal(flow?.omitted, 4)
  t.strictSame(
    flow?.exchanges.map(({ id }) => id),
    [...ids.slice(0, 2), ...ids.slice(6)],
  )
})

t.test('all flows together stay within a number of characters', async (t) => {
  const book = openFlowBook({ ...bounds, characters: 5000 })
  const big = { request: { headers: [['x', 'y'.repeat(2000)]] } } as const
  for (const clientId of ['a', 'b', 'c']) book.add(exchange(big), belonging({ clientId }))
  t.strictSame(
    book.flows().map(({ clientId }) => clientId),
    ['c', 'b'],
  )
})

t.test('exchanges without a client are limited, and join the next flow of the same user agent', async (t) => {
  const book = openFlowBook(bounds)
  const others = [1, 2, 3].map(() => exchange({ step: 'discovery' }))
  for (const other of others) book.add(other, belonging())
  t.strictSame(
    book.loose().map(({ id }) => id),
    [others[2]?.id, others[1]?.id],
  )
  book.add(exchange(), belonging({ clientId: 'a', peer: 'another' }))
  t.equal(book.loose().length, 2)
  book.add(exchange(), belonging({ clientId: 'b' }))
  t.equal(book.loose().length, 0)
  t.strictSame(
    book.flows()[0]?.exchanges.map(({ step }) => step),
    ['discovery', 'discovery', 'token'],
  )
})

t.test(
  'discovery after an authorization belongs to the next flow, and so does what comes much later',
  async (t) => {
    const book = openFlowBook(bounds)
    book.add(exchange({ step: 'authorization' }), belonging({ clientId: 'a' }))
    book.add(exchange({ step: 'keys' }), belonging())
    t.equal(book.loose().length, 0)
    book.add(exchange({ step: 'discovery' }), belonging())
    t.equal(book.loose().length, 1)
    book.add(exchange({ step: 'keys', startedMs: count + 61_000 }), belonging())
    t.equal(book.loose().length, 2)
  },
)

t.test('user agents that change their name each time are forgotten', async (t) => {
  const book = openFlowBook({ ...bounds, exchangesPerFlow: 1000 })
  for (let each = 0; each < 500; each += 1)
    book.add(exchange(), belonging({ clientId: 'a', peer: `program ${each}` }))
  book.add(exchange({ step: 'keys' }), belonging({ peer: 'program 3' }))
  book.add(exchange({ step: 'keys' }), belonging({ peer: 'program 499' }))
  t.equal(book.loose().length, 1)
})
