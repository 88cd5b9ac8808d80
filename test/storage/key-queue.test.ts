import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { createKeyQueue } from '../../src/storage/postgres/key-queue.ts'
import { StoreUnavailable } from '../../src/storage/store.ts'

/** Work that ends on command, and the list of what has started. */
function works() {
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const work = (name: string) => () => {
    begun.push(name)
    return new Promise<string>((resolve) => ends.set(name, () => resolve(name)))
  }
  return { begun, work, end: (name: string) => ends.get(name)?.() }
}

t.test(
  'work about one key starts when the previous has ended, and work about another key at once',
  async (t) => {
    const inTurn = createKeyQueue(60_000)
    const { begun, work, end } = works()
    const all = [inTurn('a', work('first')), inTurn('a', work('second')), inTurn('b', work('other'))]
    t.strictSame(begun, ['first', 'other'])
    end('other')
    t.equal(await all[2], 'other')
    t.strictSame(begun, ['first', 'other'])
    end('first')
    t.equal(await all[0], 'first')
    await setTimeout(0)
    t.strictSame(begun, ['first', 'other', 'second'])
    end('second')
    t.equal(await all[1], 'second')
    await setTimeout(0)
    const last = inTurn('a', work('last'))
    t.strictSame(begun.at(-1), 'last', 'nobody is there any more')
    end('last')
    t.equal(await last, 'last')
  },
)

t.test('a failing job fails alone', async (t) => {
  const inTurn = createKeyQueue(60_000)
  const failing = inTurn('a', () => Promise.reject(new Error('of its own')))
  const next = inTurn('a', async () => 'next')
  await t.rejects(failing, { message: 'of its own' })
  t.equal(await next, 'next')
})

t.test('work that waited too long is not started, and later work runs', async (t) => {
  const inTurn = createKeyQueue(50)
  const { begun, work, end } = works()
  const all = ['first', 'second', 'third'].map((name) => inTurn('a', work(name)))
  await setTimeout(60)
  end('first')
  t.match(await Promise.allSettled(all), [
    { status: 'fulfilled', value: 'first' },
    { status: 'rejected', reason: StoreUnavailable },
    { status: 'rejected', reason: StoreUnavailable },
  ])
  t.strictSame(begun, ['first'])
  const next = inTurn('a', work('next'))
  end('next')
  t.equal(await next, 'next')
})
