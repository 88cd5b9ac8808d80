/** A small sample of the deliberate faults: a server with one of them fails the clause that it breaks. */
import { rmSync } from 'node:fs'
import t from 'tap'
import { faultsOfChecks, isNoticed, notVisible, prepare, proveWith } from '../../scripts/teeth.ts'
import { freePort } from '../helpers/free-port.ts'

const sample = [
  'redirect-not-looked-up',
  'loopback-path-not-compared',
  'verifier-not-compared',
  'iss-dropped-on-success',
  'foreign-token-revoked',
  'nonce-dropped',
  'assertion-signature-not-verified',
  'downgrade-not-noticed',
]

const prepared = await prepare()
t.teardown(() => rmSync(prepared.folder, { recursive: true }))

t.test('what cannot be seen from outside is a fault, and has a reason', async (t) => {
  const known = faultsOfChecks.map(({ id }) => id)
  t.strictSame(
    Object.keys(notVisible).filter((id) => !known.includes(id)),
    [],
  )
  t.ok(sample.every((id) => notVisible[id] === undefined))
})

for (const id of sample) {
  t.test(`a server with the fault ${id} fails`, async (t) => {
    const fault = faultsOfChecks.find((one) => one.id === id)
    t.ok(fault !== undefined && isNoticed(await proveWith(fault, await freePort(), prepared)))
  })
}
