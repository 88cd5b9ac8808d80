import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import {
  type ProvenRedirect,
  parseAuthorizationRequest,
  resolveRedirectUri,
} from '../../domain/authorization-request.ts'
import { check } from '../../domain/check.ts'
import type { Write } from '../../domain/decision.ts'
import type { OAuthError } from '../../domain/errors.ts'
import type { UserDenial } from '../../domain/interaction.ts'
import { mapDefined } from '../../domain/map-defined.ts'
import type { AuthorizationRequest, Client } from '../../domain/model.ts'
import type { Parameters } from '../../domain/parameters.ts'
import type { AppDeps } from '../../feature/deps.ts'

/** What features store with an authorization request, each under a name of its own. */
export type RequestExtra = NonNullable<AuthorizationRequest['extra']>

/** The parameters of an authorization request, and what a feature stores with it. */
export interface LoadedRequest {
  readonly parameters: Parameters
  readonly extra?: RequestExtra
  /** Why the request is rejected, once its redirect URI is proven; `parameters` are those that say where to. */
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
export type PushReader = (request: FastifyRequest, reply: FastifyReply) => Promise<RequestExtra>

/** Checks a request whose client and redirect URI are proven. Its errors are redirects. */
export type RequestCheck = (client: Client, extra: RequestExtra, parameters: Parameters) => void

/**
 * Checks whether a user may use a client, before consent and before every code; undefined: they may. A page explains
 * otherwise, and the error is a redirect: `access_denied`.
 */
export type UserCheck = (client: Client, userId: string) => undefined | Promise<UserDenial | undefined>

/**
 * Returns what to commit together with the end of a request: with its grant, or with its denial by the user. An insert
 * of a record that exists means that the same request has ended before: then nothing is written.
 */
export type RequestEnd = (request: AuthorizationRequest) => readonly Write[]

declare module 'fastify' {
  interface FastifyInstance {
    /** Adds a loader. The first that does not return undefined decides. */
    beforeAuthorization(load: RequestLoader): void
    afterClientKnown(assert: RequestCheck): void
    addRequestReader(read: RequestReader): void
    /** Adds what is stored with a request that its client pushes. */
    addPushReader(read: PushReader): void
    onUserKnown(assert: UserCheck): void
    onAuthorizationEnd(end: RequestEnd): void
    /** The steps that the endpoint and its pages run, in order. */
    readonly authorizationRequests: AuthorizationRequests
  }
}

export interface AuthorizationRequests {
  /** @param from The network of the request, see address-prefix.ts. */
  load(parameters: Parameters, from: string): LoadedRequest | Promise<LoadedRequest>
  /** Validates the client's right to the redirect URI, RFC 6749 §3.1.2.3. A request that is rejected says why. */
  proveRedirect(loaded: LoadedRequest, client: Client): ProvenRedirect
  /** Validates everything else, RFC 6749 §4.1.1 and OpenID Connect Core §3.1.2.2. */
  parse(
    loaded: Omit<LoadedRequest, 'rejection'>,
    client: Client,
    redirect: ProvenRedirect,
  ): Promise<AuthorizationRequest>
  /** Throws what the loader found wrong, and runs the checks of features. */
  assert(client: Client, loaded: LoadedRequest): void
  /** What features store with a request that is pushed. */
  extraOfPush(request: FastifyRequest, reply: FastifyReply): Promise<RequestExtra>
  /** Runs the checks of features about the user; the first that denies wins. */
  denialOf(client: Client, userId: string): ReturnType<UserCheck>
  endWrites(request: AuthorizationRequest): readonly Write[]
}

/** Loads, checks and ends authorization requests, RFC 6749 §4.1.1, with the extension points for features. */
export const authorizationRequests = fp<Pick<AppDeps, 'service' | 'keys'>>(
  async (app, { service, keys }) => {
    const loaders: RequestLoader[] = []
    const checks: RequestCheck[] = []
    const userChecks: UserCheck[] = []
    const ends: RequestEnd[] = []
    const readers: RequestReader[] = []
    const pushReaders: PushReader[] = []
    // A feature that loads such requests says so; OpenID Connect Discovery §3 has another default.
    app.advertise({ request_parameter_supported: false, request_uri_parameter_supported: false })
    app.decorate('beforeAuthorization', (load: RequestLoader) => void loaders.push(load))
    app.decorate('afterClientKnown', (assert: RequestCheck) => void checks.push(assert))
    app.decorate('addRequestReader', (read: RequestReader) => void readers.push(read))
    app.decorate('addPushReader', (read: PushReader) => void pushReaders.push(read))
    app.decorate('onUserKnown', (assert: UserCheck) => void userChecks.push(assert))
    app.decorate('onAuthorizationEnd', (end: RequestEnd) => void ends.push(end))
    app.decorate('authorizationRequests', {
      load: (parameters, from) => {
        for (const load of loaders) {
          const loading = load(parameters, from)
          if (loading !== undefined) return loading
        }
        return { parameters }
      },
      proveRedirect: ({ parameters, rejection }, client) => {
        try {
          return resolveRedirectUri(parameters, client)
        } catch (error) {
          throw rejection ?? error
        }
      },
      parse: async ({ parameters, extra: given = {} }, client, redirect) => {
        const hint = parameters['id_token_hint']
        const hintedSub = typeof hint === 'string' ? await subOfHint(hint) : undefined
        const request = parseAuthorizationRequest(parameters, client, redirect, service, hintedSub)
        const added = mapDefined(readers, (read) => read(parameters, given, client))
        const hasExtra = added.length > 0 || Object.keys(given).length > 0
        return hasExtra ? { ...request, extra: Object.assign({}, given, ...added) } : request
      },
      assert: (client, { parameters, extra = {}, rejection }) => {
        if (rejection !== undefined) throw rejection
        for (const assert of checks) assert(client, extra, parameters)
      },
      extraOfPush: async (request, reply) => {
        const read = await Promise.all(pushReaders.map((reader) => reader(request, reply)))
        return Object.assign({}, ...read)
      },
      denialOf: (client, userId) => {
        const pending = mapDefined(userChecks, (assert) => assert(client, userId))
        // Most clients are open to every user, and then nothing waits.
        return pending.length === 0 ? undefined : firstOf(pending)
      },
      endWrites: (request) => ends.flatMap((end) => end(request)),
    })

    /** OpenID Connect Core §3.1.2.2: our signature and issuer count, the expiry does not. */
    const subOfHint = async (hint: string): Promise<string> => {
      const claims = await keys.verify(hint, 'JWT')
      check(
        claims?.['iss'] === service.issuer && typeof claims['sub'] === 'string',
        'oidc-core-3.1.2.2-hint-issuer',
        'invalid_request',
        'id_token_hint is not an ID Token of this server',
        { passed: 'id_token_hint is absent or an ID Token of this server' },
      )
      return claims['sub']
    }
  },
  { name: 'authorization-requests', dependencies: ['metadata'] },
)

async function firstOf(pending: readonly Promise<UserDenial | undefined>[]): Promise<UserDenial | undefined> {
  return (await Promise.all(pending)).find((denial) => denial !== undefined)
}
