import t from 'tap'
import { addressesIn, isLoopbackAddress, isPublicAddress } from '../../src/outbound/public-address.ts'

const isPublic = [
  '1.1.1.1',
  '8.8.8.8',
  '93.184.215.14',
  '172.15.0.1',
  '172.32.0.1',
  '192.0.1.1',
  '223.255.255.1',
]
  .concat(['100.63.255.255', '100.128.0.0', '2606:4700:4700::1111', '2a00:1450::1', '3ffe::1'])
  .concat(['::ffff:8.8.8.8', '::ffff:808:808'])

/** One address at least of each range of the IANA special-purpose registries, and the edges of those that are used. */
const isSpecial = [
  ...[
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '10.255.255.255',
    '100.64.0.1',
    '100.127.255.255',
    '127.0.0.1',
    '127.255.0.1',
  ],
  ...[
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.8',
    '192.0.0.170',
    '192.0.2.1',
    '192.31.196.1',
  ],
  ...[
    '192.52.193.1',
    '192.88.99.1',
    '192.168.0.1',
    '192.168.255.255',
    '192.175.48.1',
    '198.18.0.1',
    '198.19.255.255',
  ],
  ...['198.51.100.1', '203.0.113.1', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
  ...[
    '::',
    '::1',
    '::7f00:1',
    '::127.0.0.1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:10.0.0.1',
    '::ffff:a9fe:a9fe',
  ],
  ...[
    '::ffff:0:127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b:1::1',
    '100::1',
    '100:0:0:1::1',
    '2001::1',
    '2001:1::1',
  ],
  ...['2001:2::1', '2001:3::1', '2001:4:112::1', '2001:10::1', '2001:20::1', '2001:30::1', '2001:db8::1'],
  ...[
    '2002:7f00:1::1',
    '2620:4f:8000::1',
    '3fff::1',
    '4000::1',
    '5f00::1',
    'fc00::1',
    'fd12:3456::1',
    'fe80::1',
  ],
  ...['fe80::1%eth0', 'fec0::1', 'ff02::1', '2606:4700:4700::1111%eth0'],
]

/** Ways to write 127.0.0.1 that a socket never has. */
const notAddresses = [
  '',
  '127.1',
  '0x7f.1',
  '2130706433',
  '0177.0.0.1',
  '1.1.1.1.',
  ' 1.1.1.1',
  'localhost',
  '[::1]',
]

t.test('only addresses of the internet are public', async (t) => {
  for (const address of isPublic) t.ok(isPublicAddress(address), address)
  for (const address of [...isSpecial, ...notAddresses]) t.notOk(isPublicAddress(address), address)
})

t.test('a range has its addresses, also in their IPv6 form, and no others', async (t) => {
  const isOwn = addressesIn(['10.2.0.0/16', '10.3.0.7', 'fd00:1::/32', '::1'])
  for (const address of ['10.2.255.1', '10.3.0.7', '::ffff:10.2.0.1', 'fd00:1::9', '::1'])
    t.ok(isOwn(address), address)
  for (const address of ['10.4.0.1', '10.3.0.8', 'fd00:2::1', '127.0.0.1', '', 'x', '10.2'])
    t.notOk(isOwn(address), address)
  t.notOk(addressesIn([])('127.0.0.1'))
})

t.test('loopback is 127.0.0.0/8 and ::1', async (t) => {
  for (const address of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'])
    t.ok(isLoopbackAddress(address), address)
  for (const address of ['128.0.0.1', '::2', '0.0.0.0', 'localhost'])
    t.notOk(isLoopbackAddress(address), address)
})
