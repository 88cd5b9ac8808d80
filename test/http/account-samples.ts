import type { AccountFrame } from '../../src/http/account-models.ts'
import type { ConsentScope, Pages } from '../../src/http/page-models.ts'
import { says } from '../../src/texts/catalogue.ts'
import { hostileText } from './hostile-text.ts'

const hidden = { csrf: 'nQ2Vd0' }
const account = { name: 'Alice Example', username: 'alice' }
const frame: Omit<AccountFrame, 'room'> = {
  root: '/account',
  rooms: ['apps'],
  account,
  signOutUrl: '/oauth/logout',
}

function scope(name: string, description: string, sensitive = false): ConsentScope {
  return { name, description, checked: true, required: false, sensitive }
}

const grant = {
  id: 'awBzF8LV1vweCK9B',
  grantedAgoSeconds: 3 * 86_400,
  usedAgoSeconds: 90,
  endsInSeconds: 30 * 86_400,
  redirectHost: '127.0.0.1:51004',
  loopback: true,
  identity: [scope('openid', 'Know who you are on this service')],
  areas: [
    {
      group: 'Courses',
      read: scope('courses:read', 'Titles, lessons and schedules'),
      write: scope('courses:write', 'Titles, lessons and schedules'),
    },
    { group: 'Students', read: scope('students:read', 'Names, e-mail addresses and progress', true) },
  ],
  others: [],
  resources: [],
}

/** The rooms of the account page as people normally see them. */
export const accountPages = {
  'account-apps': {
    page: 'account-apps',
    model: {
      frame: { ...frame, room: 'apps', done: 'disconnected' },
      action: '/account/apps',
      hidden,
      apps: [
        {
          clientId: 'c_9Jp2bXqR7sTf',
          name: 'Course Sync CLI',
          selfRegistered: true,
          registeredAgoSeconds: 3 * 86_400,
          registeredFrom: says('place.here'),
          grants: [grant, { ...grant, id: 'awBzF8LV1vweCK9C', grantedAgoSeconds: 40 * 86_400 }],
          remembered: false,
        },
        {
          clientId: 'c_3Jp2bXqR7sTf',
          name: 'Parents’ Portal',
          selfRegistered: false,
          registeredAgoSeconds: 200 * 86_400,
          grants: [
            {
              ...grant,
              redirectHost: 'portal.riverside.example',
              loopback: false,
              resources: [{ name: 'Riverside School API', identifier: 'https://api.riverside.example/v1' }],
            },
          ],
          remembered: true,
        },
      ],
    },
  },
  'account-apps-none': {
    page: 'account-apps',
    model: { frame: { ...frame, room: 'apps' }, action: '/account/apps', hidden, apps: [] },
  },
} as const satisfies Readonly<Record<string, AccountSample>>

type AccountSample = {
  [K in keyof Pages]: { readonly page: K; readonly model: Pages[K] }
}[keyof Pages & `account-${string}`]

const hostileScope = scope(hostileText, hostileText, true)
const hostileFrame = { ...frame, account: { name: hostileText, username: hostileText } }

/** The same with hostile text in every place that takes text. */
export const hostileAccountPages = {
  'hostile-account-apps': {
    page: 'account-apps',
    model: {
      frame: { ...hostileFrame, room: 'apps' },
      action: hostileText,
      hidden: { [hostileText]: hostileText },
      apps: [
        {
          clientId: hostileText,
          name: hostileText,
          selfRegistered: true,
          registeredAgoSeconds: 60,
          registeredFrom: says('place.network', { network: { host: hostileText } }),
          grants: [1, 2].map((id) => ({
            ...grant,
            id: `${id} ${hostileText}`,
            redirectHost: hostileText,
            identity: [hostileScope],
            areas: [{ group: hostileText, read: hostileScope, write: hostileScope }],
            others: [hostileText],
            resources: [{ name: hostileText, identifier: hostileText.slice(1) }],
          })),
          remembered: true,
        },
        {
          clientId: 'c_9Jp2bXqR7sTf',
          selfRegistered: true,
          registeredAgoSeconds: 60,
          grants: [],
          remembered: false,
        },
      ],
    },
  },
} as const satisfies Readonly<Record<string, AccountSample>>
