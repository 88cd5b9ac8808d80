import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { type Confirmation, confirmationOf, grantConfirmation } from '../../domain/confirmation.ts'
import { type HandleKind, handleBelongsTo, type OpenedHandle } from '../../domain/handle.ts'
import type { Client, Grant } from '../../domain/model.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { additions } from '../../feature/feature.ts'
import type { TokenScheme } from '../../http/token-scheme.ts'

/** How tokens are bound to keys of their clients, and how that is proven. */
export interface TokenBinding {
  /**
   * Returns the key that a request proves; undefined, at once, if it has no proof.
   * @param token The token that is sent with the request, and bound to no key.
   * @throws {OAuthError} for a proof that is not accepted.
   */
  prove(request: FastifyRequest, reply: FastifyReply, token?: string): Promise<Confirmation> | undefined
  /** @throws {OAuthError} for a client that must prove a key at the token endpoint. */
  assertMayOmit(client: Client): void
  /**
   * Checks that a bound code or refresh token is used with its key.
   * @throws {OAuthError} `invalid_grant`
   */
  assertKey(bound: Confirmation, used: Confirmation | undefined, kind: HandleKind): void
  /** How APIs of this server are called with its tokens. */
  readonly scheme: Omit<TokenScheme, 'name' | 'member'>
}

/** @throws {OAuthError} for a client that must prove a key and does not. */
export type ConfirmationCheck = (client: Client, confirmation: Confirmation | undefined) => void

declare module 'fastify' {
  interface FastifyRequest {
    /** The key that a token request proved: what is issued is bound to it. */
    confirmation: Confirmation | undefined
  }
  interface FastifyInstance {
    /** Adds how tokens are bound by a member of `cnf`, which its feature declares as `tokenBindings`. */
    bindTokens(member: string, binding: TokenBinding): void
    /** Adds a check of the key that a token request proves, or of its absence. */
    afterConfirmation(assert: ConfirmationCheck): void
    /** The schemes of `bindTokens`, for the guard. */
    tokenSchemes(): readonly TokenScheme[]
    readonly tokenBindings: TokenBindings
  }
}

/** The steps that the token endpoint runs, and others that issue tokens. */
export interface TokenBindings {
  /** Returns the key that the request of any client proves. */
  prove: TokenBinding['prove']
  /** Returns the key that the request of a client proves, if it has a proof: a client that must prove a key, does. */
  confirm(request: FastifyRequest, reply: FastifyReply, client: Client): ReturnType<TokenBinding['prove']>
  /** Checks the key of a code or a refresh token, if it is bound and the client's own. */
  assertKey(
    handle: OpenedHandle,
    grant: Grant | undefined,
    client: Client,
    used: Confirmation | undefined,
  ): void
}

/** The extension point for tokens that are bound to a key: at issue, at refresh, and where they are used. */
export const tokenBindings = fp<Pick<AppDeps, 'declared'>>(
  async (app, { declared }) => {
    const bindings = additions<TokenBinding>('token binding', declared.tokenBindings)
    app.decorateRequest('confirmation', undefined)
    app.decorate('bindTokens', bindings.add)
    const checks: ConfirmationCheck[] = []
    app.decorate('afterConfirmation', (assert) => void checks.push(assert))
    app.addHook('onReady', async () => bindings.assertComplete())
    app.decorate('tokenSchemes', () =>
      [...bindings.added].map(([member, { scheme }]) => ({
        ...scheme,
        member,
        name: declared.tokenBindings[member]?.tokenType ?? member,
      })),
    )
    const prove: TokenBinding['prove'] = (request, reply, token) => {
      for (const binding of bindings.added.values()) {
        const proven = binding.prove(request, reply, token)
        if (proven !== undefined) return proven
      }
      return undefined
    }
    app.decorate('tokenBindings', {
      prove,
      confirm(request, reply, client) {
        const assertEnough = (confirmation?: Confirmation) => {
          for (const [member, { assertMayOmit }] of bindings.added)
            if (confirmation?.[member] === undefined) assertMayOmit(client)
          for (const assert of checks) assert(client, confirmation)
        }
        const proving = prove(request, reply)
        if (proving === undefined) return void assertEnough()
        return proving.then((confirmation) => {
          assertEnough(confirmation)
          return confirmation
        })
      },
      assertKey(handle, grant, client, used) {
        const bound =
          handle.kind === 'code' ? confirmationOf(grant?.extra?.[grantConfirmation]) : handle.confirmation
        if (grant === undefined || bound === undefined) return
        // What is not the client's is rejected later, and its binding says nothing to others.
        if (!handleBelongsTo(handle, grant) || grant.clientId !== client.id) return
        for (const [member, binding] of bindings.added)
          if (member in bound) return binding.assertKey(bound, used, handle.kind)
        throw new Error(`a ${handle.kind} is bound by ${Object.keys(bound)}, which no feature proves`)
      },
    })
  },
  { name: 'token-bindings' },
)
