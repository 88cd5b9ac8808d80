import t from 'tap'
import {
  deviceCodePrefix,
  formatUserCode,
  grantType,
  mintUserCode,
  parseUserCode,
  userCodeOf,
  wrongCodeBuckets,
} from '../../src/specs/rfc8628-device-grant/rules/codes.ts'

const deviceCode = `lyc_device_WDJBMJHT${'x'.repeat(43)}`

t.test('a user code is read as users type it, and is what a device code begins with', async (t) => {
  for (const typed of [
    'WDJB-MJHT',
    'wdjbmjht',
    ' wdjb mjht ',
    'WDJB–MJHT',
    'ｗｄｊｂ－ｍｊｈｔ',
    'w.d.j.b_mjht',
    `WDJBMJHT${' '.repeat(32)}`,
  ])
    t.equal(parseUserCode(typed), 'WDJBMJHT', typed)
  for (const typed of [
    '',
    'WDJB-MJH',
    'WDJB-MJHTT',
    'ADJB-MJHT',
    'WDJB-MJH1',
    `WDJBMJHT${' '.repeat(93)}`,
    'İDJBMJHT',
  ])
    t.equal(parseUserCode(typed), undefined, typed)
  t.equal(formatUserCode('WDJBMJHT'), 'WDJB-MJHT')
  t.equal(mintUserCode(Buffer.alloc(32)), 'BBBBBBBB')
  t.equal(mintUserCode(Buffer.alloc(32, 0xff)).length, 8)
  t.equal(mintUserCode(Buffer.from([0, 1, 2, 3])), 'PDHLBBBB')
  t.equal(userCodeOf(deviceCode), 'WDJBMJHT')
  for (const code of [
    '',
    deviceCode.slice(1),
    `x${deviceCode}`,
    `${deviceCode}x`,
    `${deviceCode.slice(0, -1)}=`,
  ])
    t.equal(userCodeOf(code), undefined, code)
})

t.test('a wrong code counts against its browser and against its network', async (t) => {
  const rule = 'rfc8628-5.1-user-code-limits'
  t.strictSame(wrongCodeBuckets('b', '192.0.2.0/24', { wrongCodesPerPrefix: 20 }), [
    {
      key: 'device code b',
      limit: 5,
      error: [rule, 'too many wrong device codes in this browser; try again later'],
    },
    {
      key: 'device code 192.0.2.0/24',
      limit: 20,
      error: [
        rule,
        'too many wrong device codes from this network (deviceGrant.wrongCodesPerPrefix); try again later',
      ],
    },
  ])
  t.equal(grantType, 'urn:ietf:params:oauth:grant-type:device_code')
  t.equal(deviceCodePrefix, 'lyc_device_')
})
