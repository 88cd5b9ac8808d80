/** One small deliberate fault in the source. */
interface Edit {
  /** Kebab-case, unique among all faults. */
  readonly id: string
  readonly file: string
  /** The shortest text that is in the file exactly once. */
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
