import { describeEvent } from '../../domain/audit.ts'
import type { AuditEvent } from '../../domain/model.ts'
import { isoInstant } from '../../system/system.ts'

/** The columns of `eventAsCsv`. */
export const csvHeader = 'at,event,by,from,sub,client_id,facts\r\n'

/** Returns an event as a line of JSON, with its facts among its members. */
export function eventAsJson(event: AuditEvent): string {
  const { facts, ...members } = describeEvent(event)
  return `${JSON.stringify({ ...members, at: isoInstant(event.at), ...facts })}\n`
}

/**
 * Returns an event as a line of CSV, RFC 4180. What a spreadsheet would take for a formula begins with an apostrophe.
 */
export function eventAsCsv({
  name,
  at,
  by,
  from = '',
  userId = '',
  clientId = '',
  facts,
}: AuditEvent): string {
  const cells = [isoInstant(at), name, by, from, userId, clientId, JSON.stringify(facts)]
  return `${cells.map((cell) => `"${cell.replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`).join(',')}\r\n`
}
