/**
 * The test configurations that the suite takes: the clients, and what its browser does on each page of this server. The
 * texts and selectors are those of views/ and of the error descriptions; another page fails the module.
 */
import type { ConfigurationName } from './plans.ts'

type Action = readonly (string | number)[]

interface Task {
  readonly task: string
  readonly match: string
  /** Whether the page may be left out. */
  readonly optional?: true
  readonly commands?: readonly Action[]
}

interface Visit {
  readonly match: string
  readonly 'match-limit'?: number
  readonly tasks: readonly Task[]
}

/** What a server was given for the suite. */
export interface Registered {
  readonly issuer: string
  readonly username: string
  readonly password: string
  /** The clients of docs/testing.md, by name. */
  readonly clients: Readonly<Record<string, { readonly id: string; readonly secret?: string }>>
  readonly fapiScope: string
  readonly fapiKeys: Readonly<Record<string, unknown>>
  readonly initialAccessToken: string
}

/** The scope with which a client may call the admin API, which rejects a token in the query. */
export const adminScope = 'admin:users:read'

const patienceSeconds = 10
const clickIfThere = (css: string): Action => ['click', 'css', css, 'optional']
const typeIfThere = (id: string, text: string): Action => ['text', 'id', id, text, 'optional']
/** Waits for a text; with `picture` the page stands for the picture that the suite asks for. */
const waitFor = (text: string, ...picture: readonly string[]): Action => [
  'wait',
  'xpath',
  '//*',
  patienceSeconds,
  text,
  ...picture,
]
const picture = 'update-image-placeholder'

/** @throws {Error} for a configuration of a client that the server does not have. */
export function configurationOf(name: ConfigurationName, registered: Registered): object {
  const { issuer, username, clients, fapiScope } = registered
  const pages = pagesOf(registered)
  const common = {
    alias: 'lychgate',
    description: `Lychgate: ${name}`,
    server: { discoveryUrl: `${issuer}/.well-known/openid-configuration`, login_hint: username },
    options: { browsercontrol_css_enable: false },
    browser: [pages.authorize],
  }
  const client = (called: string) => {
    const found = clients[called]
    if (found === undefined) throw new Error(`docs/testing.md no longer adds the client "${called}"`)
    return { client_id: found.id, client_secret: found.secret }
  }
  const threeClients = () => ({
    client: client('Suite, client'),
    client2: client('Suite, client2'),
    client_secret_post: client('Suite, client_secret_post'),
  })
  const registers = (number: number) => ({
    client_name: `Suite, dynamic ${number}`,
    initial_access_token: registered.initialAccessToken,
  })
  const keyed = (number: 'one' | 'two', scope: string) => ({
    ...client(`Suite, FAPI ${number}`),
    scope,
    dpop_signing_alg: 'ES256',
    jwks: registered.fapiKeys[number],
  })
  const fapi = (scope: string, resource: string) => ({
    ...common,
    client: keyed('one', scope),
    client2: keyed('two', scope),
    resource: { resourceUrl: `${issuer}${resource}` },
    override: pages.fapiModules,
  })
  switch (name) {
    case 'basic':
      return { ...common, ...threeClients(), override: pages.basicModules }
    case 'dynamic':
      return { ...common, client: registers(1), client2: registers(2), override: pages.basicModules }
    case 'logout':
      return {
        ...common,
        ...threeClients(),
        browser: [pages.authorize, pages.logout],
        override: pages.logoutModules,
      }
    case 'fapi2':
      return fapi(fapiScope, '/api/oauth/userinfo')
    case 'fapi2-oauth':
      return fapi(`offline_access ${adminScope}`, '/api/admin/v1/users')
    case 'fapi2-client':
      return fapi(adminScope, '/api/admin/v1/users')
  }
}

/** What the browser does, for all modules and for those that expect another page. */
function pagesOf({ issuer, username, password }: Registered) {
  const here = `${issuer}/*`
  const authorization = `${issuer}/oauth/authorize*`
  const endSession = `${issuer}/oauth/logout*`
  const consent = `${issuer}/consent*`

  const signIn = (...first: readonly Action[]): Task => ({
    task: 'Sign in',
    optional: true,
    match: `${issuer}/login*`,
    commands: [
      ...first,
      typeIfThere('username', username),
      typeIfThere('password', password),
      clickIfThere('button.primary'),
    ],
  })
  const approve: Task = {
    task: 'Approve',
    optional: true,
    match: consent,
    commands: [clickIfThere('button[value=approve]')],
  }
  /** A response by form_post leaves the page by script. */
  const leave = (path: string): Task => ({
    task: 'Leave',
    optional: true,
    match: here,
    commands: [['wait', 'match', `^[^?]*/test/[^?]*/${path}`, patienceSeconds]],
  })
  const arrive: Task = {
    task: 'Arrive',
    match: '*/test/*/callback*',
    commands: [['wait', 'id', 'submission_complete', patienceSeconds]],
  }
  const back = [leave('callback'), arrive]
  const authorize: Visit = { match: authorization, tasks: [signIn(), approve, ...back] }
  /** The picture is of the second sign-in; the first one shows the usual page. */
  const signInAgain: Visit = {
    match: authorization,
    tasks: [
      signIn(waitFor('Sign in|Confirm that it is you', 'update-image-placeholder-optional')),
      approve,
      ...back,
    ],
  }
  const deny: Visit = {
    match: authorization,
    tasks: [
      signIn(),
      { task: 'Deny', match: consent, commands: [['click', 'css', 'button[value=deny]']] },
      ...back,
    ],
  }
  const look: Visit = {
    match: authorization,
    'match-limit': 1,
    tasks: [{ task: 'Look', match: `${issuer}/login*`, commands: [waitFor('Sign in')] }],
  }
  const pageAt = (match: string, text: string): Visit => ({
    match,
    tasks: [{ task: 'Expect a page', match: here, commands: [waitFor(text, picture)] }],
  })
  const consentPage = (text: string, ...first: readonly Action[]): Visit => ({
    match: authorization,
    tasks: [
      signIn(),
      { task: 'Expect the consent page', match: consent, commands: [...first, waitFor(text, picture)] },
    ],
  })
  const confirm: Task = {
    task: 'Confirm',
    optional: true,
    match: here,
    commands: [clickIfThere('button[value=logout]')],
  }
  const logout: Visit = {
    match: endSession,
    tasks: [
      confirm,
      leave('post_logout_redirect'),
      { task: 'Arrive', match: '*/test/*/post_logout_redirect*' },
    ],
  }
  const signedOut: Visit = {
    match: endSession,
    tasks: [
      confirm,
      {
        task: 'Expect the page after it',
        match: here,
        commands: [waitFor('You are signed out', picture)],
      },
    ],
  }
  const wrongRedirect = [pageAt(authorization, 'redirect_uri is not registered for this client')]
  /** What is not valid of a request to sign out costs its redirect, and never the sign-out. */
  const noRedirect = [authorize, pageAt(endSession, 'Sign out of .*|You are signed out')]
  const usedUp = pageAt(authorization, 'request_uri is unknown, has expired or was used')
  return {
    authorize,
    logout,
    basicModules: browsers('oidcc-', {
      'prompt-login': [signInAgain],
      'max-age-1': [signInAgain],
      'ensure-registered-redirect-uri': wrongRedirect,
      'ensure-request-object-with-redirect-uri': wrongRedirect,
      'redirect-uri-query-added': wrongRedirect,
      'redirect-uri-query-mismatch': wrongRedirect,
      'ensure-redirect-uri-in-authorization-request': [pageAt(authorization, 'redirect_uri is missing')],
      'registration-logo-uri': [
        consentPage('Allow .* to use your account', [
          'wait-element-visible',
          'css',
          'img.client-logo',
          patienceSeconds,
        ]),
      ],
      'registration-policy-uri': [consentPage('Privacy policy')],
      'registration-tos-uri': [consentPage('Terms')],
    }),
    logoutModules: browsers('oidcc-rp-initiated-logout-', {
      'bad-post-logout-redirect-uri': noRedirect,
      'query-added-to-post-logout-redirect-uri': noRedirect,
      'modified-id-token-hint': noRedirect,
      'bad-id-token-hint': noRedirect,
      'no-id-token-hint': noRedirect,
      'no-params': [authorize, signedOut],
      'no-post-logout-redirect-uri': [authorize, signedOut],
      'only-state': [authorize, signedOut],
    }),
    fapiModules: browsers('fapi2-security-profile-final-', {
      'user-rejects-authentication': [deny],
      'par-ensure-reused-request-uri-prior-to-auth-completion-succeeds': [look, authorize],
      'par-attempt-reuse-request_uri': [{ ...authorize, 'match-limit': 1 }, usedUp],
      'par-attempt-to-use-expired-request_uri': [usedUp],
      'par-attempt-to-use-request_uri-for-different-client': [
        pageAt(authorization, 'request_uri was pushed by another client'),
      ],
    }),
  }
}

/** What some modules have in place of the configuration's `browser`. */
function browsers(prefix: string, modules: Readonly<Record<string, readonly Visit[]>>) {
  return Object.fromEntries(
    Object.entries(modules).map(([module, browser]) => [`${prefix}${module}`, { browser }]),
  )
}
