import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { newUpstreamMembers } from '../../admin/operations/upstream-schema.ts'
import { clientMembers } from '../../clients/core-members.ts'
import { clientIdPattern } from '../../clients/operator-client.ts'
import { textClaims } from '../../domain/claims.ts'
import { groupIdPattern } from '../../domain/group.ts'
import type { Declared } from '../../feature/deps.ts'
import { subPattern } from '../../users/rules/user.ts'

const closed = { additionalProperties: false } as const
const text = (description: string) => Type.Optional(Type.String({ description }))
const flag = (description: string) => Type.Optional(Type.Boolean({ description }))
const names = (description: string) => Type.Array(Type.String({ minLength: 1 }), { description })

const secret = (description: string) =>
  Type.Optional(Type.String({ pattern: '^env:[A-Za-z_][A-Za-z0-9_]*$', description }))

/** The kinds of objects that files describe, in the order in which they depend on each other. */
export const kinds = ['groups', 'users', 'clients', 'upstreams'] as const
export type Kind = (typeof kinds)[number]

const GroupEntry = Type.Object(
  {
    name: Type.String({ minLength: 1, description: 'The name that clients see.' }),
    id: Type.Optional(
      Type.String({
        pattern: groupIdPattern,
        description: 'Its id, as lychgate export writes it: with it another name renames the group.',
      }),
    ),
    description: text('What the group is for.'),
    parent: text('The name of the group above it: its members count as members of that one, too.'),
    administrators: text('The name of the group whose members administer its members, by the admin API.'),
  },
  { ...closed, title: 'Group' },
)

const UserEntry = Type.Object(
  {
    username: Type.String({ minLength: 1, description: 'The user name. It never changes.' }),
    sub: Type.Optional(
      Type.String({
        pattern: subPattern,
        description: 'The sub that clients see, as lychgate export writes it. Absent: the server makes one.',
      }),
    ),
    email: text('The email address. Absent: it stays; an empty text removes it.'),
    email_verified: flag('Whether the address is verified. Absent: it stays; a new address is not.'),
    locked: flag('Whether the user cannot sign in. Absent: it stays.'),
    groups: Type.Optional(names('The groups of the user, by their names. Absent: none.')),
    claims: Type.Optional(
      Type.Object(Object.fromEntries(textClaims.map((name) => [name, text(`The claim ${name}.`)])), {
        ...closed,
        description: 'Standard claims. One that is absent stays; an empty text removes it.',
      }),
    ),
    attributes: Type.Optional(
      Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
        description: 'Attributes of accounts.attributes. One that is absent stays; an empty text removes it.',
      }),
    ),
  },
  { ...closed, title: 'User' },
)

/** The members of a client that are not metadata. */
const clientExtras = {
  client_id: Type.String({
    pattern: clientIdPattern,
    description: 'The client id, which you choose. It never changes.',
  }),
  for: text('A well-known app: its recipe gives what this entry does not say. `lychgate client add --help`.'),
  url: text('The https address of that app.'),
  locked: flag('Whether it cannot authenticate, and its tokens are invalid. Absent: it stays.'),
  secret: secret('Where its secret is: env: and the name of an environment variable.'),
  secretFile: text('The file with its secret, relative to this file.'),
  newSecretFile: text(
    'Like secretFile. If the file is missing when the client is added, a secret is made and written into it.',
  ),
}

const UpstreamEntry = Type.Object(
  {
    ...newUpstreamMembers,
    secret: secret('Where the client secret of this server there is: env: and the name of a variable.'),
    secretFile: text('The file with that secret, relative to this file.'),
  },
  { ...closed, title: 'Upstream' },
)

/** Groups are named by their names in files, and not by their ids. */
const byName: Readonly<Record<string, TSchema>> = {
  allowed_groups: names('The groups whose members may use it, by their names. Absent: every user may.'),
  token_claims: Type.Array(
    Type.Object(
      {
        claim: Type.String({ description: 'The name of the claim.' }),
        in: Type.Optional(
          Type.Array(Type.String(), {
            description: 'userinfo, id_token, access_token. Absent: the first two.',
          }),
        ),
        groups: flag('true: the names of the groups of the user.'),
        roles: Type.Optional(
          Type.Record(Type.String(), Type.String(), { description: 'The role of each group, by its name.' }),
        ),
        value: Type.Optional(Type.Any({ description: 'A constant.' })),
        copy: text('Another claim of the user, such as preferred_username.'),
      },
      closed,
    ),
    { description: 'Claims of its tokens. Each has one of groups, roles, value and copy.' },
  ),
}

export type GroupEntry = Static<typeof GroupEntry>
export type UserEntry = Static<typeof UserEntry>
export type UpstreamEntry = Static<typeof UpstreamEntry>
/** With client metadata under the names of RFC 7591 §2. */
export type ClientEntry = Partial<Static<ReturnType<typeof Type.Object<typeof clientExtras>>>> & {
  readonly client_id: string
  readonly [member: string]: unknown
}

/** What each kind of entry is. */
export interface Entries {
  readonly groups: GroupEntry
  readonly users: UserEntry
  readonly clients: ClientEntry
  readonly upstreams: UpstreamEntry
}

/** The JSON Schema of a file. Editors complete and check files with it, and lychgate apply checks them. */
export function filesSchema(declared: Declared): TSchema {
  const known = Object.entries(byName).filter(([name]) => Object.hasOwn(declared.clientMetadata, name))
  const more = { ...Object.fromEntries(known), ...clientExtras }
  // A recipe has a name.
  const named = { if: { required: ['for'] }, else: { required: ['client_name'] } }
  const client = Type.Unsafe({ ...clientMembers(declared, 'Client', ['client_id'], more), ...named })
  const list = (items: TSchema, description: string) => Type.Optional(Type.Array(items, { description }))
  const file = Type.Object(
    {
      groups: list(GroupEntry, 'Groups of users.'),
      users: list(UserEntry, 'Users. New ones get an invitation.'),
      clients: list(client, 'Clients that an operator adds.'),
      upstreams: list(
        UpstreamEntry,
        'Servers that users may sign in with. What is not named has its default.',
      ),
    },
    { ...closed, title: 'Lychgate: users, groups, clients and upstreams' },
  )
  // Without the symbols of TypeBox, and in the draft that editors know.
  return JSON.parse(JSON.stringify({ $schema: 'http://json-schema.org/draft-07/schema#', ...file }))
}
