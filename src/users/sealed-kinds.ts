import type { RecordKind } from '../domain/record.ts'
import { secondFactorKind } from './rules/second-factor.ts'
import { upstreamKind } from './rules/upstream.ts'

/** Every kind of record that declares something sealed: a change of the operator's secret seals it again. */
export const sealedKinds: readonly RecordKind<unknown>[] = [secondFactorKind, upstreamKind]
