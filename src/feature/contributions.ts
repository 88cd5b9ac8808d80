import type { FastifyReply, FastifyRequest } from 'fastify'
import type { NamedScheme } from '../domain/bearer.ts'
import type { Confirmation } from '../domain/confirmation.ts'
import type { Write } from '../domain/decision.ts'
import type { OAuthError } from '../domain/errors.ts'
import type { HandleKind } from '../domain/handle.ts'
import type { UserDenial } from '../domain/interaction.ts'
import type {
  AuthorizationRequest,
  ClaimsRequest,
  Client,
  Grant,
  GrantOfToken,
  Scope,
  Seconds,
  Session,
} from '../domain/model.ts'
import type { Parameters } from '../domain/parameters.ts'

/** Members by their names on the wire. */
export type Members = Readonly<Record<string, unknown>>

/**
 * Why a client is looked up:
 *
 *     authorization    an authorization request names it
 *     push             the same, and it is to be authenticated
 *     device           a device asks on its behalf, and it is to be authenticated
 *     pending          a page continues its authorization request
 *     authentication   any other endpoint authenticates it
 *     seen             a page shows what this node has of it
 *     display          anything else
 *
 * All but `device` and `display` may find a client of which nothing is stored; `authentication` and `seen` only what this
 * node remembers. `authorization` and `pending` reject the request with an error that says what is wrong with the client.
 */
export type LookupReason =
  | 'authorization'
  | 'push'
  | 'device'
  | 'pending'
  | 'authentication'
  | 'seen'
  | 'display'

/** Where clients of one kind of identifier are found; no other place is searched. */
export interface ClientResolver {
  find(clientId: string, reason: LookupReason, from: string): Promise<Client | undefined>
  /** Stores a client of which nothing is stored; returns the one that is stored then. */
  keep?(client: Client): Promise<Client>
}

/** What features store with an authorization request, each under a name of its own. */
export type RequestExtra = NonNullable<AuthorizationRequest['extra']>

/** The parameters of an authorization request, and what a feature stores with it. */
export interface LoadedRequest {
  readonly parameters: Parameters
  readonly extra?: RequestExtra
  /** The user of an `id_token_hint` that was verified already, and is not among `parameters`. */
  readonly hintedSub?: string
  /** Why the request is rejected, once its redirect URI is proven; `parameters` say where to redirect. */
  readonly rejection?: OAuthError
}

/**
 * Loads an authorization request that was sent as a reference or as a JWT; undefined, at once, if it was not. What it
 * throws is shown as a page: nothing is proven yet. `from` is the network of the request, see address-prefix.ts.
 */
export type RequestLoader = (parameters: Parameters, from: string) => Promise<LoadedRequest> | undefined

/**
 * Reads what a feature stores with an authorization request from its parameters, and from what is stored with it
 * already; undefined: nothing. Its errors are redirects.
 */
export type RequestReader = (
  parameters: Parameters,
  extra: RequestExtra,
  client: Client,
) => RequestExtra | undefined

/** Reads what a feature stores with a pushed authorization request from the HTTP request of its client. */
export type PushReader = (
  request: FastifyRequest,
  reply: FastifyReply,
) => Promise<RequestExtra> | RequestExtra | undefined

/** Checks a request whose client and redirect URI are proven. Its errors are redirects. */
export type RequestCheck = (client: Client, extra: RequestExtra, parameters: Parameters) => void

/**
 * Checks whether a user may use a client with this sign-in, before consent and before every code; undefined: they may. A
 * page explains otherwise, and the error is a redirect: `access_denied`. Without a client, it is about the pages for
 * administrators.
 */
export type UserCheck = (
  client: Client | undefined,
  signIn: Pick<Session, 'userId' | 'methods'>,
) => undefined | Promise<UserDenial | undefined>

/** Where else users may sign in. */
export interface OtherSignIns {
  readonly ways: readonly { readonly name: string; readonly url: string }[]
  /** The page on which users link their accounts there. */
  readonly accountUrl: string
}

/** Returns where else a user may sign in; `handle` names the pending request. */
export type SignInWays = (handle: Readonly<Record<string, string>>) => Promise<OtherSignIns | undefined>

/** Returns whether what a session began with has ended; undefined, at once, for a session that does not concern it. */
export type SessionEnd = (session: Session) => Promise<true | undefined> | undefined

/** What is approved. */
export interface Approved {
  readonly request: AuthorizationRequest
  readonly grant: Grant
  readonly client: Client
  readonly session: Session
}

/** What a feature adds to a grant: members of its `extra`, and what to insert together with it. */
export interface ApprovalAddition {
  readonly extra?: Readonly<Record<string, unknown>>
  readonly writes?: readonly Write[]
}

/** Returns what it adds to a grant; undefined, at once, for a grant that does not concern it. */
export type ApprovalHook = (
  approved: Approved,
) => ApprovalAddition | undefined | Promise<ApprovalAddition | undefined>

/**
 * Returns what to commit together with the end of a request: with its grant, or with its denial by the user. An insert
 * of a record that exists means that the same request has ended before: then nothing is written.
 */
export type RequestEnd = (request: AuthorizationRequest) => readonly Write[] | undefined

/** Returns the members of an authorization response as its response mode has them. */
export type ResponseEncoder = (
  members: Readonly<Record<string, string>>,
  client: Client,
) => Promise<Readonly<Record<string, string>>>

/** A token response, RFC 6749 §5.1. */
export type TokenResponse = Members & {
  readonly access_token: string
  readonly token_type: string
  readonly expires_in: number
  readonly scope: string
}

/** Does what one grant type asks for an authenticated client that is registered for it. */
export type GrantHandler = (
  client: Client,
  parameters: Parameters,
  request: FastifyRequest,
) => Promise<TokenResponse>

/** A call with a token that is bound to a key. */
export interface BoundCall {
  readonly request: FastifyRequest
  /** For headers of the response, whether the call is rejected or not. */
  readonly reply: FastifyReply
  readonly token: string
  readonly confirmation: Confirmation
  /** The identifier of the API that is called. */
  readonly resource: string
}

/** The use of a proof, which is stored with what the request writes, or where that is rejected. */
export interface ProofUse {
  /** Fails with `RecordExists` if it was used before. */
  readonly write: Write
  /** @throws {OAuthError} for a proof that was used before. */
  assertFirst(isFirst: boolean): void
}

/** How tokens are bound to keys of their clients, and how that is proven. */
export interface TokenBinding {
  /**
   * Returns the key that a request proves; undefined, at once, if it has no proof.
   * @param token The token that is sent with the request, and bound to no key.
   * @param later Takes the use of the proof, if it is to be stored; otherwise `prove` stores it.
   * @throws {OAuthError} for a proof that is not accepted.
   */
  prove(
    request: FastifyRequest,
    reply: FastifyReply,
    token?: string,
    later?: (use: ProofUse) => void,
  ): Promise<Confirmation> | undefined
  /** @throws {OAuthError} for a client that must prove a key at the token endpoint. */
  assertMayOmit(client: Client): void
  /**
   * Checks that a bound code or refresh token is used with its key.
   * @throws {OAuthError} `invalid_grant`
   */
  assertKey(bound: Confirmation, used: Confirmation | undefined, kind: HandleKind): void
  /** How APIs of this server are called with its tokens. */
  readonly scheme: Pick<NamedScheme, 'challenge'> & { assertKey(call: BoundCall): Promise<void> }
}

/** @throws {OAuthError} for a client that must prove a key and does not. */
export type ConfirmationCheck = (client: Client, confirmation: Confirmation | undefined) => void

/**
 * Returns writes that fail (`Overtaken`) if what a grant depends on has ended: no token is issued then, and the grant
 * is revoked. They are part of every transaction in which a code is redeemed or a refresh token rotated. What has no
 * refresh reads them at each request.
 */
export type TokenConditions = (
  grant: Pick<Grant, keyof Grant & keyof GrantOfToken>,
  client: Client,
  now: Seconds,
) => readonly Write[] | undefined

/** What a token response is made from: all of it is committed. */
export interface IssuedTokens {
  readonly grant: Grant
  readonly client: Client
  readonly accessToken: string
  readonly idTokenSeconds: Seconds
  readonly now: Seconds
}

/** Returns further members of a token response, by their names on the wire; undefined, at once, if there are none. */
export type TokenMembersOf = (issued: IssuedTokens) => Promise<Members> | undefined

/**
 * Returns what a token or response of a grant would contain, by the name of that; undefined, at once, if there is none.
 * Nothing is signed, sealed or stored.
 */
export type PreviewOf = (
  granted: Pick<IssuedTokens, 'grant' | 'client' | 'now'>,
) => Promise<Readonly<Record<string, Members>>> | undefined

/** Where claims go, and what the client was granted. */
export interface ClaimsUse {
  readonly target: 'userinfo' | 'id_token' | 'access_token'
  readonly userId: string
  readonly clientId: string
  /** Absent: it is gone. */
  readonly client?: Client
  /** All that the user granted. */
  readonly scope: Scope
  /** The individually requested claims that the user agreed to. */
  readonly requested: ClaimsRequest
}

/**
 * Returns claims that depend on the client and its grant, for one use, by their names on the wire; undefined if it has
 * none. They replace no claim of the protocol, such as `sub`. It decides by the scope and the client whether there are
 * any, at once and before it reads anything.
 */
export type GrantedClaims = (use: ClaimsUse) => Promise<Members> | undefined

/** Returns a claim about the sign-in behind a grant, by its name; undefined if the grant has none. */
export type SignInClaim = (grant: Grant) => Readonly<Record<string, string>> | undefined
