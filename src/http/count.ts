import { channel } from 'node:diagnostics_channel'

/** Something that a feature counts, for `/metrics`. */
export interface Counted {
  /** Without the prefix that all metrics have. */
  readonly name: string
  readonly help: string
  /** Few values each: every combination is a time series. */
  readonly labels: Readonly<Record<string, string>>
}

export const countChannel = channel('lychgate:count')

/** Counts one. Costs nothing in a server without a management listener. */
export function count(name: string, help: string, labels: Counted['labels']): void {
  const counted: Counted = { name, help, labels }
  countChannel.publish(counted)
}
