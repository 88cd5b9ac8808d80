import t from 'tap'
import { proofMemory } from '../../src/domain/dpop-proof.ts'

const id = (n: number) => `proof ${n}`
const use = (n: number, expiresAt = 0) => ({ id: id(n), expiresAt })

t.test('white-box: a proof is known for as long as any clock lets it be accepted', async (t) => {
  const isNew = proofMemory()
  t.equal(isNew(use(1), 1000), true)
  t.equal(isNew(use(2), 1080), true)
  // A proof is accepted from 10 s before its `iat` to 70 s after it.
  for (const after of [0, 40, 80, 81]) t.equal(isNew(use(1), 1000 + after), false, `${after} s`)
  t.equal(isNew(use(3), 1082), true, 'the memory begins another set')
  t.strictSame([isNew(use(1), 1082), isNew(use(2), 1161)], [false, false])
  t.equal(isNew(use(4), 1164), true)
  t.equal(isNew(use(1), 1164), true, 'and forgets the first')
})

t.test('white-box: the memory of proofs is bounded', async (t) => {
  const isNew = proofMemory()
  for (let n = 0; n < 199_999; n++) isNew(use(n), 1000)
  t.equal(isNew(use(0), 1000), false)
  t.strictSame([isNew(use(199_999), 1000), isNew(use(200_000), 1000)], [true, true])
  t.equal(isNew(use(0), 1000), true, 'the oldest of more than 200,000')
  t.equal(isNew(use(199_999), 1000), false)
})
