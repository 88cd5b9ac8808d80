/** One small deliberate fault in the source. */
interface Edit {
  /** Kebab-case, unique among all faults. */
  readonly id: string
  /** The file of the code. Where it has moved, `--check` says to which one. */
  readonly file: string
  /** The shortest code that occurs exactly once; layout, comments and trailing commas do not count. */
  readonly find: string
  readonly replace: string
}

/** A fault against a clause: a test with the clause's ledger id must detect it. */
export interface RuleFault extends Edit {
  readonly rule: string
}

/** A fault against no clause: some test of these files must detect it. */
export interface OwnFault extends Edit {
  readonly tests: readonly string[]
}

export type Fault = RuleFault | OwnFault
