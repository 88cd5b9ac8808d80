import type { Text } from './text.ts'

/** Error codes of the core, each with the document that registers it and its HTTP status in a JSON response. */
export const errorStatus = {
  // RFC 6749 §4.1.2.1 and §5.2
  invalid_request: 400,
  invalid_client: 401,
  invalid_grant: 400,
  unauthorized_client: 400,
  unsupported_grant_type: 400,
  unsupported_response_type: 400,
  invalid_scope: 400,
  access_denied: 403,
  server_error: 500,
  temporarily_unavailable: 503,
  // RFC 6750 §3.1
  invalid_token: 401,
  insufficient_scope: 403,
  // RFC 7591 §3.2.2
  invalid_redirect_uri: 400,
  invalid_client_metadata: 400,
  // RFC 8707 §2
  invalid_target: 400,
  // OpenID Connect Core §3.1.2.6
  login_required: 400,
  consent_required: 400,
  account_selection_required: 400,
  interaction_required: 400,
  request_not_supported: 400,
  request_uri_not_supported: 400,
  registration_not_supported: 400,
  // OpenID Connect Core Unmet Authentication Requirements 1.0
  unmet_authentication_requirements: 400,
} as const

/** The error codes that features add; each declares its own. */
// biome-ignore lint/suspicious/noEmptyInterface: features fill it by declaration merging.
export interface FeatureErrors {}

export type OAuthErrorCode = keyof typeof errorStatus | keyof FeatureErrors

/** What the log and `lychgate explain` show about an error; contains no secret. */
export interface ErrorDetail {
  /** The rule that rejected: an id of the requirement ledger, or `lychgate-…` for a rule of this server alone. */
  readonly rule: string
  readonly stored?: string | number | readonly string[] | undefined
  readonly received?: string | number | readonly string[] | undefined
  /** Overrides the status of the code, for 405, 413, 415, 429 and the 400 form of `invalid_client`. */
  readonly status?: number
  /** It is part of every successful run, such as a poll before the user decides: not stored for `lychgate explain`. */
  readonly isRoutine?: true
  /** Extra response headers, such as `allow`, `retry-after` or `www-authenticate`. */
  readonly headers?: Readonly<Record<string, string>>
  /** Its page shows why, wherever it is: only a developer can see it or change it. */
  readonly isForDeveloper?: true
  /** What an error page shows the user instead of the general text. */
  readonly page?: {
    readonly title: Text
    readonly advice: Text
    /** `host` is shown where it leads away from this server. */
    readonly link?: { readonly url: string; readonly label: Text; readonly host?: string }
  }
  readonly cause?: unknown
}

/**
 * An error response. `message` is the public `error_description`: lower case, no final stop, names the
 * parameter, never echoes input, and stays within %x20-21 / %x23-5B / %x5D-7E (RFC 6749 §5.2).
 */
export class OAuthError extends Error {
  readonly code: OAuthErrorCode
  readonly detail: ErrorDetail

  constructor(code: OAuthErrorCode, description: string, detail: ErrorDetail) {
    super(description, detail.cause === undefined ? undefined : { cause: detail.cause })
    this.name = 'OAuthError'
    this.code = code
    this.detail = detail
  }

  get status(): number {
    const statuses: Readonly<Partial<Record<OAuthErrorCode, number>>> = errorStatus
    // RFC 6749 §5.2: 400 unless the document of the error says otherwise.
    return this.detail.status ?? statuses[this.code] ?? 400
  }

  /** Any Fastify application responses with these when the error is thrown in it. */
  get headers(): Readonly<Record<string, string>> {
    return this.detail.headers ?? {}
  }
}

/** Returns the beginning of a request id: it is short enough for an `error_description`, and `explain` finds it. */
export function referenceOf(requestId: string): string {
  return requestId.slice(0, referenceLength)
}

/** In characters. */
export const referenceLength = 8

/** A request id, or its reference. */
export const requestIdPattern = /^[\da-f]{8}(?:(?:-[\da-f]{4}){3}-[\da-f]{12})?$/i
