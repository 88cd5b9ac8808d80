import { type PassedCheck, passedChecks } from '../../src/domain/check.ts'

/** Returns the checks that pass while `work` runs. */
export function passedDuring(work: () => void): readonly PassedCheck[] {
  const passed: PassedCheck[] = []
  const add = (passedCheck: unknown) => void passed.push(passedCheck as PassedCheck) // All the channel carries.
  passedChecks.subscribe(add)
  try {
    work()
  } finally {
    passedChecks.unsubscribe(add)
  }
  return passed
}
