import t from 'tap'
import { mapDefined } from '../../src/domain/map-defined.ts'

const half = (value: number) => (value % 2 === 0 ? value / 2 : undefined)

t.test('the results that are not undefined are kept, in their order', async (t) => {
  t.strictSame(mapDefined([2, 3, 4, 5, 8], half), [1, 2, 4])
  t.strictSame(mapDefined([3, 0], half), [0], 'a result that is falsy counts')
  t.strictSame(mapDefined([3, 5], half), [])
  t.strictSame(mapDefined([], half), [])
})
