import t from 'tap'
import { isObject } from '../../src/domain/is-object.ts'

t.test('of the JSON values only objects are objects: no array, and not null', async (t) => {
  for (const value of [{}, { a: 1 }, Object.create(null)]) t.equal(isObject(value), true)
  for (const value of [null, undefined, [], [{}], 'text', '', 7, 0, true, false])
    t.equal(isObject(value), false, JSON.stringify(value))
})
