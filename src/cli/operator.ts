import { hostname, userInfo } from 'node:os'
import type { AuditContext } from '../domain/audit.ts'
import { systemClock } from '../system.ts'

/** Who runs this command, for the audit log: `user@host`, the user being the one who called sudo. */
export function operatorName(): string {
  return `${process.env['SUDO_USER'] || ownName()}@${hostname()}`
}

/** A command that changes something now. */
export function operatorContext(): AuditContext {
  return { by: 'operator', at: systemClock(), from: operatorName() }
}

/** A container may run as a user that its system has no name for. */
function ownName(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? 'unknown')
  }
}
