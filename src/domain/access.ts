import type { Factors } from './authentication-context.ts'
import type { Group } from './group.ts'
import type { Remedy } from './interaction.ts'
import type { Client, Seconds } from './model.ts'

/*
 * Why a user may use a client or not, for operators. These are the same rules that requests are checked
 * by; here they are judged for a sign-in with everything that the user has set up, and none of them asks the user.
 */

/** What a rule is judged by. */
export interface AccessFacts {
  /** Absent: no client in particular. */
  readonly client?: Client
  /** The groups of the user, and those above them. */
  readonly groups: readonly Group[]
  readonly factors: Factors
  readonly now: Seconds
}

/** Whether a rule lets a user through. */
export interface AccessFinding {
  readonly passed: boolean
  readonly why: string
  /** What the user has to set up first, or by that time. */
  readonly lacks?: Pick<Remedy, 'kind' | 'from'>
}

/** A rule about who may use a client, with the settings of a server. */
export interface AccessRule {
  readonly about: 'group' | 'policy'
  /** The rule that a request violates. */
  readonly rule: string
  /** Whether it depends on settings, which the audit log does not record. */
  readonly ofSettings: boolean
  /** The member of client metadata that it depends on, and the fact by which an event of its change says its value. */
  readonly member: {
    readonly name: string
    readonly fact?: string
    readonly read?: (text: string) => unknown
  }
  readonly judge: (facts: AccessFacts) => AccessFinding
}
