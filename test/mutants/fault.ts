/** One small deliberate fault in the source. */
interface Edit {
  /** Kebab-case, unique among all faults. */
  readonly id: string
  /** Where to look first. Code that has moved is found anywhere in src. */
  readonly file: string
  /** The shortest code that is there exactly once; layout, comments and trailing commas do not count. */
  readonly find: string
  readonly replace: string
}

/** A fault against a clause: a test that carries the clause's ledger id has to notice it. */
export interface RuleFault extends Edit {
  readonly rule: string
}

/** A fault against what no clause says: some test of these files has to notice it. */
export interface OwnFault extends Edit {
  readonly tests: readonly string[]
}

export type Fault = RuleFault | OwnFault
