/** One row of the consent table. */
export interface ConsentArea {
  readonly group: string
  readonly read?: ConsentScope
  readonly write?: ConsentScope
}

export interface ConsentScope {
  /** The scope name: the value of its checkbox `scope`. */
  readonly name: string
  readonly description: string
  readonly checked: boolean
  /** Cannot be unticked (openid). */
  readonly required: boolean
  /** Worth a second look: marked. */
  readonly sensitive: boolean
}
