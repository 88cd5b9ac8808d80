// The public types of `lychgate/dev`. They use no package.
import type { Flow } from './flows/flow.ts'

/** A user of the server; the members of a users file. */
export interface UserDescription {
  readonly username: string
  /** Absent: the user name and `-in-dev`. */
  readonly password?: string
  readonly email?: string
  /** Absent: true. */
  readonly email_verified?: boolean
  /** Absent: derived from the user name, always the same. */
  readonly sub?: string
  /** Standard claims, OpenID Connect Core §5.1, and the claims of your scopes. */
  readonly claims?: Readonly<Record<string, string | number | boolean | Readonly<Record<string, string>>>>
  /** Values of `accounts.attributes`. */
  readonly attributes?: Readonly<Record<string, string | number | boolean>>
  /** The names of groups, which are created. */
  readonly groups?: readonly string[]
}

/** A client that the server adds at start, with the members of RFC 7591 §2. */
export interface ClientDescription {
  /** Absent: derived from the name, always the same. */
  readonly client_id?: string
  /** Absent: generated for a client that needs one, see `server.clients`. */
  readonly client_secret?: string
  readonly client_name: string
  /** Absent for a machine (`client_credentials`) and a resource server. */
  readonly redirect_uris?: readonly string[]
  /** Absent: authorization_code and refresh_token. */
  readonly grant_types?: readonly string[]
  /** The APIs that a machine gets tokens for. For a resource server: it may introspect tokens for these. */
  readonly resources?: readonly string[]
  readonly post_logout_redirect_uris?: readonly string[]
  /** Absent: none, with redirect URIs; otherwise a secret, by basic or post. */
  readonly token_endpoint_auth_method?: string
  /** Absent: every scope. */
  readonly scope?: string
  /** Absent: RS256. */
  readonly id_token_signed_response_alg?: 'RS256' | 'ES256' | 'EdDSA'
  /** For `private_key_jwt`: its public keys, or where they are. */
  readonly jwks?: { readonly keys: readonly object[] }
  readonly jwks_uri?: string
  /** Where it is sent a logout token when a session ends; loopback may be http. */
  readonly backchannel_logout_uri?: string
  /** Whether its tokens end with the session of the user. Absent: standalone. */
  readonly refresh_tokens?: 'session' | 'standalone'
  /** Whether users are asked: always, only for new scopes, or never. Absent: as for `lychgate client add`. */
  readonly consent?: 'always' | 'remember' | 'skip'
}

/** A change of the time; the members of `POST /_dev/clock`. */
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
  /** Present if the time went back. */
  readonly warning?: string
}

/** Which tokens to issue; the members of `POST /_dev/token`. */
export interface TokenRequest {
  /** User name, email address or sub. */
  readonly user: string
  /** Absent: a client that the server adds. */
  readonly client_id?: string
  readonly scope?: string
  readonly resource?: string | readonly string[]
  readonly nonce?: string
  /** Seconds, or a duration such as `5m`; negative: it expired that long ago. */
  readonly expires_in?: number | string
  /** When it was issued: an instant, or a duration from now. */
  readonly issued_at?: number | string
}

/** Tokens, RFC 6749 §5.1, and their user and client. */
export interface IssuedTokens {
  readonly access_token: string
  readonly token_type: string
  readonly expires_in: number
  readonly refresh_token?: string
  readonly id_token?: string
  readonly scope: string
  readonly sub: string
  readonly client_id: string
  readonly issued_at: number
  readonly expires_at: number
}

/** A fault; the members of `POST /_dev/faults`. */
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

/** How a server is started. */
export interface StartOptions {
  /** Absent or 0: a free port. */
  readonly port?: number
  /** Absent: alice and bob. */
  readonly users?: readonly UserDescription[]
  readonly clients?: readonly ClientDescription[]
  /** The time at start, or your own clock, which returns seconds since the epoch. */
  readonly clock?: TimeChange | (() => number)
  /** Options, nested as in the configuration file. */
  readonly config?: Readonly<Record<string, unknown>>
  /** Receives every log line, a JSON object. Absent: nothing is logged. */
  readonly log?: (line: string) => void
}

/** A running server. */
export interface DevelopmentServer extends AsyncDisposable {
  readonly issuer: string
  /** The clients of the options, in their order. */
  readonly clients: readonly { readonly client_id: string; readonly client_secret?: string }[]
  /** The server's time, in seconds since the epoch. */
  now(): number
  /** Issues tokens for a user without a sign-in. @throws {Error} with the server's error_description. */
  token(request: TokenRequest): Promise<IssuedTokens>
  /** Moves the time forward. Resolves after sweeps and keys have followed. */
  advance(duration: string | number): Promise<Time>
  /** Changes the time in any other way. */
  time(change: TimeChange): Promise<Time>
  /** Applies a fault to the next requests. */
  fault(request: FaultRequest): Promise<void>
  /** Removes all faults. */
  clearFaults(): Promise<void>
  /** Stores the whole state under a name. */
  snapshot(name: string): Promise<void>
  /** Restores the state and the time of a snapshot. */
  restore(name: string): Promise<void>
  /** Starts a second issuer from a snapshot, with the clock of this server. */
  fork(name: string, as?: string): Promise<{ readonly issuer: string }>
  /** Every flow, newest first, with each request and the rules that accepted or rejected it. */
  flows(): Promise<readonly Flow[]>
  /** Finishes pending requests and stops. */
  stop(): Promise<void>
}
