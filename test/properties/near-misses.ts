import { fc } from '../helpers/generated.ts'

const hosts = [
  '127.0.0.1',
  '[::1]',
  'localhost',
  '127.1',
  '127.0.0.2',
  '127.0.0.01',
  '127.0.0.1.',
  '0x7f.1',
  '0177.0.0.1',
  '2130706433',
  '127.0.0.1%2e',
  '127.0.0.1.evil.example',
  'evil.example',
  '[::]',
  '[::01]',
  '[0:0:0:0:0:0:0:1]',
  '[::ffff:127.0.0.1]',
  '[::1%25lo]',
  '[::1',
  '::1',
  'LOCALHOST',
  'localhost.',
  '\uff11\uff12\uff17.0.0.1',
  '',
]
const schemes = ['http', 'https', 'HTTP', 'Http', 'ftp', 'javascript', ' http', 'http\t', '']
const userinfos = ['', '', '', '', '@', 'user@', 'user:password@', '127.0.0.1@', '%40@']
const ports = [
  '',
  ':',
  ':0',
  ':1',
  ':80',
  ':080',
  ':8080',
  ':65535',
  ':65536',
  ':99999999999',
  ':-1',
  ':1e3',
  ':x',
  ':80:80',
  ':\uff18',
]
const pieces = [
  '/',
  '/cb',
  '/callback',
  '/CB',
  '/.',
  '/..',
  '/%63b',
  '/%2f',
  '/%',
  '/%zz',
  '/a;b=c',
  '/a b',
  '/\\',
  '/@',
  '/:80',
  '//',
  '/\u00e9',
  '/\0',
  '/\n',
  '/*',
]
const queries = [
  '',
  '',
  '',
  '?',
  '?a=b',
  '?a=b&a=c',
  '?a=%20',
  '?%',
  '?a=\u00e9',
  '??',
  '?a=/',
  '?a b',
  '?a=#',
]
const fragments = ['', '', '', '', '', '#', '#x', '#/callback']

/** Parts of a redirect URI, mostly valid. */
const mostly = <T>(right: T, list: readonly T[]) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(right) }, { weight: 2, arbitrary: fc.constantFrom(...list) })
const parts = fc.record({
  scheme: mostly('http', schemes),
  slashes: mostly('://', [':/', ':', ':///', ':\\\\', '//', '']),
  userinfo: mostly('', userinfos),
  host: mostly('127.0.0.1', hosts),
  port: mostly(':8080', ports),
  path: mostly('/cb', pieces),
  more: mostly('', pieces),
  query: mostly('', queries),
  fragment: mostly('', fragments),
})
type Parts = typeof parts extends fc.Arbitrary<infer T> ? T : never

/** Valid redirect URIs, near misses, and text that only an attacker would send. */
export const redirectUri: fc.Arbitrary<string> = fc.oneof(
  { weight: 8, arbitrary: parts.map(join) },
  { weight: 2, arbitrary: fc.tuple(parts.map(join), damage()).map(([uri, spoil]) => spoil(uri)) },
  { weight: 1, arbitrary: fc.webUrl({ withQueryParameters: true, withFragments: true }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
)

/** Two redirect URIs that share all but one or two parts: independent ones would hardly ever match. */
export const redirectPair: fc.Arbitrary<readonly [string, string]> = fc
  .tuple(parts, parts, fc.array(fc.constantFrom(...partNames()), { maxLength: 2 }), fc.boolean())
  .map(([one, other, replaced, portToo]) => {
    const names: readonly (keyof Parts)[] = portToo ? [...replaced, 'port'] : replaced
    const mixed = { ...one, ...Object.fromEntries(names.map((name) => [name, other[name]])) }
    return [join(one), join(mixed)] as const
  })

function partNames(): readonly [keyof Parts, ...(keyof Parts)[]] {
  return ['host', 'scheme', 'slashes', 'userinfo', 'path', 'more', 'query', 'fragment']
}

function join({ scheme, slashes, userinfo, host, port, path, more, query, fragment }: Parts): string {
  return `${scheme}${slashes}${userinfo}${host}${port}${path}${more}${query}${fragment}`
}

/** One character more, less or different, at any position. */
function damage(): fc.Arbitrary<(text: string) => string> {
  const character = fc.constantFrom(
    '\0',
    '\t',
    '\r\n',
    ' ',
    '\\',
    '@',
    '#',
    '?',
    '%',
    '%00',
    '\u00e9',
    '\u202e',
    '\u3002',
    '\ud800',
    '.',
    '0',
  )
  return fc.tuple(fc.nat(40), fc.nat(1), character).map(
    ([at, removed, inserted]) =>
      (text) =>
        text.slice(0, at) + inserted + text.slice(at + removed),
  )
}
