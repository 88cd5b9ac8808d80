import { type Static, Type } from '@sinclair/typebox'
import { textClaims } from '../domain/editable-claims.ts'
import { defaultScopeCatalogue } from '../domain/scope-catalogue.ts'
import type { Entry } from '../i18n/catalogue.ts'

const seconds = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 1, description })
const bytes = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 64, description })
const count = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 1, description })
const closed = { additionalProperties: false } as const
/** Closed but for members with a language tag, such as `description#de`: checks.ts knows which. */
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
      description: 'The area it belongs to, one row on the consent page; `group#de` is its German name.',
    }),
    access: Type.Union([Type.Literal('identity'), Type.Literal('read'), Type.Literal('write')], {
      description: 'Its column on the consent page; identity scopes stand by themselves.',
    }),
    description: Type.String({
      minLength: 1,
      description: 'The sentence a person reads when asked for it; `description#de` is the German one.',
    }),
    sensitive: Type.Optional(
      Type.Boolean({
        description: 'Marked on the consent page: it opens what is known of other people, money or rights.',
      }),
    ),
    claims: Type.Optional(Type.Array(Type.String(), { description: 'Claims it opens at UserInfo.' })),
  },
  localizable,
)

const ResourceEntry = Type.Object(
  {
    identifier: Type.String({
      minLength: 1,
      description: 'The absolute URI clients send as `resource`, RFC 8707 §2.',
    }),
    name: Type.String({ minLength: 1, description: 'What people call it; `name#de`: in German.' }),
    scopes: Type.Array(Type.String(), { description: 'The scopes this resource understands.' }),
    tokenFormat: Type.Union([Type.Literal('opaque'), Type.Literal('jwt')], {
      default: 'opaque',
      description: 'opaque: looked up, revocable at once. jwt: RFC 9068, verified without a look-up.',
    }),
    accessTokenSeconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'Lifetime of its access tokens; absent: lifetimes.accessTokenSeconds.',
      }),
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

/** Every option there is. Names carry their units; the table of docs/configuration.md is made from this. */
export const ConfigSchema = Type.Object(
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
      description: 'The port to listen on; 0 takes a free one.',
    }),
    data: Type.String({ default: './data', description: 'The folder of the SQLite database.' }),
    store: Type.Optional(
      Type.String({
        description: 'A SQLite file as sqlite:FILE, or postgres://…; absent: lychgate.db in the data folder.',
        examples: ['postgres://lychgate:password@localhost/lychgate'],
      }),
    ),
    storeConnections: count(
      10,
      'Connections of this server to PostgreSQL, at most; every server has its own.',
    ),
    secret: Type.Optional(
      Type.String({
        minLength: 32,
        examples: [exampleSecret],
        description:
          'Encrypts the private keys at rest; `lychgate keys secret` prints one. At least 32 characters. `serve` refuses to start without it.',
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
        description: 'What is worth a log line.',
      },
    ),
    trustProxy: Type.Array(Type.String(), {
      default: [],
      description: 'Addresses or CIDR ranges whose X-Forwarded-For is believed, for rate limits only.',
      examples: [['10.0.0.7', '10.1.0.0/16']],
    }),
    rateLimits: Type.Union([Type.Literal('on'), Type.Literal('off')], {
      default: 'on',
      description:
        'Request rate limits; off is accepted on a loopback issuer only. The throttle on failed sign-ins stays on.',
    }),
    service: Type.Object(
      {
        name: Type.String({
          default: 'Lychgate',
          minLength: 1,
          description: 'What people know this service as.',
        }),
        language: Type.String({
          default: 'en',
          description:
            'The language of pages for people who ask for none that is here: en, de, fr, es, pt, ja or ar.',
        }),
        logo: Type.Optional(
          Type.String({
            description: 'The file of a logo for the pages: SVG, PNG, JPEG or WebP, 256 KiB at most.',
            examples: ['/etc/lychgate/logo.svg'],
          }),
        ),
        logoDark: Type.Optional(
          Type.String({
            description: 'The file of a logo for dark pages; absent: the same.',
            examples: ['/etc/lychgate/logo-dark.svg'],
          }),
        ),
        logoName: Type.Union([Type.Literal('beside'), Type.Literal('inside')], {
          default: 'beside',
          description: 'Where the name is: written beside the logo, or inside it already.',
        }),
        accent: Type.Optional(
          Type.String({
            description:
              'The colour of buttons, links and ticks, as #rrggbb in quotes; its shades for dark pages and for text follow.',
            examples: ['#2c52b3'],
          }),
        ),
        help: link('URL of a page that helps people.', 'https://example.org/help'),
        documentation: link('URL of the developer documentation.', 'https://example.org/developers'),
        policy: link('URL of the privacy policy.', 'https://example.org/privacy'),
        terms: link('URL of the terms of service.', 'https://example.org/terms'),
      },
      section('What people are told about this service.'),
    ),
    views: Type.Optional(
      Type.String({
        description:
          'A folder with templates, style.css or icon.svg that replace the shipped ones of the same name.',
        examples: ['/etc/lychgate/views'],
      }),
    ),
    texts: Type.Record(
      Type.String(),
      Type.Record(Type.String(), Type.Unsafe<Entry>(Type.Any()), {
        description: 'By the key it has in views/texts/en.json.',
      }),
      {
        default: {},
        description: 'Texts in place of the shipped ones, by language and key; docs/appearance.md has more.',
        examples: [{ en: { 'login.title': 'Sign in to {service}' } }],
      },
    ),
    lifetimes: Type.Object(
      {
        codeSeconds: Type.Integer({
          default: 60,
          minimum: 1,
          maximum: 600,
          description: 'An authorization code.',
        }),
        accessTokenSeconds: seconds(3600, 'An access token.'),
        refreshTokenIdleSeconds: seconds(2_592_000, 'A refresh token that is not used.'),
        refreshTokenAbsoluteSeconds: seconds(7_776_000, 'All refresh tokens of one approval.'),
        refreshReuseSeconds: Type.Integer({
          default: 10,
          minimum: 0,
          description: 'For how long a just rotated refresh token gets the same successor again; 0: never.',
        }),
        idTokenSeconds: seconds(3600, 'An ID Token.'),
        sessionIdleSeconds: seconds(43_200, 'A login that is not used.'),
        sessionAbsoluteSeconds: seconds(604_800, 'A login, whatever happens.'),
        interactionSeconds: seconds(1800, 'A pending authorization request.'),
        unusedClientSeconds: seconds(
          2_592_000,
          'A self-registered client that is never used; then it is removed.',
        ),
        idleClientSeconds: Type.Integer({
          default: 34_560_000,
          minimum: 0,
          description:
            'A self-registered client after its last token, 400 days, at least as long as it could refresh; then it is removed. 0: never.',
        }),
        firstPersonSeconds: seconds(
          86_400,
          'The link that `serve` prints on an empty store, with which the first person is made.',
        ),
        invitationSeconds: seconds(604_800, 'The link of an invitation.'),
        passwordResetSeconds: seconds(3600, 'The link to a new password.'),
        emailVerificationSeconds: seconds(86_400, 'The link that proves an e-mail address.'),
        emailUndoSeconds: seconds(
          259_200,
          'The link that the old address gets after a change of address, to undo it.',
        ),
        metadataCacheSeconds: seconds(300, 'How long the metadata documents and keys may be cached.'),
      },
      section('How long things live.'),
    ),
    keys: Type.Object(
      {
        rotationSeconds: Type.Integer({
          default: 7_776_000,
          minimum: 0,
          description: 'The age at which a key gets a successor; 0: only `lychgate keys rotate` makes one.',
        }),
        publishAheadSeconds: seconds(86_400, 'How long a new key is published before it signs.'),
        reloadSeconds: seconds(
          60,
          'How often a server looks for keys that are due, or that another process made or retired.',
        ),
      },
      section('When keys get a successor.'),
    ),
    registration: Type.Object(
      {
        loopbackHosts: Type.Array(Type.Union([Type.Literal('localhost')]), {
          default: ['localhost'],
          description:
            'Host names accepted in redirect URIs beside 127.0.0.1 and [::1]; [] accepts these two only.',
        }),
        foreignRedirects: Type.Union([Type.Literal('refuse'), Type.Literal('drop')], {
          default: 'refuse',
          description:
            'What a redirect URI that is not loopback does to the registration: refuse all of it, or drop that entry.',
        }),
      },
      section('What clients that register themselves may have.'),
    ),
    accounts: Type.Object(
      {
        editable: Type.Array(
          Type.Union([...textClaims.map((claim) => Type.Literal(claim)), Type.Literal('email')]),
          {
            default: ['name', 'given_name', 'family_name', 'nickname', 'email'],
            description:
              'The claims that users change themselves; `email` only with `mail.url`: a new address is proven before it counts.',
          },
        ),
        deletion: Type.Union([Type.Literal('on'), Type.Literal('off')], {
          default: 'on',
          description: 'Whether people may delete their own account.',
        }),
      },
      section('What people may do with their own account.'),
    ),
    mail: Type.Object(
      {
        url: Type.Optional(
          Type.String({
            description:
              'The mail server: smtp://, with STARTTLS where the server has it and always where a password is sent, or smtps://. Absent: links are printed instead, and nobody can ask for a new password.',
            examples: ['smtps://lychgate:password@mail.example.org:465'],
          }),
        ),
        from: Type.Optional(
          Type.String({
            description: 'Who the mail is from; needed with mail.url.',
            examples: ['accounts@example.org'],
          }),
        ),
        replyTo: Type.Optional(
          Type.String({
            description: 'Where answers go; absent: to mail.from.',
            examples: ['help@example.org'],
          }),
        ),
      },
      section('How letters to people are sent: invitations, new passwords, proofs of an address.'),
    ),
    scopes: Type.Array(ScopeEntry, {
      default: defaultScopeCatalogue,
      description: 'The scope catalogue; given, it replaces the shipped one of 38 names.',
      examples: [exampleScopes],
    }),
    resources: Type.Array(ResourceEntry, {
      default: [],
      description: "APIs besides the service's own, which is always one.",
      examples: [[exampleResource]],
    }),
    limits: Type.Object(
      {
        tokenBodyBytes: bytes(
          16_384,
          'A form body: token, revocation, introspection, UserInfo, authorization, pages.',
        ),
        registrationBodyBytes: bytes(65_536, 'A registration body.'),
        clientMetadataBytes: bytes(8192, 'What is stored of a client that registers itself, as JSON.'),
        parameters: count(100, 'Parameters in one request.'),
        parameterBytes: bytes(8192, 'One parameter value.'),
        redirectUris: count(50, 'Redirect URIs of one client.'),
        jsonDepth: count(10, 'Nesting of a JSON body.'),
        grantsPerUserAndClient: Type.Integer({
          default: 1000,
          minimum: 0,
          description:
            'Grants of one user at one client; at every tenth part of this, the oldest beyond it are deleted. 0: no limit.',
        }),
      },
      section('How large a request may be, and how many grants a client may collect.'),
    ),
    requestsPerMinute: Type.Object(
      {
        registration: count(
          30,
          'Registrations from one address prefix (/24 or /64); updates and deletions of them, each.',
        ),
        authorization: count(300, 'Authorization requests from one address prefix, by each method.'),
        token: count(
          600,
          'Token, revocation and introspection requests from one address prefix, and reads of a registration, each.',
        ),
        signIn: count(60, 'Sign-in attempts from one address prefix.'),
      },
      section('Requests a minute before the answer is 429.'),
    ),
    signInThrottle: Type.Object(
      {
        failuresPerAccountAndPrefix: count(
          10,
          'Failed sign-ins to one account from one address prefix in a window.',
        ),
        failuresPerPrefix: count(
          100,
          'Failed sign-ins from one address prefix in a window; the first three of one name count as one.',
        ),
        failuresPerPrefixAndUser: Type.Integer({
          default: 2,
          minimum: 0,
          description: 'So many more for each user who signed in from the address prefix this week or last.',
        }),
        failuresPerAccount: count(
          100,
          'Failed sign-ins to one account from browsers that never signed in to it, in a window.',
        ),
        failuresInARow: count(
          100,
          'Failed sign-ins to one account in a row before it needs a new password or `lychgate user unlock`.',
        ),
        windowSeconds: seconds(900, 'The window, from its first failure.'),
      },
      section('Failed sign-ins before further ones are refused.'),
    ),
    passwordQueue: count(32, 'Password checks that may wait; beyond it sign-in answers 503.'),
    refusalsKept: Type.Integer({
      default: 100_000,
      minimum: 0,
      description:
        'Rejected requests that `lychgate explain` can look up, the newest, 2 KiB each at most; 0: none. One network replaces a tenth of them a day at most.',
    }),
    management: Type.Object(
      {
        port: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: 65535,
            description: 'Serves /metrics for Prometheus, /livez and /readyz; absent: nothing is measured.',
            examples: [9464],
          }),
        ),
        host: Type.String({
          default: '127.0.0.1',
          description: 'The address of that listener; whoever reaches it may read it.',
        }),
        hosts: Type.Optional(
          Type.Array(Type.String(), {
            description:
              'Names by which it is called, besides addresses and those of loopback; other names are rejected.',
            examples: [['lychgate', 'node-1']],
          }),
        ),
      },
      section('Where those who look after the server look.'),
    ),
    dev: Type.Object(
      {
        autoSignIn: Type.Optional(
          Type.String({
            minLength: 1,
            description:
              'Whoever is to sign in is this person, without a page; another listed one where `login_hint` says so.',
            examples: ['alice'],
          }),
        ),
        loginHintSignsIn: Type.Union([Type.Literal('on'), Type.Literal('off')], {
          default: 'off',
          description: 'Whether `login_hint` signs in the listed person it names, without a page.',
        }),
        autoConsent: Type.Union([Type.Literal('on'), Type.Literal('off')], {
          default: 'off',
          description: 'Whether everything a client asks for is agreed to, without a page.',
        }),
        hosts: Type.Optional(
          Type.Array(Type.String(), {
            description:
              'Names, besides those of loopback, by which a development server is called: that of its container, or of a page that calls it.',
            examples: [['lychgate', 'app.test']],
          }),
        ),
        peers: Type.Optional(
          Type.Array(Type.String(), {
            description:
              'Addresses or CIDR ranges, besides loopback, whose requests reach `/_dev`: the gateway of a container network.',
            examples: [['172.17.0.1', '172.18.0.0/16']],
          }),
        ),
      },
      section('Of a development server alone; `lychgate serve` rejects all of it.'),
    ),
    auditSeconds: Type.Integer({
      default: 34_560_000,
      minimum: 0,
      description: 'How long `lychgate audit` can tell what was done, 400 days; 0: for ever.',
    }),
    sweepSeconds: seconds(60, 'How often expired records are deleted.'),
    drainSeconds: Type.Integer({
      default: 1,
      minimum: 0,
      maximum: 60,
      description: 'After SIGTERM, how long kept-alive connections are told to leave before they are closed.',
    }),
  },
  closed,
)

export type Config = Static<typeof ConfigSchema> & { readonly mode: 'dev' | 'serve' }
export type ScopeEntry = Static<typeof ScopeEntry>
export type ResourceEntry = Static<typeof ResourceEntry>
