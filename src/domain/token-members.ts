import type { Client, Grant, Seconds } from './model.ts'

/** What a token response is made from, RFC 6749 §5.1: all of it is committed. */
export interface IssuedTokens {
  readonly grant: Grant
  readonly client: Client
  readonly accessToken: string
  readonly idTokenSeconds: Seconds
  readonly now: Seconds
}

/** Makes further members of a token response, by their names on the wire. */
export type TokenMembers = (issued: IssuedTokens) => Promise<Readonly<Record<string, unknown>>>
