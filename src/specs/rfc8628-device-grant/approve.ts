import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AuditContext } from '../../domain/audit.ts'
import type { GrantBasis } from '../../domain/decision.ts'
import type { UserDenial } from '../../domain/interaction.ts'
import type { Client, Scope, Seconds, Session } from '../../domain/model.ts'
import type { Parameters } from '../../domain/parameters.ts'
import type { Needs } from '../../feature/deps.ts'
import { consentEvent } from '../../pages/consent.ts'
import type { SignedIn } from '../../pages/kit.ts'
import { type DeviceAuthorization, decideDevice, deviceKind } from './rules/device.ts'

/** A device whose code was typed in this browser. */
export interface Visit {
  readonly device: DeviceAuthorization
  readonly client: Client
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly browserSecret: string
  readonly sent: Parameters
  readonly now: Seconds
}

/** A visit of a user who is signed in. */
export interface UserVisit extends Visit, SignedIn {
  /** Why this user may not use the client. */
  readonly denial: UserDenial | undefined
}

/** What a user approves. */
interface Approved {
  readonly device: DeviceAuthorization
  readonly client: Client
  readonly session: Session
  readonly scope: Scope
  readonly context: AuditContext
  /** Absent on a development server, where the user has no session. */
  readonly basis?: GrantBasis
}

/**
 * Returns a function that approves a device: false if its wait is over.
 * @throws {Overtaken} if the session has ended.
 */
export function deviceApproval(app: FastifyInstance, { store }: Needs<'store'>) {
  return async ({ device, client, session, scope, context, basis }: Approved): Promise<boolean> => {
    const { userId } = session
    // The device redeems the grant as long as its own code works: no code of RFC 6749 is issued.
    const left = device.expiresAt - context.at
    const { grant, inserts } = await app.approve(device.request, client, session, scope, context.at, left)
    return store.transact(deviceKind, device.userCode, (found) =>
      decideDevice(
        found,
        { state: 'approved', userId, grantId: grant.id },
        context.at,
        ...inserts(basis && { basis }),
        consentEvent(context, { userId, clientId: client.id }, scope),
      ),
    )
  }
}
