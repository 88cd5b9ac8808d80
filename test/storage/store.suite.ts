import type { Test } from 'tap'
import { insert, type Write } from '../../src/domain/decision.ts'
import type { Store } from '../../src/storage/store.ts'
import { administrators } from './administrators.suite.ts'
import { contents } from './contents.suite.ts'
import { concurrency, grantWrites, transactions } from './decisions.suite.ts'
import { overview } from './overview.suite.ts'
import { removals, replacements, roundTrips, turns, uniqueness } from './records.suite.ts'
import * as sample from './samples.ts'
import { sessionEnds } from './session-end.suite.ts'
import { auditSweeps, sweeps } from './sweep.suite.ts'

/** A new, empty store that is closed when the test ends. */
export type OpenEmpty = (t: Test) => Promise<Store>

/** The records a grant needs to be found. */
export const grantOwners: readonly Write[] = [insert('client', sample.client), insert('user', sample.user)]
export const insertGrant: Extract<Write, { op: 'insertGrant' }> = { op: 'insertGrant', grant: sample.grant }

/** The tests that every adapter passes. */
export function storeSuite(t: Test, openEmpty: OpenEmpty): void {
  layoutSuite(t, openEmpty)
  t.test('sweep of the audit log', async (t) => auditSweeps(t, openEmpty))
}

/** The tests that every layout of a database passes. */
export function layoutSuite(t: Test, openEmpty: OpenEmpty): void {
  t.test('records', async (t) => {
    roundTrips(t, openEmpty)
    turns(t, openEmpty)
    replacements(t, openEmpty)
    uniqueness(t, openEmpty)
    removals(t, openEmpty)
  })
  t.test('session ends', async (t) => sessionEnds(t, openEmpty))
  t.test('administrators', async (t) => administrators(t, openEmpty))
  t.test('what the admin pages read', async (t) => overview(t, openEmpty))
  t.test('grants', async (t) => grantWrites(t, openEmpty))
  t.test('transactions', async (t) => {
    transactions(t, openEmpty)
    concurrency(t, openEmpty)
  })
  t.test('sweep', async (t) => sweeps(t, openEmpty))
  t.test('contents', async (t) => contents(t, openEmpty))
}
