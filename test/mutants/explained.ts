import type { Explanation } from '../../scripts/mutants/generated.ts'

/** The generated mutations that no test can notice: their program does the same. */
export const explainedMutations: readonly Explanation[] = []
