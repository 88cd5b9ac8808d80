import { msg } from '../../../src/pages/i18n/i18n.ts'
import type { Pages } from '../../../src/pages/pages.ts'
import { hostileText } from './hostile-text.ts'
import type { Sample } from './pages.ts'

type Access = Pick<Pages['device-confirm'], 'identity' | 'areas'>

const hidden = { csrf: 'nQ2Vd0' }

/** The pages for devices, RFC 8628 §3.3. */
export const devicePages = (access: Access) =>
  ({
    device: { page: 'device', model: { action: '/device', hidden } },
    'device-problem': {
      page: 'device',
      model: { action: '/device', hidden, userCode: 'WDJB-MJHX', problem: msg('device.wrong') },
    },
    'device-confirm': {
      page: 'device-confirm',
      model: {
        action: '/device/confirm',
        hidden: { ...hidden, user_code: 'WDJB-MJHT' },
        userCode: 'WDJB-MJHT',
        requestedAgoSeconds: 40,
        requestedFrom: msg('place.network', { network: { host: '203.0.113.0/24' } }),
        user: { name: 'Alice Example', username: 'alice' },
        switchUrl: '/device/confirm?user_code=WDJB-MJHT&switch=1',
        client: {
          name: 'Course Sync CLI',
          id: 'c_9Jp2bXqR7sTf',
          selfRegistered: true,
          registeredAgoSeconds: 86_400,
          links: [],
        },
        resources: [],
        ...access,
        changed: false,
        accessLastsSeconds: 7_776_000,
        accountUrl: '/account/apps',
      },
    },
    'device-done': {
      page: 'device-done',
      model: { clientName: 'Course Sync CLI', accountUrl: '/account/apps' },
    },
    'device-denied': { page: 'device-over', model: { denied: true, againUrl: '/device' } },
    'device-expired': { page: 'device-over', model: { denied: false, againUrl: '/device' } },
  }) as const satisfies Readonly<Record<string, Sample>>

/** The same with hostile text wherever text can be. */
export const hostileDevicePages = (access: Access, user: Pages['device-confirm']['user']) =>
  ({
    'hostile-device': {
      page: 'device',
      model: { action: hostileText, hidden: { [hostileText]: hostileText }, userCode: hostileText },
    },
    'hostile-device-confirm': {
      page: 'device-confirm',
      model: {
        action: hostileText,
        hidden: { [hostileText]: hostileText },
        userCode: hostileText,
        requestedAgoSeconds: 40,
        requestedFrom: msg('place.network', { network: { host: hostileText } }),
        user,
        switchUrl: `/${hostileText}`,
        client: {
          name: hostileText,
          id: hostileText,
          selfRegistered: true,
          registeredAgoSeconds: 60,
          links: [{ label: msg('consent.website'), url: 'javascript:alert(1)', host: hostileText }],
        },
        resources: [{ name: hostileText, identifier: hostileText }],
        ...access,
        changed: true,
        accountUrl: `/${hostileText}`,
      },
    },
    'hostile-device-done': {
      page: 'device-done',
      model: { clientName: hostileText, accountUrl: `/${hostileText}` },
    },
    'hostile-device-over': { page: 'device-over', model: { denied: false, againUrl: `/${hostileText}` } },
  }) as const satisfies Readonly<Record<string, Sample>>
