/** Where a setting comes from: the name of a flag or variable, or the path of a file. */
export interface Origin {
  readonly kind: 'file' | 'variable' | 'flag'
  readonly name: string
}

/** The origin of each setting by its option path; an option that is not here has its default. */
export type Origins = ReadonlyMap<string, Origin>

/** A setting as operators see it: a password is masked. */
export interface Setting {
  readonly option: string
  /** Absent if it has none. */
  readonly value: unknown
  readonly source: 'default' | Origin['kind']
  /** The name of the flag, the variable or the file. */
  readonly name?: string
}
