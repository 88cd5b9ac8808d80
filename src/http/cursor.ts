import { check } from '../domain/check.ts'

/** Writes the number or the key of a row as a cursor: clients must not depend on its form. */
export function cursorOf(key: number | string): string {
  return Buffer.from(`after ${key}`).toString('base64url')
}

/** Reads a cursor that is a key: the longest one is a client_id that is a URL. @throws {OAuthError} `invalid_request` */
export function readKeyCursor(cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined
  const [, key] = /^after ([^\p{C}\p{Z}]{1,2048})$/u.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  check(
    key !== undefined,
    'lychgate-admin-cursor',
    'invalid_request',
    'after is not a cursor of an earlier response',
  )
  return key
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
