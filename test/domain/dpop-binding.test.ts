import t from 'tap'
import type { Client } from '../../src/domain/model.ts'
import {
  assertBoundKey,
  assertMayOmitProof,
  extraOfProof,
  keyOf,
  readKey,
} from '../../src/specs/rfc9449-dpop/rules.ts'
import { passedDuring } from '../helpers/checks.ts'
import { bytesOf, publicClient } from '../helpers/samples.ts'

const [jkt, otherJkt] = [bytesOf('key', 32), bytesOf('another key', 32)]

t.test('a pushed request is bound to the key of its proof', async (t) => {
  // `as`: nothing else of the proof is read.
  const extra = extraOfProof({ jkt } as Parameters<typeof extraOfProof>[0])
  t.strictSame(extra, { dpopKey: jkt })
  t.equal(keyOf(extra), jkt)
  for (const none of [undefined, {}, { dpopKey: 7 }]) t.equal(keyOf(none), undefined, JSON.stringify(none))
})

t.test('dpop_jkt binds a request, and must be the key of the proof that a push has', async (t) => {
  t.strictSame(readKey({ dpop_jkt: jkt }, {}), { dpopKey: jkt })
  t.strictSame(readKey({ dpop_jkt: jkt }, { dpopKey: jkt }), { dpopKey: jkt })
  t.equal(readKey({}, { dpopKey: jkt }), undefined, 'the proof has bound it')
  t.strictSame(
    passedDuring(() => readKey({ dpop_jkt: jkt }, { dpopKey: jkt })),
    [
      { rule: 'rfc9449-10-dpop-jkt', found: 'dpop_jkt is a thumbprint', stored: undefined, received: jkt },
      { rule: 'rfc9449-10.1-par', found: 'dpop_jkt and the DPoP header agree', stored: jkt, received: jkt },
    ],
  )
  t.throws(() => readKey({ dpop_jkt: otherJkt }, { dpopKey: jkt }), {
    code: 'invalid_request',
    message: 'dpop_jkt is not the key of the DPoP header',
    detail: { rule: 'rfc9449-10.1-par', stored: jkt, received: otherJkt },
  })
})

t.test('dpop_jkt is 43 characters of base64url, and of another text the log has the first 100', async (t) => {
  for (const wrong of [jkt.slice(1), `${jkt}a`, `${jkt}=`, `=${jkt}`, jkt.replace(/.$/, '+')])
    t.throws(
      () => readKey({ dpop_jkt: wrong }, {}),
      {
        code: 'invalid_request',
        message: 'dpop_jkt is not a SHA-256 thumbprint in base64url',
        detail: { rule: 'rfc9449-10-dpop-jkt', received: wrong },
      },
      wrong,
    )
  t.throws(() => readKey({ dpop_jkt: `1${'2'.repeat(98)}34` }, {}), {
    code: 'invalid_request',
    detail: { rule: 'rfc9449-10-dpop-jkt', received: /^12{98}3$/ },
  })
})

t.test('only a client that registered for bound tokens must send a proof', async (t) => {
  const registered = (value: unknown): Client => ({
    ...publicClient,
    extra: { dpop_bound_access_tokens: value },
  })
  for (const client of [publicClient, registered(false), registered('true')])
    t.doesNotThrow(() => assertMayOmitProof(client))
  t.throws(() => assertMayOmitProof(registered(true)), {
    code: 'invalid_dpop_proof',
    message: 'this client registered for bound tokens (dpop_bound_access_tokens); send a DPoP header',
    detail: { rule: 'rfc9449-5.2-client-requires' },
  })
})

t.test('a bound code or refresh token is used with its key alone', async (t) => {
  const kinds = [
    ['code', 'code', 'rfc9449-10-dpop-jkt'],
    ['refresh', 'refresh token', 'rfc9449-5-refresh-bound-public'],
  ] as const
  for (const [kind, what, rule] of kinds) {
    t.strictSame(
      passedDuring(() => assertBoundKey({ jkt }, { jkt }, kind)),
      [{ rule, found: `the ${what} is bound to this key`, stored: jkt, received: jkt }],
    )
    const rejection = (received: string) => ({
      code: 'invalid_grant',
      message: `the ${what} is bound to another key; send a DPoP proof by its key`,
      detail: { rule, stored: jkt, received },
    })
    t.throws(() => assertBoundKey({ jkt }, { jkt: otherJkt }, kind), rejection(otherJkt))
    t.throws(() => assertBoundKey({ jkt }, undefined, kind), rejection('no proof'))
  }
})
