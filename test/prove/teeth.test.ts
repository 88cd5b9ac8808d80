/** A fixed sample of the deliberate faults: a server with one of them fails the clause that it breaks. */
import { rmSync } from 'node:fs'
import t from 'tap'
import { checksOf, faultsOfChecks, isNoticed, notTried, prepare, proveWith } from '../../scripts/teeth.ts'
import { freePort } from '../helpers/free-port.ts'

const sample = [
  'redirect-not-looked-up',
  'redirect-matched-by-prefix',
  'loopback-path-not-compared',
  'repeated-parameter-accepted',
  'response-type-token-accepted',
  'iss-dropped-on-success',
  'state-normalised',
  'answer-by-307',
  'verifier-not-compared',
  'downgrade-not-noticed',
  'code-works-twice',
  'code-of-another-client',
  'redirect-uri-left-out-at-exchange',
  'client-secret-not-checked',
  'two-methods-at-once',
  'assertion-signature-not-verified',
  'assertion-for-another-server',
  'reuse-does-not-revoke',
  'refresh-widens-the-scope',
  'access-token-refreshes',
  'foreign-token-revoked',
  'rotated-refresh-token-is-active',
  'reference-of-any-client',
  'request-object-not-verified',
  'device-code-of-another-client',
  'any-token-configures',
  'nonce-dropped',
  'prompt-login-skipped',
  'logout-leads-anywhere',
  'pages-may-be-framed',
]

const prepared = await prepare()
t.teardown(() => rmSync(prepared.folder, { recursive: true }))

t.test('each fault that is not tried is there, and the sample is tried', async (t) => {
  const ids = faultsOfChecks.map(({ id }) => id)
  t.strictSame(
    Object.keys(notTried).filter((id) => !ids.includes(id)),
    [],
  )
  t.equal(new Set(sample).size, 30)
  t.ok(sample.every((id) => notTried[id] === undefined))
})

// With what a client may leave PKCE out; prove.test.ts has the other checks.
for (const rule of ['rfc9700-2.1.1-downgrade', 'rfc6749-4.1.3-redirect-uri-required']) {
  t.test(`a server without a fault passes, asked about ${rule}`, async (t) => {
    const run = await proveWith({ id: 'control', rule }, await freePort(), prepared)
    t.ok(run.results.some(({ check, verdict }) => check.id === rule && verdict === 'pass'))
    t.notOk(isNoticed(run))
  })
}

for (const id of sample) {
  t.test(`a server with the fault ${id} fails`, async (t) => {
    const fault = faultsOfChecks.find((candidate) => candidate.id === id)
    if (fault === undefined) throw new Error(`${id} is no fault`)
    t.ok(isNoticed(await proveWith(fault, await freePort(), prepared, checksOf(fault.rule))))
  })
}
