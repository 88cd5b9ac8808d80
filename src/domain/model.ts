import type { Confirmation } from './confirmation.ts'
/** Integer seconds since the epoch for instants (`…At`, exclusive), integer seconds for durations (`…Seconds`). */
export type Seconds = number

/** A list of scope names, RFC 6749 §3.3, in the requested order and without repetition. */
export type Scope = readonly string[]

/** SHA-256 of a secret, base64url without padding: the only form in which secrets are stored. */
export type Hash = string

export type SigningAlgorithm = 'RS256' | 'ES256' | 'EdDSA'

/** The grant types of a client that names none. */
export const defaultGrantTypes: readonly string[] = ['authorization_code', 'refresh_token']

/** How a client was created: it registered itself (RFC 7591), or an operator added it. */
export const clientOrigins = ['registered', 'integration', 'resource-server'] as const
export type ClientOrigin = (typeof clientOrigins)[number]

/** When the consent page is shown: always, for new scopes only, or never (first party). */
export const consentRules = ['always', 'remember', 'skip'] as const

/** A client secret that was replaced and is still accepted for a while. */
export interface PreviousSecret {
  readonly hash: Hash
  readonly expiresAt: Seconds
  /** To the day. */
  readonly usedAt?: Seconds
}

/** A client, RFC 6749 §2, with the metadata of RFC 7591 §2 that this server understands. */
export interface Client {
  readonly id: string
  readonly origin: ClientOrigin
  readonly issuedAt: Seconds
  /** The last time it was used, to the day; a registered client unused for long is swept. */
  readonly usedAt: Seconds
  /** An operator locked it since then: it cannot authenticate, and its grants are invalid. */
  readonly lockedAt?: Seconds
  /** The network a client registered itself from, see address-prefix.ts: shown on the consent page. */
  readonly registeredFrom?: string
  readonly name?: string
  /** `client_name#fr` and its like, RFC 7591 §2.2, by the full member name. */
  readonly localized: Readonly<Record<string, string>>
  readonly applicationType: 'native' | 'web'
  /** Exactly as registered, never normalised. */
  readonly redirectUris: readonly string[]
  readonly postLogoutRedirectUris: readonly string[]
  /** How it authenticates, RFC 7591 §2; features declare the methods. */
  readonly authenticationMethod: string
  /** No method was configured: the secret may be sent by `client_secret_basic` or `client_secret_post`. */
  readonly anySecretMethod?: true
  readonly secretHash?: Hash
  /** The previous secret, while it is accepted in addition to the current one. */
  readonly previousSecret?: PreviousSecret
  /** When the current secret was last used, to the day; recorded while there is a previous one. */
  readonly secretUsedAt?: Seconds
  /** Features declare the grant types. */
  readonly grantTypes: readonly string[]
  /** The limit of what it may request; absent: every scope of the catalogue. */
  readonly scope?: Scope
  readonly contacts: readonly string[]
  readonly clientUri?: string
  readonly logoUri?: string
  readonly policyUri?: string
  readonly tosUri?: string
  readonly softwareId?: string
  readonly softwareVersion?: string
  readonly idTokenSignedResponseAlg: SigningAlgorithm
  readonly defaultMaxAgeSeconds?: Seconds
  readonly requireAuthTime: boolean
  /** RFC 7592: hash of the registration access token. */
  readonly registrationTokenHash?: Hash
  /** The key that the registration access token is bound to; absent: it is a bearer token. */
  readonly registrationKey?: Confirmation
  /**
   * Whether its ID Tokens have the claims of scopes; `default`: those of a confidential client. Absent, they have none: it
   * registered itself, or a previous version added it.
   */
  readonly idTokenClaims?: 'scope' | 'none' | 'default'
  /** Clients added by an operator only: PKCE may be left out, for the OpenID basic certification plan. */
  readonly pkceOptional: boolean
  /** Since when PKCE depends on what it sends: it is optional until it was used once, and required from then on. */
  readonly pkceAutoSince?: Seconds
  /** When it had used PKCE: `pkceOptional` is false from then on. */
  readonly pkceLearnedAt?: Seconds
  /** Other than `always` for clients added by an operator only. */
  readonly consent: (typeof consentRules)[number]
  /** Resource servers only: the resource identifiers whose tokens it may introspect, RFC 7662 §4. */
  readonly introspects: readonly string[]
  /** The resources it may get tokens for where no user approves; absent: every one, RFC 8707 §2. */
  readonly resources?: readonly string[]
  /** Absent: it registered itself, or an operator added it. */
  readonly published?: PublishedClient
  /** Present: it registered itself with an initial access token, RFC 7591 §3. */
  readonly admitted?: AdmittedClient
  /** What features store about a client, by the name of its metadata member (RFC 7591 §2). */
  readonly extra?: Readonly<Record<string, unknown>>
}

/** A client that publishes its metadata itself. */
export interface PublishedClient {
  /** Where: users see it. */
  readonly host: string
  /** Identifies the terms a consent is tied to, in addition to the scope: users are asked again when it changes. */
  readonly terms: Hash
  /** Identifies the document that the metadata is from; absent: a previous version stored it. */
  readonly digest?: Hash
  /** The network of the request that named it, see address-prefix.ts; absent: it is stored. */
  readonly namedFrom?: string
}

/** A client that registered itself with an initial access token, and may have what an operator's client may have. */
export interface AdmittedClient {
  /** The name of the token for operators. */
  readonly by: string
  /** Whether its redirect URIs may be https. */
  readonly redirects: 'https' | 'loopback'
  /** Metadata that the operator set with the token, and that no update changes. */
  readonly extra?: Client['extra']
  /** Identifies the terms a consent is tied to, in addition to the scope: users are asked again when it changes. */
  readonly terms: Hash
}

/** Standard claims of a user, OpenID Connect Core §5.1, under their wire names. */
export type UserClaims = Readonly<
  Record<string, string | number | boolean | Readonly<Record<string, string>>>
>

/** The values of the attributes that an operator declares (`accounts.attributes`), by their names. */
export type UserAttributes = Readonly<Record<string, string | number | boolean>>

/** An End-User. `id` is the `sub` of OpenID Connect: never reassigned. */
export interface User {
  readonly id: string
  /** Canonical: trimmed, NFKC, lower case. Unique. */
  readonly username: string
  /** Canonical email address, also a way to sign in. Unique. */
  readonly email?: string
  /** PHC string, argon2id; absent while the user has no password: invited, or with passkeys only. */
  readonly passwordHash?: string
  readonly claims: UserClaims
  /** Also of attributes that are no longer declared; absent: none. */
  readonly attributes?: UserAttributes
  /** Made by the development server; a production server does not start with such a user. */
  readonly seeded: boolean
  /** The time at which an operator locked the user. */
  readonly lockedAt?: Seconds
  readonly createdAt: Seconds
  readonly updatedAt: Seconds
}

/** A passkey of a user, Web Authentication Level 3 §4. */
export interface Passkey {
  /** The credential id, base64url. */
  readonly id: string
  readonly userId: string
  /** COSE, base64url. */
  readonly publicKey: string
  readonly counter: number
  readonly transports: readonly string[]
  /** The name the user gave it. */
  readonly name: string
  /** It is stored on more than one device. */
  readonly backedUp: boolean
  readonly createdAt: Seconds
  readonly usedAt: Seconds
}

/** The one-time codes of a user, RFC 6238, and the recovery codes that stand in for them. */
export interface SecondFactor {
  readonly userId: string
  /** The shared secret, encrypted by the operator's secret. */
  readonly sealedSecret: string
  /** When the user first entered a code; before, no code is required. */
  readonly confirmedAt?: Seconds
  /** The time step of the last code that was taken: none is taken twice, RFC 6238 §5.2. */
  readonly usedStep?: number
  readonly recoveryHashes: readonly Hash[]
  readonly createdAt: Seconds
}

/** A user with everything that signs them in, and the sessions they have. */
export interface UserCredentials {
  readonly user: User
  readonly passkeys: readonly Passkey[]
  readonly secondFactor?: SecondFactor
  readonly sessions: readonly Session[]
}

/** What a one-time link is for. */
export type LinkPurpose =
  | 'first-user'
  | 'invitation'
  | 'password-reset'
  | 'email-verification'
  | 'email-change'
  | 'email-undo'

/** A link for a single use. It contains a secret; `id` is its hash. */
export interface OneTimeLink {
  readonly id: Hash
  readonly purpose: LinkPurpose
  /** The user it is for; absent: a user yet to be created. */
  readonly userId?: string
  /** The address it was sent to, or that it proves. */
  readonly email?: string
  readonly createdAt: Seconds
  readonly expiresAt: Seconds
}

/** A browser's session. The cookie contains a secret; `id` is its hash. */
export interface Session {
  readonly id: Hash
  readonly userId: string
  readonly authenticatedAt: Seconds
  /** RFC 8176 authentication method references. */
  readonly methods: readonly string[]
  /** The name of the browser, in a few words: `Firefox, Linux`. */
  readonly browser?: string
  /** The network the user signed in from, see address-prefix.ts. */
  readonly from?: string
  readonly createdAt: Seconds
  /** Moves forward with use, never past `expiresAt`. */
  readonly idleExpiresAt: Seconds
  readonly expiresAt: Seconds
}

/** The supported part of the `claims` parameter, OpenID Connect Core §5.5. */
export interface ClaimsRequest {
  readonly userinfo: readonly string[]
  readonly idToken: readonly string[]
}

/** The requested authentication context classes, in order of preference; see authentication-context.ts. */
export interface RequestedAcr {
  readonly values: readonly string[]
  /** Any other is a failed sign-in, OpenID Connect Core §5.5.1.1. */
  readonly essential: boolean
}

/** The requirements for a sign-in. */
export interface SignInRequest {
  readonly prompt: readonly string[]
  readonly maxAgeSeconds?: Seconds
  readonly loginHint?: string
  /** Languages for the pages, the best first, OpenID Connect Core §3.1.2.1. */
  readonly uiLocales?: readonly string[]
  /** The only user who may sign in, from `id_token_hint` or `claims`. */
  readonly requiredSub?: string
  readonly acr?: RequestedAcr
}

/** A pending request for an account page, while its user signs in. */
export interface PageRequest extends SignInRequest {
  /** Its path below the issuer. */
  readonly page: string
  /** The policy of sign-ins applies to it, and that of this client. */
  readonly policy?: { readonly clientId?: string }
}

/** A validated authorization request, RFC 6749 §4.1.1. Stored once; the browser only gets a handle to it. */
export interface AuthorizationRequest extends SignInRequest {
  readonly clientId: string
  readonly redirectUri: string
  /** False if the client omitted `redirect_uri` and its only registered one is used. */
  readonly redirectUriSent: boolean
  readonly responseMode: string
  readonly state?: string
  readonly scope: Scope
  readonly resource: readonly string[]
  readonly codeChallenge?: string
  readonly nonce?: string
  readonly claims: ClaimsRequest
  /** Scopes that open some of `claims` and were not requested by name: they need consent too. */
  readonly claimScope?: Scope
  /** What features store with it, each under a name of its own. */
  readonly extra?: Readonly<Record<string, unknown>>
}

/** A sign-in whose password was right and whose second factor is still required. */
export interface PendingSecondFactor {
  readonly userId: string
  /** Hash of the password hash that was verified: a new password voids it. */
  readonly password: Hash
  readonly at: Seconds
  /** The sign-in at an upstream that took the place of a password. */
  readonly elsewhere?: SignInElsewhere
}

/** A sign-in at an upstream, of a user who is linked to it. */
export interface SignInElsewhere extends Pick<Session, 'methods' | 'authenticatedAt' | 'expiresAt'> {
  readonly upstream: string
  /** Of the upstream: another one may have its id later. */
  readonly issuer: string
  readonly linkId: Hash
}

/** The pending request in one browser: a client's authorization request, or an account page. */
export interface Interaction {
  readonly id: string
  /** Hash of the browser cookie that may continue it. */
  readonly browserHash: Hash
  readonly request: AuthorizationRequest | PageRequest
  readonly pendingSecondFactor?: PendingSecondFactor
  /** The challenge of a passkey, base64url; valid once. */
  readonly challenge?: string
  /** The session made or confirmed for this very request: satisfies `prompt=login` and `max_age`. */
  readonly authenticatedSessionId?: Hash
  /** The user chose an account, `prompt=select_account`. */
  readonly userChosen: boolean
  /** The user will set up later what is not required yet. */
  readonly enrolsLater?: true
  readonly createdAt: Seconds
  readonly expiresAt: Seconds
}

/** Remembered consent of a user for a client; the key is user and client. */
export interface Consent {
  readonly userId: string
  readonly clientId: string
  /** Scope by resource: consent for one API does not extend to another. */
  readonly allowed: readonly AllowedScope[]
  readonly grantedAt: Seconds
  /** Those of a client that publishes its metadata. */
  readonly terms?: Hash
}

export interface AllowedScope {
  readonly resource: string
  readonly scope: Scope
}

/** The access token that another one was exchanged for, RFC 8693 §2.1. */
export interface ExchangedToken {
  readonly grantId: string
  readonly tokenId: string
  /** The client that the user approved: where that token was exchanged for, too, of the first one. */
  readonly clientId: string
}

/**
 * One grant, from the authorization code to the last refresh token: see grant.ts for its states. `seq` 0: its code is
 * not redeemed. `seq` n > 0: refresh token n is the current one.
 */
export interface Grant {
  /** 16 base64url characters, 12 bytes, ordered by time. */
  readonly id: string
  /** Per-grant key of its handles: 22 base64url characters, 16 bytes. */
  readonly secret: string
  readonly clientId: string
  /** Who approved it; absent: the client acts for itself, RFC 6749 §4.4. */
  readonly userId?: string
  readonly scope: Scope
  readonly resource: readonly string[]
  /** Empty without an authorization request. */
  readonly redirectUri: string
  readonly redirectUriSent: boolean
  /** Base64url; after the redemption its first bytes, which distinguish a replay from a guess. See pkce.ts. */
  readonly codeChallenge?: string
  /** Deleted by the redemption: only the first ID Token has it. */
  readonly nonce?: string
  /** When the user signed in; without a user, when the client authenticated. */
  readonly authenticatedAt: Seconds
  readonly methods: readonly string[]
  /** The requested context class that the sign-in satisfies; absent if none was requested or satisfied. */
  readonly acr?: string
  /** `auth_time` was requested and must be in every ID Token. */
  readonly authTimeOwed: boolean
  readonly claims: ClaimsRequest
  /** What features store about a grant, by the name of the member: `cnf`, say. */
  readonly extra?: Readonly<Record<string, unknown>>
  /** No user approved it: it has one access token, which is valid as long as this one, and allows no more. */
  readonly exchangedFrom?: ExchangedToken
  readonly approvedAt: Seconds
  readonly seq: number
  /** When `seq` last rose: redemption or the last rotation. */
  readonly rotatedAt?: Seconds
  /** End of the current refresh token (idle and absolute limits applied). */
  readonly refreshExpiresAt?: Seconds
  /** No refresh token is valid after this. */
  readonly absoluteExpiresAt: Seconds
  /** Everything issued from this grant is expired from here on, including its code; the row may be swept. */
  readonly expiresAt: Seconds
  readonly revokedAt?: Seconds
  /** The rule by which it was revoked, an id of the requirement ledger. */
  readonly revokedBy?: string
}

/** What is read of a client with a grant: what it may have now. */
export interface GrantedClient extends Pick<Client, 'origin' | 'grantTypes'> {
  readonly scope?: Scope | undefined
  readonly resources?: readonly string[] | undefined
  readonly extra?: Client['extra'] | undefined
}

/** A grant as it is read to verify one token of it: without what only its code and its next tokens need. */
export interface GrantOfToken
  extends Omit<Grant, 'redirectUriSent' | 'codeChallenge' | 'nonce' | 'authTimeOwed' | 'absoluteExpiresAt'> {
  readonly client: GrantedClient
  /** The id of that token (see handle.ts) if it was revoked alone; other tokens are not looked up. */
  readonly revokedTokens: readonly string[]
}

/** A key of the key ring. The private part is encrypted by the operator's secret. */
export interface StoredKey {
  readonly id: string
  readonly kind: 'signing' | 'handle'
  readonly algorithm: SigningAlgorithm | 'HS256'
  /** JSON of the public JWK; absent for handle keys. */
  readonly publicJwk?: string
  /** AES-256-GCM of the private key, base64url of nonce, tag and ciphertext. */
  readonly sealedPrivate: string
  readonly createdAt: Seconds
  /** It signs from here on; it is published before. */
  readonly activeAt: Seconds
  /** It neither signs nor verifies from here on. */
  readonly retiredAt?: Seconds
}

/** A rejected request as `lychgate explain` shows it: the contents of its log line. */
export interface Rejection {
  /** The request id that the client received. */
  readonly id: string
  readonly at: Seconds
  readonly method: string
  readonly path: string
  /** The HTTP status of the response. */
  readonly status: number
  readonly error: string
  /** The public `error_description`. */
  readonly why: string
  readonly rule: string
  readonly stored?: string | number | readonly string[]
  readonly received?: string | number | readonly string[]
  /** The client, where it was known or authenticated. */
  readonly client?: string
}

/** The events of the audit log; see audit.ts. */
export const auditEventNames = [
  'sign-in',
  'sign-in-failed',
  'sign-out',
  'consent',
  'consent-refused',
  'grant',
  'revocation',
  'registration',
  'registration-changed',
  'registration-deleted',
  'registration-token-made',
  'registration-token-revoked',
  'client-added',
  'client-changed',
  'client-secret-changed',
  'client-pkce-learned',
  'client-locked',
  'client-unlocked',
  'client-removed',
  'client-access-denied',
  'client-logout-delivered',
  'client-logout-failed',
  'user-added',
  'user-invited',
  'user-changed',
  'user-exported',
  'user-email-verified',
  'user-password-changed',
  'user-locked',
  'user-unlocked',
  'user-removed',
  'personal-token-made',
  'personal-token-revoked',
  'link-made',
  'link-deleted',
  'email-tested',
  'session-ended',
  'passkey-added',
  'passkey-removed',
  'passkeys-removed',
  'passkey-copied',
  'recovery-codes-made',
  'recovery-code-used',
  'second-factor-added',
  'second-factor-removed',
  'upstream-linked',
  'upstream-unlinked',
  'upstream-added',
  'upstream-changed',
  'upstream-deleted',
  'group-created',
  'group-changed',
  'group-deleted',
  'group-member-added',
  'group-member-removed',
  'scope-added',
  'scope-changed',
  'scope-deleted',
  'resource-added',
  'resource-changed',
  'resource-deleted',
  'key-made',
  'key-rotated',
  'key-changed',
  'key-retired',
  'key-reseal-begun',
  'key-resealed',
  'store-moved',
  'store-resumed',
  'store-partitioned',
  'store-distributed',
] as const

export type AuditEventName = (typeof auditEventNames)[number]

/** One line of the audit log: who did what, from where, when. Nothing in it is a secret. */
export interface AuditEvent {
  readonly name: AuditEventName
  readonly at: Seconds
  readonly by: 'user' | 'client' | 'operator' | 'server'
  /** The network it was done from, see address-prefix.ts, or `user@host` of an operator. */
  readonly from?: string
  /** The user it is about. */
  readonly userId?: string
  /** The client it is about. */
  readonly clientId?: string
  /** The browser of the request, for an email about it. It is not stored. */
  readonly userAgent?: string
  /** What else belongs to this kind of event, by name. */
  readonly facts: Readonly<Record<string, string | number>>
}

/** Failed sign-ins counted against one bucket (account and address prefix, see sign-in-throttle.ts). */
export interface Throttle {
  readonly key: string
  readonly failures: number
  readonly expiresAt: Seconds
}
