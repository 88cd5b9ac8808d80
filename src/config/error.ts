/** Settings that cannot be used. A fault is one line: the setting, what is wrong with it, what to write. */
export class ConfigError extends Error {
  /** Everything that was found; the message is the first. */
  readonly faults: readonly string[]

  constructor(faults: string | readonly string[], options?: ErrorOptions) {
    // Names come from files and environments: a line break in one must not make two lines.
    const lines = [faults].flat().map((line) => line.replace(/\p{Cc}+/gu, ' '))
    super(lines[0], options)
    this.name = 'ConfigError'
    this.faults = lines
  }
}
