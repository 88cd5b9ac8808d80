// What applications in TypeScript see of `lychgate/dev`: nothing here needs a package to be understood.
import type { Flow } from './flows/flow.ts'

/** A user of the server; the members of a users file. */
export interface Person {
  readonly username: string
  /** Absent: the user name and `-in-dev`. */
  readonly password?: string
  readonly email?: string
  /** Absent: true. */
  readonly email_verified?: boolean
  /** Absent: made from the user name, always the same. */
  readonly sub?: string
  /** Standard claims, OpenID Connect Core §5.1, and those your scopes open. */
  readonly claims?: Readonly<Record<string, string | number | boolean | Readonly<Record<string, string>>>>
}

/** A client that is there from the start, with the members of RFC 7591 §2. */
export interface ClientDescription {
  /** Absent: made from the name, always the same. */
  readonly client_id?: string
  /** Absent: one is made for a client that needs one, and told in `server.clients`. */
  readonly client_secret?: string
  readonly client_name: string
  readonly redirect_uris: readonly string[]
  readonly post_logout_redirect_uris?: readonly string[]
  /** Absent: none. */
  readonly token_endpoint_auth_method?: string
  /** Absent: every scope. */
  readonly scope?: string
  /** Absent: RS256. */
  readonly id_token_signed_response_alg?: 'RS256' | 'ES256' | 'EdDSA'
  /** Whether users are asked: always, for new scopes only, or never. Absent: as `lychgate client add` has it. */
  readonly consent?: 'always' | 'remember' | 'skip'
}

/** What can be done to the time; the members of `POST /_dev/clock`. */
export interface TimeChange {
  readonly reset?: boolean
  /** An instant such as `2027-01-01T00:00:00Z`, or seconds since the epoch. */
  readonly set?: string | number
  /** A duration such as `31d` or `-1h`, or seconds. */
  readonly advance?: string | number
  readonly freeze?: boolean
}

/** The server's time. */
export interface Time {
  /** Seconds since the epoch. */
  readonly now: number
  readonly iso: string
  readonly offset_seconds: number
  readonly frozen: boolean
  /** It went back. */
  readonly warning?: string
}

/** What tokens are wanted for; the members of `POST /_dev/token`. */
export interface TokenRequest {
  /** User name, email address or sub. */
  readonly user: string
  /** Absent: a client of the development server's own. */
  readonly client_id?: string
  readonly scope?: string
  readonly resource?: string | readonly string[]
  readonly nonce?: string
  /** Seconds, or a duration such as `5m`; negative: it ended that long ago. */
  readonly expires_in?: number | string
  /** When it was issued: an instant, or a duration from now. */
  readonly issued_at?: number | string
}

/** Tokens, RFC 6749 §5.1, and whose they are. */
export interface IssuedTokens {
  readonly access_token: string
  readonly token_type: 'Bearer'
  readonly expires_in: number
  readonly refresh_token?: string
  readonly id_token?: string
  readonly scope: string
  readonly sub: string
  readonly client_id: string
  readonly issued_at: number
  readonly expires_at: number
}

/** What is to go wrong; the members of `POST /_dev/faults`. */
export interface FaultRequest {
  readonly fault: 'drop-after-commit' | 'truncate' | 'reset-before' | 'delay' | '503'
  /** The name of an endpoint, which is its member of the metadata without `_endpoint`, or a path. */
  readonly endpoint?: string
  readonly client_id?: string
  /** How many requests; absent: one. */
  readonly requests?: number
  readonly ms?: number
  readonly retry_after?: number
}

/** How a server is started; everything has a default. */
export interface StartOptions {
  /** Absent or 0: a free one. */
  readonly port?: number
  /** Absent: alice and bob. */
  readonly people?: readonly Person[]
  readonly clients?: readonly ClientDescription[]
  /** Where the time begins, or a clock of your own: seconds since the epoch. */
  readonly clock?: TimeChange | (() => number)
  /** Options, nested as in the configuration file. */
  readonly config?: Readonly<Record<string, unknown>>
  /** Gets every log line, a JSON object each; absent: nothing is logged. */
  readonly log?: (line: string) => void
}

/** A running server. */
export interface DevelopmentServer extends AsyncDisposable {
  readonly issuer: string
  /** The clients it was started with, in their order. */
  readonly clients: readonly { readonly client_id: string; readonly client_secret?: string }[]
  /** The server's time, in seconds since the epoch. */
  now(): number
  /** Tokens of a user without signing in. @throws {Error} with the server's error_description. */
  token(request: TokenRequest): Promise<IssuedTokens>
  /** Moves the time forward; every lifetime, sweep and key follows before this resolves. */
  advance(duration: string | number): Promise<Time>
  /** Any other change of the time. */
  time(change: TimeChange): Promise<Time>
  /** Lets the next requests meet a fault. */
  fault(request: FaultRequest): Promise<void>
  /** Forgets all faults. */
  clearFaults(): Promise<void>
  /** Keeps all there is now under a name. */
  snapshot(name: string): Promise<void>
  /** Makes it again what it was when the snapshot was taken, its time included. */
  restore(name: string): Promise<void>
  /** A second issuer that goes on from a snapshot by itself; the time is that of this server. */
  fork(name: string, as?: string): Promise<{ readonly issuer: string }>
  /** What happened so far, the newest flow first: every request, and which rule accepted or rejected it. */
  flows(): Promise<readonly Flow[]>
  /** Answers what is on the wire, and ends. */
  stop(): Promise<void>
}
