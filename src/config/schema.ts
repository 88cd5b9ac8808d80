import { type Static, Type } from '@sinclair/typebox'
import { attributeRoles, attributeTypes } from '../domain/attributes.ts'
import { textClaims } from '../domain/claims.ts'
import { defaultScopeCatalogue } from '../domain/scope-catalogue.ts'

/** One text of a page: a sentence, or one for each plural form of the language, chosen by `count`. */
export type TextEntry = string | Partial<Readonly<Record<Intl.LDMLPluralRule, string>>>

const seconds = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 1, description })
const bytes = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 64, description })
const count = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 1, description })
const closed = { additionalProperties: false } as const
/** Accepts members with a language tag, such as `description#de`; checks.ts decides which. */
const localizable = { additionalProperties: Type.String({ minLength: 1 }) }
const section = (description: string) => ({ ...closed, default: {}, description })
const link = (description: string, example: string) =>
  Type.Optional(Type.String({ description, examples: [example] }))

const ScopeEntry = Type.Object(
  {
    name: Type.String({
      pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$',
      description: 'The scope value, RFC 6749 §3.3.',
    }),
    group: Type.String({
      minLength: 1,
      description: 'The area of the scope, one row on the consent page; `group#de` is its German name.',
    }),
    access: Type.Union([Type.Literal('identity'), Type.Literal('read'), Type.Literal('write')], {
      description: 'The column on the consent page; identity scopes have their own list.',
    }),
    description: Type.String({
      minLength: 1,
      description: 'The sentence on the consent page; `description#de` is the German one.',
    }),
    sensitive: Type.Optional(
      Type.Boolean({
        description:
          "Whether the consent page marks it: it gives access to other people's data, money or permissions.",
      }),
    ),
    claims: Type.Optional(Type.Array(Type.String(), { description: 'Claims that UserInfo returns for it.' })),
  },
  localizable,
)

const ResourceEntry = Type.Object(
  {
    identifier: Type.String({
      minLength: 1,
      description: 'The absolute URI that clients send as `resource`, RFC 8707 §2.',
    }),
    name: Type.String({ minLength: 1, description: 'The name that users see; `name#de` is the German one.' }),
    scopes: Type.Array(Type.String(), { description: 'The scopes that this resource accepts.' }),
    tokenFormat: Type.Union([Type.Literal('opaque'), Type.Literal('jwt')], {
      default: 'opaque',
      description: 'opaque: introspected, revoked immediately. jwt: RFC 9068, verified by its signature.',
    }),
    accessTokenSeconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'Lifetime of its access tokens; by default lifetimes.accessTokenSeconds.',
      }),
    ),
  },
  localizable,
)

const AttributeEntry = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      description:
        'Its name in commands, and that of its claim: up to 50 of a-z, 0-9 and _. No claim that has a meaning.',
    }),
    label: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 60,
        description: 'What pages call it; by default its name. `label#de` is the German one.',
      }),
    ),
    type: Type.Union(
      attributeTypes.map((type) => Type.Literal(type)),
      { default: 'string', description: 'The type of its values; choice: one of `values`.' },
    ),
    values: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), { description: 'The values of a choice, 50 at most.' }),
    ),
    scope: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'A scope of the catalogue by which UserInfo has it, such as profile; without one, the claims of a client name it.',
      }),
    ),
    visible: Type.Union(
      attributeRoles.map((role) => Type.Literal(role)),
      {
        default: 'administrator',
        description: 'Who sees it: `user`, the user on the account page too, or only administrators.',
      },
    ),
    editable: Type.Union(
      attributeRoles.map((role) => Type.Literal(role)),
      {
        default: 'administrator',
        description: 'Who changes it: `user`, the user on the account page too, or only administrators.',
      },
    ),
  },
  localizable,
)

/** The secret of the example files, which is public; servers reject it. */
export const exampleSecret = 'make-one-with-openssl-rand-base64-32'

const exampleScopes: Static<typeof ScopeEntry>[] = [
  {
    name: 'openid',
    group: 'Your identity',
    access: 'identity',
    description: 'Know who you are on this service',
    sensitive: false,
    claims: ['name', 'email'],
  },
  { name: 'courses:read', group: 'Courses', access: 'read', description: 'Titles, lessons and schedules' },
]

const exampleResource: Static<typeof ResourceEntry> = {
  identifier: 'https://api.example.org',
  name: 'Course API',
  scopes: ['courses:read'],
  tokenFormat: 'opaque',
  accessTokenSeconds: 600,
}

const exampleAttribute: Static<typeof AttributeEntry> = {
  name: 'department',
  label: 'Department',
  type: 'choice',
  values: ['physics', 'biology'],
  scope: 'courses:read',
  visible: 'user',
  editable: 'administrator',
}

/** Every option but those of features, see options.ts. Names carry their units. */
export const CommonSettings = Type.Object(
  {
    issuer: Type.String({
      default: 'http://localhost:9400',
      description: 'The public base URL; every public URL derives from it. http only on loopback.',
    }),
    host: Type.String({ default: '127.0.0.1', description: 'The address to listen on.' }),
    port: Type.Integer({
      default: 9400,
      minimum: 0,
      maximum: 65535,
      description: 'The port to listen on; 0 selects a free one.',
    }),
    data: Type.String({ default: './data', description: 'The folder that contains the SQLite database.' }),
    store: Type.Optional(
      Type.String({
        description:
          'A SQLite file as sqlite:FILE, or postgres://… with a percent-encoded password (%40 for @); by default lychgate.db in the data folder.',
        examples: ['postgres://lychgate:password@localhost/lychgate'],
      }),
    ),
    storeConnections: count(
      10,
      'Maximum number of PostgreSQL connections of this server; every server, and each of its workers, has its own pool.',
    ),
    workers: Type.Union([Type.Integer({ minimum: 1, maximum: 128 }), Type.Literal('auto')], {
      default: 1,
      description:
        'Number of processes of `lychgate serve`, which share its port; auto: one for each core, or fewer if the memory is small. `lychgate dev` is always one process.',
    }),
    secret: Type.Optional(
      Type.String({
        minLength: 32,
        examples: [exampleSecret],
        description:
          'Encrypts the private keys at rest; `lychgate keys secret` prints one. At least 32 characters. `serve` does not start without it.',
      }),
    ),
    logLevel: Type.Union(
      [
        Type.Literal('fatal'),
        Type.Literal('error'),
        Type.Literal('warn'),
        Type.Literal('info'),
        Type.Literal('debug'),
        Type.Literal('silent'),
      ],
      {
        default: 'info',
        description: 'The lowest level that is logged.',
      },
    ),
    logFormat: Type.Union([Type.Literal('json'), Type.Literal('text')], {
      default: 'json',
      description:
        'How `lychgate serve` writes its log; text is for reading. `lychgate dev` always writes text.',
    }),
    logFailedSignIns: Type.Union([Type.Literal('on'), Type.Literal('off')], {
      default: 'off',
      description:
        'Whether each failed or throttled sign-in is logged with the whole address it came from, for tools such as fail2ban.',
    }),
    trustProxy: Type.Array(Type.String(), {
      default: [],
      description:
        'Addresses or CIDR ranges of proxies. X-Forwarded-For is used from these only: for rate limits, and for the network that sessions and the audit log show.',
      examples: [['10.0.0.7', '10.1.0.0/16']],
    }),
    rateLimits: Type.Union([Type.Literal('on'), Type.Literal('off')], {
      default: 'on',
      description:
        'Request rate limits; off is accepted for a loopback issuer only. The throttle on failed sign-ins stays on.',
    }),
    service: Type.Object(
      {
        name: Type.String({
          default: 'Lychgate',
          minLength: 1,
          description: 'The name of this service on every page and in every email.',
        }),
        language: Type.String({
          default: 'en',
          description:
            'The language of pages if neither the client nor the browser asks for a supported one: en, de, fr, es, pt, ja or ar.',
        }),
        logo: Type.Optional(
          Type.String({
            description: 'The logo file: SVG, PNG, JPEG or WebP, 256 KiB at most.',
            examples: ['/etc/lychgate/logo.svg'],
          }),
        ),
        logoDark: Type.Optional(
          Type.String({
            description: 'The logo file for dark pages; by default the same.',
            examples: ['/etc/lychgate/logo-dark.svg'],
          }),
        ),
        logoName: Type.Union([Type.Literal('beside'), Type.Literal('inside')], {
          default: 'beside',
          description: 'Where the name appears: printed next to the logo, or already inside the image.',
        }),
        accent: Type.Optional(
          Type.String({
            description:
              'The colour of buttons, links and check marks, as #rrggbb in quotes; the shades for dark pages and for text derive from it.',
            examples: ['#2c52b3'],
          }),
        ),
        help: link('URL of a help page for users.', 'https://example.org/help'),
        documentation: link('URL of the developer documentation.', 'https://example.org/developers'),
        policy: link('URL of the privacy policy.', 'https://example.org/privacy'),
        terms: link('URL of the terms of service.', 'https://example.org/terms'),
      },
      section('What the pages show about this service.'),
    ),
    views: Type.Optional(
      Type.String({
        description:
          'A folder with templates, style.css or icon.svg, each of which replaces the shipped file of the same name.',
        examples: ['/etc/lychgate/views'],
      }),
    ),
    texts: Type.Record(
      Type.String(),
      Type.Record(Type.String(), Type.Unsafe<TextEntry>(Type.Any()), {
        description: 'By its key in views/texts/en.json.',
      }),
      {
        default: {},
        description: 'Texts that replace shipped ones, by language and key; see docs/appearance.md.',
        examples: [{ en: { 'login.title': 'Sign in to {service}' } }],
      },
    ),
    lifetimes: Type.Object(
      {
        codeSeconds: Type.Integer({
          default: 60,
          minimum: 1,
          maximum: 600,
          description: 'Lifetime of an authorization code.',
        }),
        accessTokenSeconds: seconds(3600, 'Lifetime of an access token.'),
        refreshTokenIdleSeconds: seconds(2_592_000, 'Lifetime of a refresh token that is not used.'),
        refreshTokenAbsoluteSeconds: seconds(7_776_000, 'Lifetime of all refresh tokens of one grant.'),
        refreshReuseSeconds: Type.Integer({
          default: 10,
          minimum: 0,
          description: 'How long a rotated refresh token still returns the same successor; 0: never.',
        }),
        idTokenSeconds: seconds(3600, 'Lifetime of an ID Token.'),
        sessionIdleSeconds: seconds(43_200, 'Lifetime of a session that is not used.'),
        sessionAbsoluteSeconds: seconds(604_800, 'Lifetime of a session, used or not.'),
        interactionSeconds: seconds(
          1800,
          'Lifetime of an interaction, that is a pending authorization request.',
        ),
        unusedClientSeconds: seconds(
          2_592_000,
          'Age at which a self-registered client that never got a token is deleted.',
        ),
        idleClientSeconds: Type.Integer({
          default: 34_560_000,
          minimum: 0,
          description:
            'Time after its last token at which a self-registered client is deleted, 400 days; not before its refresh tokens expire. 0: never.',
        }),
        firstUserSeconds: seconds(
          86_400,
          'Lifetime of the link that `serve` prints on an empty store, to create the first user.',
        ),
        invitationSeconds: seconds(604_800, 'Lifetime of an invitation link.'),
        passwordResetSeconds: seconds(3600, 'Lifetime of a password reset link.'),
        emailVerificationSeconds: seconds(86_400, 'Lifetime of the link that verifies an email address.'),
        emailUndoSeconds: seconds(
          259_200,
          'Lifetime of the link that is sent to the old email address after a change, to undo it.',
        ),
        metadataCacheSeconds: seconds(
          300,
          'How long clients may cache the metadata documents and the key set.',
        ),
      },
      section('How long everything that expires is valid.'),
    ),
    keys: Type.Object(
      {
        rotationSeconds: Type.Integer({
          default: 7_776_000,
          minimum: 0,
          description: 'The age at which a key gets a successor; 0: only `lychgate keys rotate` creates one.',
        }),
        publishAheadSeconds: seconds(86_400, 'How long a new key is published before it signs.'),
        reloadSeconds: seconds(
          60,
          'How often a server checks for keys that are due, or that another process created or retired.',
        ),
        ed25519: Type.Union([Type.Literal('on'), Type.Literal('off')], {
          default: 'on',
          description:
            'Whether the server signs with EdDSA; off for clients that fail at a key set with an Ed25519 key (kty OKP).',
        }),
      },
      section('Which keys the server signs with, and when they get a successor.'),
    ),
    accounts: Type.Object(
      {
        editable: Type.Array(
          Type.Union([...textClaims.map((claim) => Type.Literal(claim)), Type.Literal('email')]),
          {
            default: ['name', 'given_name', 'family_name', 'nickname', 'email'],
            description:
              'The claims that users may change; `email` needs `mail.url`, because a new address must be verified first.',
          },
        ),
        deletion: Type.Union([Type.Literal('on'), Type.Literal('off')], {
          default: 'on',
          description: 'Whether users may delete themselves on the account page.',
        }),
        attributes: Type.Array(AttributeEntry, {
          default: [],
          description: 'Custom attributes of users, 30 at most; see docs/groups.md.',
          examples: [[exampleAttribute]],
        }),
      },
      section('What users may do on their account page, and what is stored about them.'),
    ),
    mail: Type.Object(
      {
        url: Type.Optional(
          Type.String({
            description:
              'The mail server: smtps://, or smtp:// with STARTTLS if the server offers it, and required if there is a password. Without it commands print links, and users cannot reset their password.',
            examples: ['smtps://lychgate:password@mail.example.org:465'],
          }),
        ),
        from: Type.Optional(
          Type.String({
            description: 'The sender; required with mail.url.',
            examples: ['accounts@example.org'],
          }),
        ),
        replyTo: Type.Optional(
          Type.String({
            description: 'The Reply-To address; by default mail.from.',
            examples: ['help@example.org'],
          }),
        ),
        notices: Type.Union([Type.Literal('on'), Type.Literal('off')], {
          default: 'on',
          description:
            'Whether users get an email after a change of password, second factor, passkey or email address, and after a sign-in from a browser that is new to them.',
        }),
      },
      section('How to send email: invitations, password resets, address verification.'),
    ),
    backup: Type.Object(
      {
        endpoint: Type.Optional(
          Type.String({
            description:
              'The server of the bucket that `lychgate backup s3://…` copies to: S3, or one that speaks its protocol.',
            examples: ['https://s3.eu-central-1.amazonaws.com'],
          }),
        ),
        region: Type.String({
          default: 'us-east-1',
          minLength: 1,
          description: 'The region that requests to the bucket are signed for.',
        }),
        accessKey: Type.Optional(
          Type.String({
            minLength: 1,
            description: 'The access key of the bucket; required with backup.endpoint.',
            examples: ['AKIAIOSFODNN7EXAMPLE'],
          }),
        ),
        secretKey: Type.Optional(
          Type.String({
            minLength: 1,
            description: 'The secret of the access key; required with backup.endpoint.',
            examples: ['the-secret-of-the-access-key'],
          }),
        ),
      },
      section('The bucket that backups are copied to, if they are.'),
    ),
    scopes: Type.Array(ScopeEntry, {
      default: defaultScopeCatalogue,
      description:
        'The scope catalogue. If set, it replaces the shipped one of 38 scopes. Of a shipped scope, `groups` or `offline_access` the name is enough: without a description it has the shipped words, in every language.',
      examples: [exampleScopes],
    }),
    builtInApi: Type.Union([Type.Literal('on'), Type.Literal('off')], {
      default: 'on',
      description:
        'Whether the issuer serves the API of the service specification: /api/courses for `courses:read` and `courses:write`, and so on for each pair of the scope catalogue. Callers without a token are served as anonymous. `lychgate init` writes off.',
    }),
    resources: Type.Array(ResourceEntry, {
      default: [],
      description: "APIs in addition to the service's own, which always exists.",
      examples: [[exampleResource]],
    }),
    fetch: Type.Object(
      {
        timeoutSeconds: Type.Integer({
          default: 5,
          minimum: 1,
          maximum: 60,
          description: 'Time for one fetch, from the name of the host to the last byte.',
        }),
        responseBytes: bytes(65_536, 'Size of a response.'),
        perOriginPerMinute: count(
          30,
          'Fetches from one origin in a minute, by each node: for clients that an operator added, for known documents, for unknown documents and for request objects, each counted separately. A document gets a third of it at most.',
        ),
        perNetworkPerMinute: count(
          15,
          'Fetches of unknown documents that requests from one address prefix cause in a minute, by each node; of request objects as many.',
        ),
        privateNetworks: Type.Array(Type.String(), {
          default: [],
          description:
            'Addresses or CIDR ranges that may be connected to although they are not public: the network of your own clients.',
          examples: [['10.2.0.0/16']],
        }),
        keySetFloorSeconds: seconds(
          300,
          'How long a fetched key set is used at least before it is fetched again, except for an unknown `kid`.',
        ),
        keySetCeilingSeconds: seconds(
          86_400,
          'How long a fetched key set is used at most, also while it cannot be fetched again.',
        ),
      },
      section('How URLs that a client names are fetched, such as `jwks_uri`.'),
    ),
    limits: Type.Object(
      {
        tokenBodyBytes: bytes(
          16_384,
          'Size of a form body: token, revocation, introspection, UserInfo, authorization, pages.',
        ),
        registrationBodyBytes: bytes(65_536, 'Size of a registration body.'),
        clientMetadataBytes: bytes(
          8192,
          'Size of the stored metadata of a client that registered itself or published a document, as JSON.',
        ),
        unusedClientBytes: bytes(
          134_217_728,
          'Size of the stored metadata of all such clients that never got a token, as JSON. Beyond it the oldest of them are deleted, also before `lifetimes.unusedClientSeconds`.',
        ),
        parameters: count(100, 'Number of parameters in one request.'),
        parameterBytes: bytes(8192, 'Size of one parameter value.'),
        redirectUris: count(50, 'Number of redirect URIs of one client.'),
        jsonDepth: count(10, 'Nesting depth of a JSON body.'),
        grantsPerUserAndClient: Type.Integer({
          default: 1000,
          minimum: 0,
          description:
            'Number of grants of one user for one client; exchanged ones (RFC 8693) are counted apart. Each time a tenth of this is added, the oldest beyond it are deleted. 0: no limit.',
        }),
      },
      section('How large a request may be, and how many grants a client may collect.'),
    ),
    requestsPerMinute: Type.Object(
      {
        registration: count(
          30,
          'Registrations from one address prefix (/24 or /64). Updates and deletions are counted separately, with the same limit.',
        ),
        authorization: count(
          300,
          'Authorization requests and sign-outs by form from one address prefix. Each route and method is counted separately.',
        ),
        token: count(
          600,
          'Token, revocation and introspection requests and reads of a registration from one address prefix, each counted separately.',
        ),
        signIn: count(60, 'Sign-in attempts from one address prefix.'),
      },
      section('Requests per minute; beyond that the response is 429.'),
    ),
    signInThrottle: Type.Object(
      {
        failuresPerAccountAndPrefix: count(
          10,
          'Failed sign-ins of one user from one address prefix in a window.',
        ),
        failuresPerPrefix: count(
          100,
          'Failed sign-ins from one address prefix in a window; the first three with the same user name count as one.',
        ),
        failuresPerPrefixAndUser: Type.Integer({
          default: 2,
          minimum: 0,
          description:
            'Added to failuresPerPrefix for each user who signed in from the address prefix this week or last week.',
        }),
        failuresPerAccount: count(
          100,
          'Failed sign-ins of one user in a window, from browsers in which that user never signed in.',
        ),
        failuresInARow: count(
          100,
          'Consecutive failed sign-ins of one user; then only a new password or `lychgate user unlock` lets unknown browsers in.',
        ),
        windowSeconds: seconds(900, 'Length of the window, which starts at the first failure.'),
      },
      section('Failed sign-ins; beyond that further ones are rejected.'),
    ),
    passwordQueue: count(32, 'Password checks that may wait in the queue; beyond that sign-in returns 503.'),
    rejectionsKept: Type.Integer({
      default: 100_000,
      minimum: 0,
      description:
        'Number of rejected requests that `lychgate explain` can look up, the newest first, 2 KiB each at most; 0: none. Requests from one network replace at most a tenth of them per day.',
    }),
    admin: Type.Object(
      {
        api: Type.Optional(
          Type.Union([Type.Literal('on'), Type.Literal('off')], {
            description:
              'Whether the server has the admin API, /api/admin/v1; by default off, and on for a development server.',
            examples: ['on'],
          }),
        ),
        listener: Type.Union([Type.Literal('main'), Type.Literal('management')], {
          default: 'main',
          description:
            'Which listener serves the admin API. `management`: only that of management.port; at the issuer it is 404.',
        }),
        pages: Type.Union([Type.Literal('on'), Type.Literal('off')], {
          default: 'on',
          description: 'Whether the server has admin pages, /admin. Only administrators see them.',
        }),
        group: Type.String({
          default: 'admins',
          minLength: 1,
          description:
            'The name of the group of administrators. Members of its subgroups are administrators, too.',
        }),
        secondFactor: Type.Optional(
          Type.Union([Type.Literal('required'), Type.Literal('off')], {
            description:
              'Whether an administrator must have signed in with two factors to change something; by default required, and off for a development server.',
            examples: ['required'],
          }),
        ),
        secondFactorSeconds: seconds(
          600,
          'How long ago the administrator may have signed in to change something.',
        ),
        idempotencySeconds: seconds(
          86_400,
          'How long a request that is repeated with its Idempotency-Key gets the same response.',
        ),
      },
      section('Administration, and who may do it.'),
    ),
    management: Type.Object(
      {
        port: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: 65535,
            description:
              'The port that serves /metrics for Prometheus, /livez and /readyz. Without it nothing is measured.',
            examples: [9464],
          }),
        ),
        host: Type.String({
          default: '127.0.0.1',
          description: 'The address of that listener. Everyone who can reach it can read the metrics.',
        }),
        hosts: Type.Optional(
          Type.Array(Type.String(), {
            description:
              'Host names accepted by that listener, in addition to IP addresses and loopback names; others are rejected.',
            examples: [['lychgate', 'node-1']],
          }),
        ),
      },
      section('The listener for metrics and health checks.'),
    ),
    dev: Type.Object(
      {
        autoSignIn: Type.Optional(
          Type.String({
            minLength: 1,
            description:
              'The user who is signed in without a page; `login_hint` selects another user of the development server.',
            examples: ['alice'],
          }),
        ),
        loginHintSignsIn: Type.Union([Type.Literal('on'), Type.Literal('off')], {
          default: 'off',
          description: 'Whether `login_hint` signs in the user it names, without a page.',
        }),
        autoConsent: Type.Union([Type.Literal('on'), Type.Literal('off')], {
          default: 'off',
          description: 'Whether every requested scope is granted without a page.',
        }),
        hosts: Type.Optional(
          Type.Array(Type.String(), {
            description:
              'Host names accepted by a development server in addition to loopback names: that of its container, or of a page that calls it.',
            examples: [['lychgate', 'app.test']],
          }),
        ),
        peers: Type.Optional(
          Type.Array(Type.String(), {
            description:
              'Addresses or CIDR ranges that may call `/_dev`, in addition to loopback: the gateway of a container network.',
            examples: [['172.17.0.1', '172.18.0.0/16']],
          }),
        ),
      },
      section('Options of a development server; `lychgate serve` rejects all of them.'),
    ),
    auditSeconds: Type.Integer({
      default: 34_560_000,
      minimum: 0,
      description: 'How long audit events are kept for `lychgate audit`, 400 days; 0: forever.',
    }),
    sweepSeconds: seconds(60, 'How often expired records are deleted.'),
    drainSeconds: Type.Integer({
      default: 1,
      minimum: 0,
      maximum: 60,
      description:
        'After SIGTERM, how long responses ask clients to close kept-alive connections before the server closes them.',
    }),
  },
  closed,
)

/** The sections that features add; each declares its own, see feature.ts. */
// biome-ignore lint/suspicious/noEmptyInterface: features fill it by declaration merging.
export interface FeatureSettings {}

export type Config = Static<typeof CommonSettings> & FeatureSettings & { readonly mode: 'dev' | 'serve' }
export type ScopeEntry = Static<typeof ScopeEntry>
export type ResourceEntry = Static<typeof ResourceEntry>
export type AttributeEntry = Static<typeof AttributeEntry>
