import { defaultScopeCatalogue } from '../../../src/domain/scope-catalogue.ts'
import type { Text } from '../../../src/domain/text.ts'
import { msg } from '../../../src/pages/i18n/i18n.ts'
import type { Pages } from '../../../src/pages/pages.ts'
import type { OfferedScope, ScopeArea } from '../../../src/pages/scopes.ts'
import { accountPages, hostileAccountPages } from './account.ts'
import { devicePages, hostileDevicePages } from './device.ts'
import { hostileText } from './hostile-text.ts'
import { hostileLinkPages, linkPages } from './links.ts'

export { hostileText } from './hostile-text.ts'

/** A page with a model, under the name of the sample. */
export type Sample = { [K in keyof Pages]: { readonly page: K; readonly model: Pages[K] } }[keyof Pages]

const hidden = { interaction: 'lyi_3vQ8', csrf_token: 'nQ2Vd0' }
const user = { name: 'Alice Example', username: 'alice' }
const users = [
  { id: 'user_1', ...user },
  { id: 'user_2', name: 'Riverside School', username: 'office@riverside.example' },
]
const passkey = {
  options: '{"challenge":"3q2-7w","rpId":"id.riverside.example","userVerification":"required"}',
}

function askFor(names: readonly string[]): Pick<Pages['consent'], 'identity' | 'areas' | 'onlyNew'> {
  const identity: OfferedScope[] = []
  const areas = new Map<string, ScopeArea>()
  for (const { name, group, access, description, sensitive = false } of defaultScopeCatalogue) {
    if (!names.includes(name)) continue
    const scope = { name, description, checked: true, required: name === 'openid', sensitive }
    if (access === 'identity') identity.push(scope)
    else areas.set(group, { ...areas.get(group), group, [access]: scope })
  }
  return { identity, areas: [...areas.values()], onlyNew: false }
}

const everyScope = defaultScopeCatalogue.map(({ name }) => name)

const consent: Pages['consent'] = {
  action: '/consent',
  changed: false,
  hidden,
  onlyReadUrl: '/consent?interaction=lyi_3vQ8&ticked=read',
  allUrl: '/consent?interaction=lyi_3vQ8&ticked=all',
  user,
  switchUrl: '/login?interaction=lyi_3vQ8',
  client: {
    name: 'Course Sync CLI',
    id: 'c_9Jp2bXqR7sTf',
    selfRegistered: true,
    registeredAgoSeconds: 4,
    registeredFrom: msg('place.here'),
    redirectUri: 'http://127.0.0.1:51004/callback',
    redirectHost: '127.0.0.1:51004',
    loopback: true,
    links: [],
  },
  resources: [],
  ...askFor([
    'openid',
    'profile',
    'courses:read',
    'courses:write',
    'students:read',
    'students:write',
    'orders:read',
    'coupons:read',
    'coupons:write',
    'storage:write',
  ]),
  accessLastsSeconds: 7_776_000,
}

const { registeredFrom: _, ...anonymous } = consent.client
const published = { ...anonymous, name: 'Claude', selfRegistered: false, publishedBy: 'claude.ai' }
const webRedirect = 'https://claude.ai/api/mcp/auth_callback'

/** Every page as users normally see it, and its variants. */
export const ordinary = {
  login: {
    page: 'login',
    model: {
      action: '/login',
      hidden,
      clientName: 'Course Sync CLI',
      again: false,
      forgotUrl: '/forgot-password?interaction=lyi_3vQ8',
    },
  },
  'login-app': {
    page: 'login',
    model: {
      action: '/login',
      hidden,
      clientName: 'Verwaltungsprogramm für die Stundenpläne der Realschule am Flussufer, Nord',
      again: false,
      forgotUrl: '/forgot-password?interaction=lyi_3vQ8',
      elsewhere: [{ name: 'Riverside School District', url: '/login/upstream/work?interaction=lyi_3vQ8' }],
      passkey,
      client: {
        logoUrl: '/assets/icon.svg',
        links: [
          {
            label: msg('consent.privacy'),
            url: 'https://legal.stundenplanverwaltung-am-flussufer.riverside.example/privacy',
            host: 'legal.stundenplanverwaltung-am-flussufer.riverside.example',
          },
          {
            label: msg('consent.terms'),
            url: 'https://coursesync.example/terms',
            host: 'coursesync.example',
          },
        ],
      },
    },
  },
  // On a development server.
  'login-users': {
    page: 'login',
    model: {
      action: '/login',
      hidden,
      clientName: 'Course Sync CLI',
      again: false,
      users: [
        { name: 'Alice Mary Archer', username: 'alice' },
        { name: 'Bob Baker', username: 'bob' },
      ],
    },
  },
  'login-problem': {
    page: 'login',
    model: {
      action: '/login',
      hidden,
      clientName: 'Course Sync CLI',
      username: 'alice',
      problem: msg('login.wrong'),
      again: false,
    },
  },
  'login-again': { page: 'login', model: { action: '/login', hidden, username: 'alice', again: true } },
  'select-account': {
    page: 'select-account',
    model: { action: '/select-account', hidden, clientName: 'Course Sync CLI', users },
  },
  'login-passkey': {
    page: 'login',
    model: { action: '/login', hidden, clientName: 'Course Sync CLI', again: false, passkey },
  },
  enrol: {
    page: 'enrol',
    model: {
      action: '/login',
      hidden,
      clientName: 'Course Sync CLI',
      user,
      anotherUrl: '/login?interaction=lyi_3vQ8&another=1',
      kind: 'second factor',
      from: 1_800_000_000,
      passkeysUrl: '/account/passkeys?for=lyi_3vQ8',
      codesUrl: '/account/one-time-codes?for=lyi_3vQ8',
    },
  },
  'enrol-nowhere': {
    page: 'enrol',
    model: { action: '/login', hidden, user, anotherUrl: '/login?another=1', kind: 'passkey' },
  },
  'second-factor': {
    page: 'second-factor',
    model: {
      action: '/login',
      hidden,
      clientName: 'Course Sync CLI',
      user,
      anotherUrl: '/login?interaction=lyi_3vQ8&another=1',
      codes: 'one-time',
      insteadUrl: '/login?interaction=lyi_3vQ8&recovery=1',
      passkey,
    },
  },
  'second-factor-recovery': {
    page: 'second-factor',
    model: {
      action: '/login',
      hidden,
      user,
      anotherUrl: '/login?interaction=lyi_3vQ8&another=1',
      codes: 'recovery',
      insteadUrl: '/login?interaction=lyi_3vQ8',
      problem: msg('second.wrongRecovery'),
    },
  },
  'second-factor-passkey': {
    page: 'second-factor',
    model: {
      action: '/login',
      hidden,
      clientName: 'Course Sync CLI',
      user,
      anotherUrl: '/login?interaction=lyi_3vQ8&another=1',
      passkey,
    },
  },
  consent: { page: 'consent', model: consent },
  'consent-everything': {
    page: 'consent',
    model: {
      ...consent,
      ...askFor(everyScope),
      client: {
        ...consent.client,
        links: [
          { label: msg('consent.website'), url: 'https://coursesync.example/', host: 'coursesync.example' },
          {
            label: msg('consent.privacy'),
            url: 'https://legal.coursesync.example/privacy',
            host: 'legal.coursesync.example',
          },
        ],
      },
      resources: [
        { name: 'Riverside School API', identifier: 'https://api.riverside.example/v1' },
        { name: 'Video archive', identifier: 'https://video.riverside.example/' },
      ],
      accountUrl: '/account',
    },
  },
  'consent-published': {
    page: 'consent',
    model: {
      ...consent,
      client: { ...published, redirectUri: webRedirect, redirectHost: 'claude.ai', loopback: false },
    },
  },
  'consent-app': {
    page: 'consent',
    model: {
      ...consent,
      client: {
        ...consent.client,
        redirectUri: 'app.immich:///oauth-callback',
        redirectHost: 'app.immich',
        loopback: false,
        opensApp: true,
      },
    },
  },
  'consent-published-here': { page: 'consent', model: { ...consent, client: published } },
  denied: {
    page: 'denied',
    model: {
      action: '/consent',
      hidden,
      clientName: 'Grades',
      user,
      switchUrl: '/login?interaction=lyi_3vQ8&switch=1',
      contact: 'help@riverside.example',
    },
  },
  'consent-changed': { page: 'consent', model: { ...consent, changed: true } },
  'consent-identity': {
    page: 'consent',
    model: {
      action: '/consent',
      changed: false,
      hidden,
      user,
      switchUrl: '/login?interaction=lyi_3vQ8',
      client: {
        ...consent.client,
        name: 'Parents’ Portal',
        selfRegistered: false,
        registeredAgoSeconds: 7_800_000,
        redirectUri: 'https://portal.riverside.example/oidc/callback',
        redirectHost: 'portal.riverside.example',
        loopback: false,
      },
      resources: [],
      ...askFor(['openid', 'profile', 'email']),
    },
  },
  ...devicePages(askFor(['openid', 'profile', 'courses:read', 'courses:write', 'students:read'])),
  logout: {
    page: 'logout',
    model: { action: '/oauth/logout', hidden, user, clientName: 'Course Sync CLI' },
  },
  'logout-nobody': { page: 'logout', model: { action: '/oauth/logout', hidden } },
  'signed-out': { page: 'signed-out', model: { clientName: 'Course Sync CLI', againUrl: '/account' } },
  'form-post': {
    page: 'form-post',
    model: {
      redirectUri: 'https://portal.riverside.example/oidc/callback',
      redirectHost: 'portal.riverside.example',
      members: [
        { name: 'code', value: 'lyc_code_AbC' },
        { name: 'state', value: 'xyz' },
      ],
    },
  },
  error: {
    page: 'error',
    model: {
      status: 400,
      title: msg('error.request.title'),
      advice: msg('error.request.advice'),
      forDeveloper: {
        code: 'invalid_request',
        description: 'redirect_uri is not one of those the client registered',
      },
      requestId: 'req-4f2a91c07b',
    },
  },
  'error-not-found': {
    page: 'error',
    model: { status: 404, title: msg('error.notFound'), advice: msg('error.notFound.advice') },
  },
  'error-expired': {
    page: 'error',
    model: {
      status: 400,
      title: msg('error.expired'),
      advice: msg('error.expired.advice'),
      requestId: 'req-4f2a91c07d',
      link: {
        url: 'https://portal.riverside.example/start',
        host: 'portal.riverside.example',
        label: msg('error.back', { client: 'Riverside Portal' }),
      },
    },
  },
  'error-later': {
    page: 'error',
    model: {
      status: 429,
      title: msg('error.tooMany'),
      advice: msg('error.tooMany.advice'),
      requestId: 'req-4f2a91c07c',
      retryAfterSeconds: 90,
      link: { url: '/login', label: msg('error.outdated.again') },
    },
  },
  ...accountPages,
  ...linkPages,
  home: {
    page: 'home',
    model: {
      issuer: 'https://id.riverside.example',
      links: [
        { label: msg('home.metadata'), url: '/.well-known/oauth-authorization-server' },
        { label: msg('home.api'), url: '/openapi.json' },
      ],
    },
  },
} as const satisfies Readonly<Record<string, Sample>>

/** A text of the catalogue with hostile names in it. */
const foreign: Text = {
  key: 'consent.resource',
  with: { name: hostileText, address: { list: [{ host: hostileText }, { code: hostileText }] } },
}
const hostileScope = {
  name: hostileText,
  description: hostileText,
  checked: true,
  required: false,
  sensitive: true,
}
const hostileAccount = { name: hostileText, username: hostileText }
const hostileHidden = { [hostileText]: hostileText }

/** Every page with hostile text wherever text can be. */
export const hostile = {
  'hostile-login': {
    page: 'login',
    model: {
      action: hostileText,
      hidden: hostileHidden,
      clientName: hostileText,
      username: hostileText,
      problem: foreign,
      again: true,
      client: {
        logoUrl: `/assets/icon.svg?v=${hostileText}`,
        links: [
          { label: foreign, url: 'javascript:alert(1)', host: hostileText },
          { label: foreign, url: `https://evil.test/${hostileText}`, host: hostileText },
        ],
      },
    },
  },
  'hostile-select-account': {
    page: 'select-account',
    model: {
      action: hostileText,
      hidden: hostileHidden,
      clientName: hostileText,
      users: [{ id: hostileText, ...hostileAccount }],
    },
  },
  'hostile-second-factor': {
    page: 'second-factor',
    model: {
      action: hostileText,
      hidden: hostileHidden,
      clientName: hostileText,
      user: hostileAccount,
      anotherUrl: `/login?${new URLSearchParams({ interaction: hostileText })}`,
      codes: 'one-time',
      insteadUrl: `/login?${new URLSearchParams({ interaction: hostileText })}`,
      passkey: { options: hostileText },
      problem: foreign,
    },
  },
  'hostile-denied': {
    page: 'denied',
    model: {
      action: hostileText,
      hidden: hostileHidden,
      clientName: hostileText,
      user: hostileAccount,
      switchUrl: `/${hostileText}`,
      contact: hostileText,
    },
  },
  'hostile-consent': {
    page: 'consent',
    model: {
      action: hostileText,
      hidden: hostileHidden,
      onlyReadUrl: `/${hostileText}`,
      allUrl: `/${hostileText}`,
      user: hostileAccount,
      switchUrl: `/${hostileText}`,
      client: {
        name: hostileText,
        id: hostileText,
        selfRegistered: true,
        registeredAgoSeconds: 60,
        registeredFrom: foreign,
        redirectUri: hostileText,
        redirectHost: hostileText,
        loopback: false,
        links: [
          { label: foreign, url: `https://evil.test/${hostileText}`, host: hostileText },
          { label: msg('consent.website'), url: 'javascript:alert(1)', host: 'evil.test' },
        ],
      },
      resources: [{ name: hostileText, identifier: hostileText }],
      identity: [hostileScope],
      changed: false,
      onlyNew: true,
      areas: [{ group: hostileText, read: hostileScope, write: { ...hostileScope, description: 'other' } }],
      accessLastsSeconds: 7_776_000,
      accountUrl: `/${hostileText}`,
    },
  },
  'hostile-consent-published': {
    page: 'consent',
    model: {
      ...consent,
      client: { ...published, name: hostileText, publishedBy: hostileText, redirectHost: hostileText },
    },
  },
  'hostile-consent-nameless': {
    page: 'consent',
    model: {
      ...consent,
      client: {
        id: 'c_9Jp2bXqR7sTf',
        selfRegistered: true,
        registeredAgoSeconds: 60,
        redirectUri: 'http://[::1]:51004/callback',
        redirectHost: '[::1]:51004',
        loopback: true,
        links: [],
      },
    },
  },
  ...hostileDevicePages(
    { identity: [], areas: [{ group: hostileText, read: hostileScope }] },
    hostileAccount,
  ),
  'hostile-logout': {
    page: 'logout',
    model: { action: hostileText, hidden: hostileHidden, user: hostileAccount, clientName: hostileText },
  },
  'hostile-signed-out': {
    page: 'signed-out',
    model: { clientName: hostileText, appUrl: `https://evil.test/?q=${hostileText}`, againUrl: '/account' },
  },
  'hostile-form-post': {
    page: 'form-post',
    model: {
      redirectUri: `https://evil.test/?q=${hostileText}`,
      redirectHost: hostileText,
      members: [{ name: hostileText, value: hostileText }],
    },
  },
  'hostile-error': {
    page: 'error',
    model: {
      status: 400,
      title: foreign,
      advice: foreign,
      forDeveloper: { code: hostileText, description: hostileText },
      requestId: hostileText,
      link: { url: `/${hostileText}`, label: foreign, host: hostileText },
    },
  },
  'hostile-error-reference': {
    page: 'error',
    model: {
      status: 400,
      title: foreign,
      advice: foreign,
      requestId: hostileText,
      traceUrl: `/${hostileText}`,
    },
  },
  ...hostileAccountPages,
  ...hostileLinkPages(foreign),
  'hostile-home': {
    page: 'home',
    model: { issuer: hostileText, links: [{ label: foreign, url: `/${hostileText}` }] },
  },
} as const satisfies Readonly<Record<string, Sample>>
