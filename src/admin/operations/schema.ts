import { type TSchema, Type } from '@sinclair/typebox'

const open = { additionalProperties: true } as const
const closed = { additionalProperties: false } as const

const AttributeValue = Type.Union([Type.String(), Type.Number(), Type.Boolean()])

/** Custom attributes of a user, by their names. */
export const Attributes = Type.Record(Type.String(), AttributeValue, {
  description: 'Attributes that accounts.attributes declares; in a change an empty text removes one.',
})

/** An attribute that `accounts.attributes` declares. */
export const AttributeResource = Type.Object(
  {
    name: Type.String(),
    type: Type.String({ description: 'string, number, boolean or choice.' }),
    values: Type.Optional(Type.Array(Type.String(), { description: 'What a choice is among.' })),
    visible: Type.String({ description: 'Who sees it: administrator, or user: the user, too.' }),
    editable: Type.String({ description: 'Who changes it.' }),
  },
  { title: 'Attribute', ...closed },
)

/** A user as operators see them. */
export const UserResource = Type.Object(
  {
    sub: Type.String(),
    username: Type.String(),
    seeded: Type.Boolean({ description: 'A development server made the user.' }),
    created_at: Type.Integer(),
    updated_at: Type.Integer(),
    has_password: Type.Boolean(),
    locked_at: Type.Optional(Type.Integer()),
    claims: Type.Object({}, { ...open, description: 'Standard claims, OpenID Connect Core §5.1.' }),
    attributes: Attributes,
  },
  { title: 'User', ...closed },
)

/** A user who may sign in again, and what that changed. */
export const UnlockedUser = Type.Object(
  {
    ...UserResource.properties,
    was_locked: Type.Boolean(),
    forgotten_failures: Type.Integer({ description: 'Failed sign-ins that were counted until now.' }),
  },
  { title: 'UnlockedUser', ...closed },
)

/** A user's ways to sign in other than a password. */
export const SignIn = Type.Object(
  {
    second_factor: Type.Boolean({ description: 'One-time codes are set up.' }),
    passkeys: Type.Integer({ description: 'How many there are.' }),
    failures_in_a_row: Type.Integer({ description: 'Wrong passwords or codes.' }),
  },
  { title: 'SignIn', ...closed },
)

/** The factors that a user has set up, and what a policy requires in addition. */
export const UserFactors = Type.Object(
  {
    sub: Type.String(),
    username: Type.String(),
    password: Type.Boolean(),
    codes: Type.Boolean({ description: 'One-time codes are set up.' }),
    passkeys: Type.Integer({ description: 'How many can be used here.' }),
    lacks: Type.Optional(
      Type.String({ description: 'What the policy of sign-ins requires, and the user has not set up.' }),
    ),
    required_from: Type.Optional(
      Type.Integer({ description: 'When that will be required; absent: it is now.' }),
    ),
  },
  { title: 'UserFactors', ...closed },
)

/** Why a user may use a client or not, rule by rule. */
export const Access = Type.Object(
  {
    sub: Type.String(),
    client_id: Type.String(),
    at: Type.Integer(),
    result: Type.String({ description: 'failed if a rule failed; passed if all passed; or else not known.' }),
    rules: Type.Array(
      Type.Object(
        {
          about: Type.String({ description: 'user, client, factor, group or policy.' }),
          rule: Type.String({ description: 'The rule that a request would violate.' }),
          result: Type.String({ description: 'passed, failed or not known.' }),
          why: Type.String(),
        },
        closed,
      ),
    ),
  },
  { title: 'Access', ...closed },
)

/** The link of an invitation, or the address to which it was sent. */
export const Invitation = Type.Object(
  {
    sent_to: Type.Optional(Type.String()),
    link: Type.Optional(Type.String({ description: 'Works once, for anyone who has it. It is shown once.' })),
    expires_at: Type.Integer(),
  },
  { title: 'Invitation', ...closed },
)

/** A user with an invitation, as the response to its creation. */
export const InvitedUser = Type.Object(
  { ...UserResource.properties, invitation: Type.Optional(Invitation) },
  { title: 'InvitedUser', ...closed },
)

/** A client as operators see it: RFC 7591 metadata, and what an operator decides. */
export const ClientResource = Type.Object(
  {
    client_id: Type.String(),
    origin: Type.String(),
    configured: Type.Optional(
      Type.Object(
        {},
        {
          ...open,
          description:
            'What an operator configured, as a PUT takes it; the other members have its defaults, too.',
        },
      ),
    ),
  },
  { title: 'Client', description: 'Client metadata, RFC 7591 §2, and what an operator decides.', ...open },
)

/** A client metadata document: its client, when it was fetched, and whether it is denied. */
export const ClientDocumentResource = Type.Object(
  {
    client_id: Type.String({ description: 'The URL of the document.' }),
    host: Type.Optional(Type.String()),
    fetched_at: Type.Optional(Type.Integer()),
    fresh_until: Type.Optional(
      Type.Integer({ description: 'From then on an authorization fetches it again.' }),
    ),
    sha256: Type.Optional(Type.String({ description: 'The hash of what was fetched, base64url.' })),
    denied_at: Type.Optional(Type.Integer()),
  },
  { title: 'ClientDocument', description: 'With the members of its client, as a Client has them.', ...open },
)

/** The secret of a client, in the only response that has it. */
export const ClientSecret = Type.Object(
  {
    client_id: Type.String(),
    client_secret: Type.Optional(Type.String({ description: 'It is shown once, and stored as a hash.' })),
    previous_secret_expires_at: Type.Optional(Type.Integer()),
  },
  { title: 'ClientSecret', ...closed },
)

/** A group of users. */
export const GroupResource = Type.Object(
  {
    group_id: Type.String(),
    name: Type.String(),
    description: Type.Optional(Type.String()),
    parent_id: Type.Optional(Type.String()),
    administrators_id: Type.Optional(
      Type.String({ description: 'The group whose members administer its members.' }),
    ),
    created_at: Type.Integer(),
  },
  { title: 'Group', ...closed },
)

/** A group to which a user was added. */
export const JoinedGroup = Type.Object(
  {
    ...GroupResource.properties,
    added: Type.Boolean({ description: 'false: the user was in it already.' }),
  },
  { title: 'JoinedGroup', ...closed },
)

/** A user in a group. */
export const MemberResource = Type.Object(
  { sub: Type.String(), username: Type.String(), added_at: Type.Integer() },
  { title: 'Member', ...closed },
)

/** A session of a user. */
export const SessionResource = Type.Object(
  {
    session_id: Type.String(),
    sub: Type.String(),
    username: Type.Optional(Type.String()),
    browser: Type.Optional(Type.String()),
    from: Type.Optional(Type.String({ description: 'The network of its last sign-in.' })),
    authenticated_at: Type.Integer(),
    amr: Type.Array(Type.String(), { description: 'How the user signed in, RFC 8176.' }),
    created_at: Type.Integer(),
    ends_at: Type.Integer(),
  },
  { title: 'Session', ...closed },
)

/** What a user granted to a client. */
export const ConnectionResource = Type.Object(
  {
    client_id: Type.String(),
    grants: Type.Integer({ description: 'How many valid grants.' }),
    remembered: Type.Boolean({ description: 'Whether the consent is remembered.' }),
  },
  { title: 'Grant', ...closed },
)

/** A grant, with its state; not its tokens. */
export const GrantResource = Type.Object(
  {
    grant: Type.String(),
    state: Type.String({ description: 'approved, active, revoked or expired.' }),
    sub: Type.Optional(Type.String({ description: 'Absent: a client that acts for itself.' })),
    username: Type.Optional(Type.String()),
    client_id: Type.String(),
    exchanged_from: Type.Optional(
      Type.Object(
        { grant: Type.String(), client_id: Type.String() },
        { description: 'The grant whose access token was exchanged, and the app that the user approved.' },
      ),
    ),
    scope: Type.String(),
    approved_at: Type.Integer(),
    expires_at: Type.Integer(),
  },
  { title: 'OneGrant', ...open },
)

/** How much was revoked. */
export const Revoked = Type.Object(
  { client_id: Type.String(), revoked: Type.Integer({ description: 'How many grants.' }) },
  { title: 'Revoked', ...closed },
)

/** A one-time link without its secret. */
export const LinkResource = Type.Object(
  {
    link_id: Type.String(),
    purpose: Type.String(),
    email: Type.Optional(Type.String({ description: 'The address it was sent to.' })),
    created_at: Type.Integer(),
    expires_at: Type.Integer(),
  },
  { title: 'Link', ...closed },
)

/** A key of the server, without its private part. */
export const KeyResource = Type.Object(
  {
    kid: Type.String(),
    kind: Type.String({ description: 'signing, or handle: it seals codes and tokens.' }),
    algorithm: Type.String(),
    state: Type.String({ description: 'waiting, active, verifies only or retired.' }),
    created_at: Type.Integer(),
    active_from: Type.Integer(),
    retires_at: Type.Optional(Type.Integer()),
  },
  { title: 'Key', ...closed },
)

/** Every key. */
export const Keys = Type.Object({ items: Type.Array(KeyResource) }, { title: 'Keys', ...closed })

/** An initial access token, RFC 7591 §3, without its text. */
export const TokenResource = Type.Object(
  {
    token_id: Type.String(),
    name: Type.Optional(Type.String()),
    redirects: Type.String(),
    pkce: Type.String(),
    uses: Type.Integer(),
    used: Type.Integer(),
    created_at: Type.Integer(),
    expires_at: Type.Integer(),
    initial_access_token: Type.Optional(Type.String({ description: 'It is shown once.' })),
  },
  { title: 'RegistrationToken', ...open },
)

/** A personal token of an administrator, without its text but in the response that creates it. */
export const PersonalTokenResource = Type.Object(
  {
    token_id: Type.String(),
    sub: Type.String({ description: 'Its owner.' }),
    name: Type.String(),
    scope: Type.String(),
    created_at: Type.Integer(),
    expires_at: Type.Integer(),
    last_used_at: Type.Optional(Type.Integer({ description: 'To the hour; absent: it was never used.' })),
    token: Type.Optional(Type.String({ description: 'It is shown once.' })),
  },
  { title: 'PersonalToken', ...closed },
)

/** A logout token that is sent to a client. */
export const DeliveryResource = Type.Object(
  {
    state: Type.String({ description: 'pending, delivered or failed.' }),
    client_id: Type.String(),
    sub: Type.String(),
    sid: Type.String(),
    ended_at: Type.Integer(),
    tries: Type.Integer(),
    due_at: Type.Optional(Type.Integer()),
    finished_at: Type.Optional(Type.Integer()),
    error: Type.Optional(Type.String()),
  },
  { title: 'Delivery', ...closed },
)

/** An event of the audit log. */
export const EventResource = Type.Object(
  {
    at: Type.Integer(),
    event: Type.String(),
    by: Type.String(),
    from: Type.Optional(Type.String()),
    sub: Type.Optional(Type.String()),
    client_id: Type.Optional(Type.String()),
    facts: Type.Object({}, open),
  },
  { title: 'Event', ...closed },
)

const Clause = Type.Object({ name: Type.String(), url: Type.Optional(Type.String()) }, closed)

/** An explained token, as `lychgate explain --json` prints it. */
export const ExplanationResource = Type.Object(
  {
    kind: Type.String({ description: 'What it is, such as `access token`.' }),
    active: Type.Boolean(),
    why: Type.Optional(Type.String({ description: 'Why it is not active.' })),
    rule: Type.Optional(Type.String({ description: 'The rule that ends it.' })),
    clause: Type.Optional(Clause),
    received: Type.Object({}, { ...open, description: 'What the token says.' }),
    stored: Type.Object(
      {},
      { ...open, description: 'What the server has: its client, its user, its grant.' },
    ),
  },
  { title: 'Explanation', ...closed },
)

/** A rejected request, as `lychgate explain --json` prints it. */
export const RejectionResource = Type.Object(
  {
    id: Type.String({ description: 'The request id, which its response had in `x-request-id`.' }),
    at: Type.Integer(),
    method: Type.String(),
    path: Type.String(),
    status: Type.Integer(),
    error: Type.String(),
    why: Type.String({ description: 'The `error_description` of the response.' }),
    rule: Type.String({ description: 'The rule that was broken.' }),
    clause: Type.Optional(Clause),
    stored: Type.Optional(Type.Unknown({ description: 'What the server has.' })),
    received: Type.Optional(Type.Unknown({ description: 'What the request had instead.' })),
    client: Type.Optional(Type.String()),
  },
  { title: 'Rejection', ...closed },
)

/** Every setting. */
export const Settings = Type.Object(
  {
    mode: Type.String({ description: 'serve, or dev for a development server.' }),
    items: Type.Array(
      Type.Object(
        {
          option: Type.String({ description: 'Its path in the file.' }),
          value: Type.Optional(
            Type.Unknown({ description: 'Absent if it has none; *** instead of a secret.' }),
          ),
          source: Type.String({ description: 'default, file, variable or flag.' }),
          name: Type.Optional(Type.String({ description: 'Of the file, the variable or the flag.' })),
        },
        { title: 'Setting', ...closed },
      ),
    ),
  },
  { title: 'Settings', ...closed },
)

/** Where a scope or resource is set. Only what is stored can be changed: the configuration file wins. */
const Origin = Type.String({
  description: 'configuration, server or stored. Only what is stored can be changed.',
})

/** Members of a scope in other languages. */
export const scopeWords = {
  additionalProperties: false,
  patternProperties: {
    '^(?:group|description)#[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*$': {
      type: 'string',
      description: 'The same in another language, such as `description#de`.',
    },
  },
} as const

/** A scope in force. */
export const ScopeResource = Type.Object(
  {
    name: Type.String(),
    group: Type.String(),
    access: Type.String({ description: 'identity, read or write.' }),
    description: Type.String(),
    sensitive: Type.Boolean(),
    origin: Origin,
  },
  { title: 'Scope', ...scopeWords },
)

/** A protected resource, RFC 8707, as the configuration declares it. */
export const ResourceResource = Type.Object(
  {
    identifier: Type.String(),
    name: Type.String(),
    scopes: Type.Array(Type.String()),
    token_format: Type.String(),
    access_token_seconds: Type.Integer(),
    origin: Origin,
  },
  { title: 'Resource', ...closed },
)

/** A page of a list. */
export function pageOf(item: TSchema, title: string) {
  return Type.Object(
    {
      items: Type.Array(item),
      next: Type.Optional(Type.String({ description: 'The cursor of the next page; absent on the last.' })),
    },
    { title, ...closed },
  )
}

const Limit = Type.Optional(
  Type.String({
    pattern: '^(?:[1-9]\\d?|1\\d\\d|200)$',
    description: 'At most this many, 1 to 200; default 50.',
  }),
)
const After = Type.Optional(Type.String({ description: 'The cursor `next` of the page before.' }))

/** The query of a list, with its filters. */
export function listQuery(filters: Readonly<Record<string, TSchema>>) {
  return Type.Object({ limit: Limit, after: After, ...filters }, closed)
}

/** The response of what deletes something. */
export const nothing: TSchema = { type: 'null' } as unknown as TSchema // the schema of the status says so
