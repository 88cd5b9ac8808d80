import t from 'tap'
import { confirmationOf, grantConfirmation, isSameKey, tokenTypeOf } from '../../src/domain/confirmation.ts'

t.test('the key of a token is read from cnf, and what is no text binds to nothing', async (t) => {
  t.equal(confirmationOf(undefined), undefined, 'a token that is not bound')
  t.strictSame(confirmationOf({ jkt: 'a' }), { jkt: 'a' })
  t.strictSame(confirmationOf({ jkt: 'a', jwk: { kty: 'EC' }, n: 5 }), { jkt: 'a' })
  for (const cnf of [null, 'jkt', 7, ['jkt'], {}, { jkt: 5 }])
    t.strictSame(confirmationOf(cnf), {}, JSON.stringify(cnf))
  t.equal(grantConfirmation, 'cnf', 'it is stored under this name')
})

t.test('the type of a token is that of its binding, and bearer without one', async (t) => {
  const headers = { responseHeader: 'x' }
  const bindings = { x: { tokenType: 'X', ...headers }, jkt: { tokenType: 'DPoP', ...headers } }
  t.equal(tokenTypeOf(undefined, bindings), 'Bearer')
  t.equal(tokenTypeOf({ jkt: 'a' }, bindings), 'DPoP')
  t.equal(tokenTypeOf({ x: 'a' }, bindings), 'X')
  t.equal(tokenTypeOf({ 'x5t#S256': 'a' }, bindings), 'N_A', 'a binding that no feature declares')
  t.equal(tokenTypeOf({}, { toString: { tokenType: 'X', ...headers } }), 'N_A')
})

t.test('two keys are the same if every member of the first is in the second', async (t) => {
  const key = { jkt: 'a', 'x5t#S256': 'b' }
  t.equal(isSameKey(key, { ...key }), true)
  t.equal(isSameKey({ jkt: 'a' }, key), true)
  for (const other of [
    undefined,
    {},
    { jkt: 'a' },
    { jkt: 'a', 'x5t#S256': 'c' },
    { jkt: 'c', 'x5t#S256': 'b' },
  ])
    t.equal(isSameKey(key, other), false, JSON.stringify(other))
})
