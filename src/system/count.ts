import { channel } from 'node:diagnostics_channel'

/** Something that a feature counts, for `/metrics`. */
export interface Counted {
  /** Without the prefix that all metrics have. */
  readonly name: string
  readonly help: string
  /** Few values each: every combination is a time series. */
  readonly labels: Readonly<Record<string, string>>
  /** Of what goes on at the moment: whether it begins or ends. Absent: it is counted for good. */
  readonly change?: 1 | -1
}

export const countChannel = channel('lychgate:count')

/** Counts one. Costs nothing in a server without a management listener. */
export function count(name: string, help: string, labels: Counted['labels']): void {
  const counted: Counted = { name, help, labels }
  countChannel.publish(counted)
}

/** Counts one as long as it goes on; returns the function that ends it. */
export function countOngoing(name: string, help: string, labels: Counted['labels']): () => void {
  const counted: Counted = { name, help, labels, change: 1 }
  countChannel.publish(counted)
  return () => countChannel.publish({ ...counted, change: -1 })
}
