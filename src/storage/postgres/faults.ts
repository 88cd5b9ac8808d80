import { DrizzleQueryError } from 'drizzle-orm'
import { RecordExists, StoreUnavailable } from '../store.ts'

/** Errors of the server, by SQLSTATE: connection, resources, shutdown, system, lock and statement timeouts, read-only. */
const unavailable = /^(08|53|57P|58|55P03|57014|25P0[34]|25006)/
/** Errors of the network, by errno name, and the driver's own, which have only a message. */
const network = /^E[A-Z_]+$/
const driver = /connection terminated|connection error|timeout exceeded|closed|after calling end on the pool/i

/**
 * The error callers see for a fault of the database; what a decision threw stays itself. Drizzle's wrapper is taken
 * off, because its message contains the parameters.
 */
export function translate(fault: unknown): unknown {
  const error = fault instanceof DrizzleQueryError ? fault.cause : fault
  const code = codeOf(error)
  if (code === '23505') return new RecordExists(error)
  if (unavailable.test(code) || network.test(code)) return new StoreUnavailable(error)
  if (code === '' && isDriverError(error)) return new StoreUnavailable(error)
  return error
}

/** Whether a transaction lost against another (serialization failure, deadlock) and may be tried again. */
export function isConflict(fault: unknown): boolean {
  return ['40001', '40P01'].includes(codeOf(fault))
}

function codeOf(fault: unknown): string {
  return fault instanceof Error && 'code' in fault ? String(fault.code) : ''
}

function isDriverError(fault: unknown): boolean {
  return fault instanceof Error && fault.constructor === Error && driver.test(fault.message)
}
