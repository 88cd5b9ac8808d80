import type { Exchange, Flow } from './flow.ts'

/** A flow in a list. */
export interface FlowLine {
  readonly id: string
  readonly title: string
  readonly person?: string
  readonly startedAt: number
  readonly steps: readonly { readonly step: string; readonly times: number; readonly refused: boolean }[]
  readonly refused: number
}

/** Every flow, and what belongs to none. */
export interface FlowsPage {
  readonly flows: readonly FlowLine[]
  readonly loose: readonly Exchange[]
}

/** One flow from its first request to its last. */
export interface FlowPage {
  readonly flow: Flow
  readonly title: string
  readonly steps: FlowLine['steps']
}

/** A flow in one line: the same step several times over is told once. */
export function lineOf(flow: Flow): FlowLine {
  return {
    id: flow.id,
    title: titleOf(flow),
    ...(flow.person !== undefined && { person: flow.person }),
    startedAt: flow.startedAt,
    steps: stepsOf(flow.exchanges),
    refused: flow.refused,
  }
}

/** What a flow is called: by its client. */
export function titleOf({ client, id }: Flow): string {
  return client?.name ?? client?.id ?? `Flow ${id}`
}

function stepsOf(exchanges: readonly Exchange[]): FlowLine['steps'] {
  const steps: { step: string; times: number; refused: boolean }[] = []
  for (const { step, refused } of exchanges) {
    const last = steps.at(-1)
    if (last?.step === step && last.refused === (refused !== undefined)) last.times += 1
    else steps.push({ step, times: 1, refused: refused !== undefined })
  }
  return steps
}
