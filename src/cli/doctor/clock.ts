import type { Seconds } from '../../domain/model.ts'
import type { StoreFacts } from '../../storage/store-facts.ts'
import { httpInstant } from '../../system.ts'
import { type Answer, headerOf } from './ask.ts'
import { type Finding, ok, problem } from './finding.ts'

/** Lifetimes count in seconds, and clients allow little. */
const mostSkewSeconds = 5

/** The clock of the database against this one. */
export function* examineDatabaseClock({ clock }: Pick<StoreFacts, 'clock'>): Generator<Finding> {
  if (clock !== undefined) yield judge('the database', clock.at, clock.before, clock.after)
}

/** Compares the clock of the server that answers at the issuer with this one. */
export function* examineIssuerClock(answer: Answer, before: Seconds, after: Seconds): Generator<Finding> {
  const at = httpInstant(headerOf(answer, 'date') ?? '')
  if (at !== undefined) yield judge('the issuer', at, before, after)
}

function judge(whose: string, at: Seconds, before: Seconds, after: Seconds): Finding {
  const skew = at < before ? at - before : Math.max(0, at - after)
  if (Math.abs(skew) <= mostSkewSeconds) return ok('clock', `of ${whose} agrees with this one`)
  return problem(
    'clock',
    `of ${whose} is ${Math.abs(skew)} seconds ${skew > 0 ? 'ahead of' : 'behind'} this one`,
    {
      expected: `at most ${mostSkewSeconds} seconds apart`,
      found: `${skew} seconds`,
      change: ['timedatectl set-ntp true   (on both machines)'],
    },
  )
}
