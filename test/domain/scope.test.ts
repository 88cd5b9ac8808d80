import t from 'tap'
import { formatScope, isScope, narrowScope, parseScope } from '../../src/domain/scope.ts'

t.test('a scope keeps its order and drops duplicates and extra spaces', async (t) => {
  t.strictSame(parseScope('b a b'), ['b', 'a'])
  t.strictSame(parseScope('  courses:read   openid '), ['courses:read', 'openid'])
  t.strictSame(parseScope(''), [])
  t.strictSame(parseScope('   '), [])
})

t.test('the names of a scope are case-sensitive', async (t) => {
  t.strictSame(parseScope('a A'), ['a', 'A'])
})

t.test('every character of the RFC 6749 grammar is accepted, and no other', async (t) => {
  for (let code = 0; code <= 0x100; code++) {
    const allowed = (code >= 0x20 && code <= 0x7e && code !== 0x22 && code !== 0x5c) || code === 0x20
    const text = `a${String.fromCharCode(code)}b`
    t.equal(isScope(text), allowed, `character ${code}`)
    if (allowed) continue
    t.throws(() => parseScope(text), { code: 'invalid_scope', detail: { rule: 'rfc6749-3.3-scope-syntax' } })
  }
})

t.test('a trailing newline is rejected', async (t) => {
  t.throws(() => parseScope('openid\n'), { code: 'invalid_scope' })
})

t.test('narrowing keeps what is allowed, in the requested order', async (t) => {
  t.strictSame(narrowScope(['c', 'a', 'b'], ['a', 'b', 'x']), ['a', 'b'])
  t.strictSame(narrowScope(['b', 'a'], ['a', 'b']), ['b', 'a'])
  t.strictSame(narrowScope(['a'], []), [])
})

t.test('the wire form separates names by one space', async (t) => {
  t.equal(formatScope(['openid', 'courses:read']), 'openid courses:read')
  t.equal(formatScope([]), '')
})
