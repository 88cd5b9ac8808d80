/** A setting that cannot be used. The message is one line: the setting, what is wrong with it, what to write. */
export class ConfigError extends Error {
  constructor(line: string, options?: ErrorOptions) {
    // Names come from files and environments: a line break in one must not make two lines.
    super(line.replace(/\p{Cc}+/gu, ' '), options)
    this.name = 'ConfigError'
  }
}
