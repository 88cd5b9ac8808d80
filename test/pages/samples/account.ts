import type { AccountFrame, AccountSection } from '../../../src/pages/account/account-page.ts'
import { accountSections, sectionPath } from '../../../src/pages/account/account-page.ts'
import { msg } from '../../../src/pages/i18n/i18n.ts'
import type { Pages } from '../../../src/pages/pages.ts'
import type { OfferedScope } from '../../../src/pages/scopes.ts'
import { hostileText } from './hostile-text.ts'

type AccountView = Extract<keyof Pages, `account-${string}`>
type AccountSample = { [K in AccountView]: { readonly page: K; readonly model: Pages[K] } }[AccountView]

const hidden = { csrf: 'nQ2Vd0' }
const alice = { name: 'Alice Example', username: 'alice' }
const now = 1_795_000_000
const day = 86_400

function frameOf(section: AccountSection, user = alice): AccountFrame {
  const sections = accountSections.map((each) => ({ section: each, url: sectionPath(each) }))
  return { sections, section, user, switchUrl: '/account/switch', signOutUrl: '/oauth/logout' }
}

function scope(name: string, description: string, sensitive = false): OfferedScope {
  return { name, description, checked: true, required: false, sensitive }
}

const grant = {
  id: 'awBzF8LV1vweCK9B',
  grantedAgoSeconds: 3 * day,
  usedAgoSeconds: 90,
  endsInSeconds: 30 * day,
  redirectHost: '127.0.0.1:51004',
  loopback: true,
  identity: [scope('openid', 'Know who you are on this service')],
  areas: [
    {
      group: 'Courses',
      read: scope('courses:read', 'Titles, lessons and schedules'),
      write: scope('courses:write', 'Titles, lessons and schedules'),
    },
    { group: 'Students', read: scope('students:read', 'Names, email addresses and progress', true) },
  ],
  others: [],
  resources: [],
}

const sessions = [
  {
    handle: 'this',
    here: true,
    browser: 'Firefox, Linux',
    from: msg('place.sameNetwork'),
    signedInAgoSeconds: 120,
    ways: ['passkey'],
  },
  {
    handle: 'phone',
    here: false,
    browser: 'Safari, iOS',
    from: msg('place.network', { network: { host: '203.0.113.0/24' } }),
    signedInAgoSeconds: 2 * day,
    ways: ['password', 'code'],
  },
  { handle: 'other', here: false, signedInAgoSeconds: 6 * day, ways: [] },
] as const

const waysIn = { password: true, passkeys: 2, codes: true, recoveryCodes: 8 }
const noWaysIn = { password: false, passkeys: 0, codes: false, recoveryCodes: 0 }
const urls = {
  apps: '/account/apps',
  sessions: '/account/sessions',
  security: '/account/security',
  profile: '/account/profile',
}
const securityUrls = {
  password: '/account/password',
  passkeys: '/account/passkeys',
  codes: '/account/one-time-codes',
}

/** The account pages as users normally see them. */
export const accountPages = {
  'account-overview': {
    page: 'account-overview',
    model: {
      frame: frameOf('overview'),
      action: '/account',
      hidden,
      apps: 3,
      sessions: 2,
      signedInAgoSeconds: 120,
      email: 'alice@riverside.example',
      emailVerified: true,
      waysIn,
      groups: [{ name: 'staff', description: 'Everyone who works here' }, { name: 'teachers' }],
      urls,
    },
  },
  'account-overview-new': {
    page: 'account-overview',
    model: {
      frame: frameOf('overview'),
      action: '/account',
      hidden,
      apps: 0,
      sessions: 1,
      signedInAgoSeconds: 5,
      emailVerified: false,
      waysIn: noWaysIn,
      groups: [],
      urls,
    },
  },
  'account-start': {
    page: 'account-start',
    model: {
      frame: frameOf('start'),
      action: '/account/start',
      hidden,
      apps: [
        {
          name: 'Course Planner',
          url: 'https://planner.riverside.example/login?iss=https%3A%2F%2Fid.riverside.example',
          host: 'planner.riverside.example',
          // An image that the samples have.
          logoUrl: '/assets/icon.svg',
        },
        {
          name: 'library.riverside.example',
          url: 'https://library.riverside.example/',
          host: 'library.riverside.example',
        },
        {
          name: 'Parents’ Portal',
          url: 'https://portal.riverside.example/',
          host: 'portal.riverside.example',
        },
      ],
      securityUrl: '/account/security',
      nextUrl: '/account/start?after=MjAw',
    },
  },
  'account-start-none': {
    page: 'account-start',
    model: { frame: frameOf('start'), action: '/account/start', hidden, apps: [] },
  },
  'account-apps': {
    page: 'account-apps',
    model: {
      frame: { ...frameOf('apps'), done: 'disconnected' },
      action: '/account/apps',
      hidden,
      count: 22,
      nextUrl: '/account/apps?page=2',
      apps: [
        {
          clientId: 'c_9Jp2bXqR7sTf',
          name: 'Course Sync CLI',
          selfRegistered: true,
          registeredAgoSeconds: 3 * day,
          registeredFrom: msg('place.here'),
          grants: ['a', 'b', 'c', 'd', 'e'].map((id, index) => ({
            ...grant,
            id: `awBzF8LV1vweCK9${id}`,
            grantedAgoSeconds: (1 + 9 * index) * day,
          })),
          grantsNotShown: 41,
          remembered: false,
        },
        {
          clientId: 'c_3Jp2bXqR7sTf',
          name: 'Parents’ Portal',
          selfRegistered: false,
          registeredAgoSeconds: 200 * day,
          grants: [
            {
              ...grant,
              redirectHost: 'portal.riverside.example',
              loopback: false,
              through: 'Course Planner',
              resources: [{ name: 'Riverside School API', identifier: 'https://api.riverside.example/v1' }],
            },
          ],
          grantsNotShown: 0,
          remembered: true,
        },
        {
          clientId: 'https://claude.ai/oauth/claude-code-client-metadata',
          name: 'Claude Code',
          selfRegistered: false,
          publishedBy: 'claude.ai',
          registeredAgoSeconds: 20 * day,
          grants: [grant],
          grantsNotShown: 0,
          remembered: false,
        },
      ],
    },
  },
  'account-apps-none': {
    page: 'account-apps',
    model: { frame: frameOf('apps'), action: '/account/apps', hidden, apps: [], count: 0 },
  },
  'account-sessions': {
    page: 'account-sessions',
    model: { frame: frameOf('sessions'), action: '/account/sessions', hidden, sessions },
  },
  'account-security': {
    page: 'account-security',
    model: {
      frame: { ...frameOf('security'), done: 'password-changed' },
      action: '/account/security',
      hidden,
      waysIn,
      urls: securityUrls,
      upstreamsUrl: '/account/upstreams',
    },
  },
  'account-security-bare': {
    page: 'account-security',
    model: {
      frame: frameOf('security'),
      action: '/account/security',
      hidden,
      waysIn: noWaysIn,
      urls: securityUrls,
    },
  },
  'account-password': {
    page: 'account-password',
    model: {
      frame: frameOf('security'),
      action: '/account/password',
      hidden,
      username: 'alice',
      hasPassword: true,
    },
  },
  'account-passkeys': {
    page: 'account-passkeys',
    model: {
      frame: { ...frameOf('security'), done: 'passkey-added' },
      action: '/account/passkeys',
      hidden,
      passkeys: [
        { handle: 'p1', name: 'Firefox, Linux', addedAgoSeconds: 60, synced: false },
        { handle: 'p2', name: 'Telephone', addedAgoSeconds: 8_000_000, usedAgoSeconds: 3600, synced: true },
      ],
      isFull: false,
      creation: { options: '{"challenge":"3q2-7w"}', name: 'Chrome, macOS' },
    },
  },
  'account-passkeys-none': {
    page: 'account-passkeys',
    model: {
      frame: frameOf('security'),
      action: '/account/passkeys',
      hidden,
      passkeys: [],
      isFull: false,
      problem: msg('passkeys.refused'),
    },
  },
  'account-upstreams': {
    page: 'account-upstreams',
    model: {
      frame: { ...frameOf('security'), done: 'upstream-linked' },
      action: '/account/upstreams',
      hidden,
      links: [{ handle: 'u1', name: 'Riverside School District', linkedAgoSeconds: 8_000_000 }],
      others: [{ id: 'work', name: 'Work' }],
    },
  },
  'account-upstreams-last': {
    page: 'account-upstreams',
    model: {
      frame: frameOf('security'),
      action: '/account/upstreams',
      hidden,
      links: [{ handle: 'u1', name: 'Work', linkedAgoSeconds: 60 }],
      others: [],
      problem: msg('upstreams.last', { upstream: 'Work' }),
    },
  },
  'account-one-time-codes': {
    page: 'account-one-time-codes',
    model: {
      frame: frameOf('security'),
      action: '/account/one-time-codes',
      hidden,
      hasPassword: true,
      inUse: { sinceAgoSeconds: 8_000_000, recoveryCodes: 8 },
    },
  },
  'account-one-time-codes-begun': {
    page: 'account-one-time-codes',
    model: {
      frame: { ...frameOf('security'), done: 'codes-begun' },
      action: '/account/one-time-codes',
      hidden,
      hasPassword: true,
      setUp: { pictureUrl: '/assets/icon.svg', secret: 'KZXW6YTBOI7DAMJQKZXW6YTBOI7DAMJQ' },
      problem: msg('codes.wrong'),
    },
  },
  'account-one-time-codes-fresh': {
    page: 'account-one-time-codes',
    model: {
      frame: frameOf('security'),
      action: '/account/one-time-codes',
      hidden,
      hasPassword: true,
      inUse: { sinceAgoSeconds: 1, recoveryCodes: 10 },
      fresh: Array.from({ length: 10 }, (_, index) => `7k2m-9xqd-0hjp-c4t${index}`),
    },
  },
  'account-one-time-codes-none': {
    page: 'account-one-time-codes',
    model: { frame: frameOf('security'), action: '/account/one-time-codes', hidden, hasPassword: true },
  },
  'account-password-problem': {
    page: 'account-password',
    model: {
      frame: frameOf('security'),
      action: '/account/password',
      hidden,
      username: 'alice',
      hasPassword: true,
      problem: msg('password.common'),
    },
  },
  'account-profile': {
    page: 'account-profile',
    model: {
      frame: { ...frameOf('profile'), done: 'email-sent' },
      action: '/account/profile',
      hidden,
      username: 'alice',
      fields: [
        { claim: 'name', value: 'Alice Example' },
        { claim: 'given_name', value: 'Alice' },
        { claim: 'family_name', value: '' },
        { claim: 'birthdate', value: 'last spring', fault: 'birthdate' },
      ],
      facts: [
        { claim: 'phone_number', label: msg('claim.phone_number'), text: '+46 8 555 123 45' },
        { claim: 'https://riverside.example/class', text: '4b' },
      ],
      attributes: [
        { name: 'shirt', label: 'Shirt size', type: 'choice', values: ['S', 'M', 'L'], value: 'M' },
        {
          name: 'vegetarian',
          label: 'Vegetarian',
          type: 'boolean',
          values: ['true', 'false'],
          value: 'true',
        },
        { name: 'room', label: 'Room', type: 'string', values: [], value: 'B 12' },
        { name: 'shoes', label: 'Shoe size', type: 'number', values: [], value: 'big', fault: 'number' },
        { name: 'department', label: 'Department', values: [], value: 'physics' },
        { name: 'tutor', label: 'Tutor', values: ['true', 'false'], value: 'false' },
      ],
      email: {
        address: 'alice@riverside.example',
        verified: false,
        canVerify: true,
        url: '/account/email',
      },
    },
  },
  'account-email': {
    page: 'account-email',
    model: {
      frame: frameOf('profile'),
      action: '/account/email',
      hidden,
      email: 'alice@riverside.example',
      asksPassword: true,
      problem: msg('email.invalid'),
    },
  },
  'account-activity': {
    page: 'account-activity',
    model: {
      frame: frameOf('activity'),
      action: '/account/activity',
      hidden,
      events: [
        { at: now - 40, agoSeconds: 40, what: msg('activity.password'), from: msg('place.sameNetwork') },
        {
          at: now - day,
          agoSeconds: day,
          what: msg('activity.signInFor', { app: 'Course Sync CLI' }),
          from: msg('place.network', { network: { host: '203.0.113.0/24' } }),
        },
        { at: now - 9 * day, agoSeconds: 9 * day, what: msg('activity.added') },
      ],
      copyUrl: '/account/privacy',
    },
  },
  'account-privacy': {
    page: 'account-privacy',
    model: {
      frame: frameOf('privacy'),
      action: '/account/privacy',
      hidden,
      deleteUrl: '/account/delete',
    },
  },
  'account-delete': {
    page: 'account-delete',
    model: {
      frame: frameOf('privacy'),
      action: '/account/delete',
      hidden,
      username: 'alice',
      keepUrl: '/account/privacy',
      problem: msg('delete.other'),
    },
  },
  'account-deleted': { page: 'account-deleted', model: {} },
} as const satisfies Readonly<Record<string, AccountSample>>

const hostileScope = scope(hostileText, hostileText, true)
const hostileHidden = { [hostileText]: hostileText }
const hostileProblem = msg('consent.resource', { name: hostileText, address: { host: hostileText } })
const hostileFrame = (section: AccountSection) =>
  frameOf(section, { name: hostileText, username: hostileText })

/** The same with hostile text wherever text can be. */
export const hostileAccountPages = {
  'hostile-account-overview': {
    page: 'account-overview',
    model: {
      frame: hostileFrame('overview'),
      action: hostileText,
      hidden: hostileHidden,
      apps: 1000,
      sessions: 1,
      signedInAgoSeconds: 1,
      email: hostileText,
      emailVerified: false,
      waysIn,
      groups: [{ name: hostileText, description: hostileText }],
      urls,
    },
  },
  'hostile-account-start': {
    page: 'account-start',
    model: {
      frame: hostileFrame('start'),
      action: hostileText,
      hidden: hostileHidden,
      apps: [{ name: hostileText, url: `https://app.example/${hostileText}`, host: hostileText }],
    },
  },
  'hostile-account-apps': {
    page: 'account-apps',
    model: {
      frame: hostileFrame('apps'),
      action: hostileText,
      hidden: hostileHidden,
      count: 45,
      previousUrl: '/account/apps?page=1',
      nextUrl: '/account/apps?page=3',
      apps: [
        {
          clientId: hostileText,
          name: hostileText,
          selfRegistered: true,
          registeredAgoSeconds: 60,
          registeredFrom: msg('place.network', { network: { host: hostileText } }),
          grants: [1, 2].map((id) => ({
            ...grant,
            id: `${id} ${hostileText}`,
            redirectHost: hostileText,
            through: hostileText,
            identity: [hostileScope],
            areas: [{ group: hostileText, read: hostileScope, write: hostileScope }],
            others: [hostileText],
            resources: [{ name: hostileText, identifier: hostileText.slice(1) }],
          })),
          grantsNotShown: 0,
          remembered: true,
        },
        {
          clientId: 'c_9Jp2bXqR7sTf',
          selfRegistered: true,
          registeredAgoSeconds: 60,
          grants: [],
          grantsNotShown: 0,
          remembered: false,
        },
        {
          clientId: hostileText,
          selfRegistered: false,
          publishedBy: hostileText,
          registeredAgoSeconds: 60,
          grants: [],
          grantsNotShown: 0,
          remembered: false,
        },
      ],
    },
  },
  'hostile-account-sessions': {
    page: 'account-sessions',
    model: {
      frame: hostileFrame('sessions'),
      action: hostileText,
      hidden: hostileHidden,
      sessions: sessions.map((session) => ({
        ...session,
        handle: `${session.handle} ${hostileText}`,
        browser: hostileText,
        from: msg('place.network', { network: { host: hostileText } }),
      })),
    },
  },
  'hostile-account-passkeys': {
    page: 'account-passkeys',
    model: {
      frame: hostileFrame('security'),
      action: hostileText,
      hidden: hostileHidden,
      passkeys: [{ handle: hostileText, name: hostileText, addedAgoSeconds: 1, synced: true }],
      isFull: false,
      creation: { options: hostileText, name: hostileText },
    },
  },
  'hostile-account-upstreams': {
    page: 'account-upstreams',
    model: {
      frame: hostileFrame('security'),
      action: hostileText,
      hidden: hostileHidden,
      links: [{ handle: hostileText, name: hostileText, linkedAgoSeconds: 1 }],
      others: [{ id: hostileText, name: hostileText }],
      problem: msg('upstreams.last', { upstream: hostileText }),
    },
  },
  'hostile-account-password': {
    page: 'account-password',
    model: {
      frame: hostileFrame('security'),
      action: hostileText,
      hidden: hostileHidden,
      username: hostileText,
      hasPassword: false,
      problem: hostileProblem,
    },
  },
  'hostile-account-profile': {
    page: 'account-profile',
    model: {
      frame: hostileFrame('profile'),
      action: hostileText,
      hidden: hostileHidden,
      username: hostileText,
      fields: [{ claim: 'name', value: hostileText, fault: 'invisible' }],
      facts: [{ claim: hostileText, text: hostileText }],
      attributes: [
        { name: 'a', label: hostileText, type: 'choice', values: [hostileText], value: hostileText },
        { name: 'b', label: hostileText, type: 'string', values: [], value: hostileText, fault: 'invisible' },
        { name: 'c', label: hostileText, values: [], value: hostileText },
      ],
      email: { address: hostileText, verified: false, canVerify: true, url: `/${hostileText}` },
    },
  },
  'hostile-account-email': {
    page: 'account-email',
    model: {
      frame: hostileFrame('profile'),
      action: hostileText,
      hidden: hostileHidden,
      email: hostileText,
      asksPassword: true,
      problem: hostileProblem,
    },
  },
  'hostile-account-activity': {
    page: 'account-activity',
    model: {
      frame: hostileFrame('activity'),
      action: hostileText,
      hidden: hostileHidden,
      events: [
        {
          at: now,
          agoSeconds: 1,
          what: msg('activity.consent', { app: hostileText }),
          from: msg('place.network', { network: { host: hostileText } }),
        },
      ],
    },
  },
  'hostile-account-delete': {
    page: 'account-delete',
    model: {
      frame: hostileFrame('privacy'),
      action: hostileText,
      hidden: hostileHidden,
      username: hostileText,
      keepUrl: `/${hostileText}`,
      problem: hostileProblem,
    },
  },
} as const satisfies Readonly<Record<string, AccountSample>>
