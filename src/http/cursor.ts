import { check } from '../domain/check.ts'

/** Writes the number of a row as a cursor: clients must not depend on its form. */
export function cursorOf(seq: number): string {
  return Buffer.from(`after ${seq}`).toString('base64url')
}

/** Reads a cursor. @throws {OAuthError} `invalid_request` */
export function readCursor(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined
  const [, seq] = /^after (\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  check(
    seq !== undefined,
    'lychgate-admin-cursor',
    'invalid_request',
    'after is not a cursor of an earlier response',
  )
  return Number(seq)
}
