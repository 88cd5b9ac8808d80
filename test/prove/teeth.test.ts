/** A small sample of the deliberate faults: a server with one of them fails the clause that it breaks. */
import t from 'tap'
import { faultsOfChecks, isNoticed, proveWith } from '../../scripts/teeth.ts'
import { freePort } from '../helpers/free-port.ts'

const sample = [
  'redirect-not-looked-up',
  'loopback-path-not-compared',
  'verifier-not-compared',
  'iss-dropped-on-success',
  'foreign-token-revoked',
  'nonce-dropped',
]

for (const id of sample) {
  t.test(`a server with the fault ${id} fails`, async (t) => {
    const fault = faultsOfChecks.find((one) => one.id === id)
    t.ok(fault !== undefined && isNoticed(await proveWith(fault, await freePort())))
  })
}
