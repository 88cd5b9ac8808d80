import { type TSchema, Type } from '@sinclair/typebox'
import { type ClientMember, readFlag } from './members.ts'

/** A member of client metadata that a feature adds: how it is described, read and checked. */
export interface ClientMetadataMember extends ClientMember {
  readonly schema: TSchema
}

/** A boolean member; undefined if the client does not send it. */
export function flag(description: string): ClientMetadataMember {
  return {
    schema: Type.Boolean({ description }),
    read: (members, name) =>
      (members[name] ?? undefined) === undefined ? undefined : readFlag(members, name),
  }
}
