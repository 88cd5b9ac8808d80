import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { type Confirmation, confirmationOf, grantConfirmation } from '../../domain/confirmation.ts'
import { handleBelongsTo, type OpenedHandle } from '../../domain/handle.ts'
import type { Client, Grant } from '../../domain/model.ts'
import type { ProofUse, TokenBinding } from '../../feature/contributions.ts'
import type { Needs } from '../../feature/deps.ts'
import type { TokenScheme } from '../../http/token-scheme.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The key that a token request proved: what is issued is bound to it. */
    confirmation: Confirmation | undefined
  }
  interface FastifyInstance {
    /** The schemes of bound tokens, for the guard. */
    tokenSchemes(): readonly TokenScheme[]
    readonly tokenBindings: TokenBindings
  }
}

/** The steps that the token endpoint runs, and others that issue tokens. */
export interface TokenBindings {
  /** Returns the key that the request of any client proves. */
  prove: TokenBinding['prove']
  /** Returns the key that the request of a client proves, if it has a proof: a client that must prove a key, does. */
  confirm(
    request: FastifyRequest,
    reply: FastifyReply,
    client: Client,
    later?: (use: ProofUse) => void,
  ): ReturnType<TokenBinding['prove']>
  /**
   * Checks the key of a code or a refresh token, if it is bound and the client's own.
   * @param handle Absent for a grant that the client redeems without a code of RFC 6749.
   */
  assertKey(
    handle: OpenedHandle | undefined,
    grant: Grant | undefined,
    client: Client,
    used: Confirmation | undefined,
  ): void
}

/** Tokens that are bound to a key: at issue, at refresh, and where they are used. */
export const tokenBindings = fp<Needs<'declared'>>(
  async (app, { declared }) => {
    app.decorateRequest('confirmation', undefined)
    const { tokenBindings, confirmationChecks } = app.seams
    app.decorate('tokenSchemes', () =>
      [...tokenBindings.added].map(([member, { scheme }]) => ({
        ...scheme,
        member,
        name: declared.tokenBindings[member]?.tokenType ?? member,
      })),
    )
    const prove: TokenBinding['prove'] = (...sent) => {
      for (const binding of tokenBindings.added.values()) {
        const proven = binding.prove(...sent)
        if (proven !== undefined) return proven
      }
      return undefined
    }
    app.decorate('tokenBindings', {
      prove,
      confirm(request, reply, client, later) {
        const assertEnough = (confirmation?: Confirmation) => {
          for (const [member, { assertMayOmit }] of tokenBindings.added)
            if (confirmation?.[member] === undefined) assertMayOmit(client)
          confirmationChecks.assert(client, confirmation)
        }
        const proving = prove(request, reply, undefined, later)
        if (proving === undefined) return void assertEnough()
        return proving.then((confirmation) => {
          assertEnough(confirmation)
          return confirmation
        })
      },
      assertKey(handle, grant, client, used) {
        const kind = handle?.kind ?? 'code'
        const bound =
          kind === 'code' ? confirmationOf(grant?.extra?.[grantConfirmation]) : handle?.confirmation
        if (grant === undefined || bound === undefined) return
        // What is not the client's is rejected later, and its binding says nothing to others.
        const isOwn = handle === undefined || handleBelongsTo(handle, grant)
        if (!isOwn || grant.clientId !== client.id) return
        for (const [member, binding] of tokenBindings.added)
          if (member in bound) return binding.assertKey(bound, used, kind)
        throw new Error(`a ${kind} is bound by ${Object.keys(bound)}, which no feature proves`)
      },
    })
  },
  { name: 'token-bindings' },
)
