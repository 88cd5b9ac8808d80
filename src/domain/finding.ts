/** The result of one check of a set-up, by `lychgate doctor` or on the admin overview. */
export interface Finding {
  readonly check: string
  readonly level: 'ok' | 'warning' | 'problem' | 'not checked'
  readonly said: string
  readonly expected?: string
  readonly found?: string
  /** What to change: lines of the configuration of the server or of the proxy, or a command. */
  readonly change?: readonly string[]
}
