/** Places and budgets of fetches, by purpose, host and network. */
import t from 'tap'
import { createBudgets, type Spender } from '../../src/outbound/budgets.ts'
import { testClock } from '../helpers/clock.ts'

const limits = { perOriginPerMinute: 30, perNetworkPerMinute: 15 }
const stranger = (from: string): Spender => ({ purpose: 'unknown', from })
const known: Spender = { purpose: 'known' }
const operator: Spender = { purpose: 'operator' }

/** Budgets, and how many of so many fetches at different hosts are allowed. */
function start() {
  const clock = testClock()
  const budgets = createBudgets(limits, clock)
  const take = (url: string, spender: Spender) =>
    budgets.take(new URL(url), spender, limits.perOriginPerMinute)
  const allowed = (
    count: number,
    spender: (n: number) => Spender,
    url = (n: number) => `https://h${n}.example/`,
  ) => {
    const taken = Array.from({ length: count }, (_, n) => take(url(n), spender(n)))
    const free = () => {
      for (const place of taken) if (typeof place === 'function') place()
    }
    return { count: taken.filter((place) => typeof place === 'function').length, free }
  }
  return { clock, take, allowed }
}

t.test('strangers take their own places alone, and one network or host some of them', async (t) => {
  const { allowed, take } = start()
  t.equal(allowed(20, () => stranger('192.0.2.0/24')).count, 4, 'a network')
  t.equal(
    allowed(
      20,
      (n) => stranger(`10.0.${n}.0/24`),
      () => 'https://slow.example/a',
    ).count,
    4,
    'a host',
  )
  t.equal(allowed(20, (n) => stranger(`10.1.${n}.0/24`)).count, 8, 'all of them 16')
  t.equal(take('https://new.example/', stranger('10.2.0.0/24')), '16 fetches of this kind are running')
  t.type(take('https://slow.example/keys', operator), 'function')
  t.type(take('https://slow.example/known', known), 'function')
  t.type(take('https://slow.example/object', { purpose: 'requestObject', from: '192.0.2.0/24' }), 'function')
  t.type(take('https://slow.example/logout', { purpose: 'form' }), 'function')
  t.equal(allowed(40, () => operator).count, 31, 'those of operators are full, too')
  t.type(take('https://other.example/logout', { purpose: 'form' }), 'function')
})

t.test('a place that is freed can be taken again', async (t) => {
  const { allowed } = start()
  for (const _ of [1, 2, 3]) {
    const { count, free } = allowed(20, () => stranger('192.0.2.0/24'))
    t.equal(count, 4)
    free()
  }
})

t.test('a budget is counted by the minute, and that of a full table is used up', async (t) => {
  const { allowed, clock, take } = start()
  const spend = (count: number, spender: Spender, url: (n: number) => string) => {
    let spent = 0
    for (let n = 0; n < count; n++) {
      const place = take(url(n), spender)
      if (typeof place === 'function') {
        spent += 1
        place()
      }
    }
    return spent
  }
  t.equal(
    spend(20, stranger('192.0.2.0/24'), (n) => `https://h${n}.example/`),
    15,
    'a network',
  )
  t.equal(
    spend(20, known, () => 'https://one.example/a'),
    10,
    'a document',
  )
  t.equal(
    spend(40, known, (n) => `https://one.example/${n}`),
    20,
    'its host',
  )
  t.equal(
    spend(40, operator, () => 'https://one.example/keys'),
    30,
    'an operator names what is needed',
  )
  clock.advance(60)
  t.equal(
    spend(20, known, () => 'https://one.example/a'),
    10,
  )
  for (let n = 0; n < 5000; n++) spend(1, stranger(`10.${n}`), () => `https://h${n}.example/`)
  t.match(take('https://new.example/', stranger('10.x')), 'fetches a minute')
  t.equal(
    allowed(
      1,
      () => known,
      () => 'https://two.example/',
    ).count,
    1,
    'of strangers alone',
  )
})
