import { hash } from 'node:crypto'
import type { Dice } from './dice.ts'
import type { World } from './world.ts'

const verifiers = ['v'.repeat(43), 'w'.repeat(128)] as const

/** Which verifier a challenge came from. */
export const verifierOf: ReadonlyMap<string, string> = new Map(
  verifiers.map((verifier) => [hash('sha256', verifier, 'base64url'), verifier]),
)

/** A marker in every text that must never be quoted in an error or as markup. */
export const marker = 'zqx'

/** Texts that a page must show as text. */
export const markup = [
  `<script>${marker}</script>`,
  `"><img src=${marker} onerror=${marker}>`,
  `' onfocus='${marker}`,
  `</title><svg onload=${marker}>`,
] as const

/** Texts that have broken other servers. */
export const nasty: readonly [string, ...string[]] = [
  '',
  ' ',
  '\0',
  `${marker}\0${marker}`,
  '%00',
  '%',
  '%zz',
  '\r\n',
  `${marker}\r\nX-${marker}: 1\r\n\r\n<p>`,
  `\n${marker}: 1`,
  '"',
  `${marker}"`,
  `'; drop table grants; -- ${marker}`,
  '\\',
  ...markup,
  `<%= ${marker} %>`,
  `\${${marker}}{{${marker}}}`,
  '__proto__',
  'constructor',
  'hasOwnProperty',
  '../../etc/passwd',
  `javascript:${marker}`,
  `data:text/html,${marker}`,
  'null',
  'undefined',
  'true',
  '{}',
  '[]',
  '{"userinfo":{"__proto__":null}}',
  '{"id_token":{"sub":{"value":"x"}}}',
  `{"userinfo":${'{"a":'.repeat(200)}1${'}'.repeat(200)}}`,
  '\u202e\u200b',
  '\u00e9\u4e2d\u{1f600}',
  '\u0130\u017f',
  '\ufffd',
  '\ud800',
  '\u{1f600}'.repeat(50),
  'a'.repeat(300),
  'a'.repeat(9000),
  '-1',
  '1e309',
  '0',
  '99999999999999999999',
  'NaN',
]

/** Near misses of a loopback redirect, and targets that must never get a code. */
export const redirects: readonly [string, ...string[]] = [
  'http://127.0.0.1:51004/callback/',
  'http://127.0.0.1:51004/callback?x=1',
  'http://127.0.0.1:51004/callback#',
  'http://127.0.0.1:51004/%63allback',
  'http://127.0.0.1:51004/Callback',
  'http://127.0.0.1:51004/a/../callback',
  'http://127.0.0.1:0/callback',
  'http://127.0.0.1:051004/callback',
  'http://127.0.0.1:99999/callback',
  'http://127.0.0.1:/callback',
  'http://127.0.0.1./callback',
  'http://127.1/callback',
  'http://2130706433/callback',
  'http://localhost:51004/callback',
  'http://[::1]:51004/callback',
  'http://[::ffff:127.0.0.1]/callback',
  'http://user@127.0.0.1/callback',
  'http://127.0.0.1:51004@evil.example/callback',
  'http://127.0.0.1.evil.example/callback',
  'http://127.0.0.1\\@evil.example/callback',
  'https://127.0.0.1/callback',
  'HTTP://127.0.0.1/callback',
  ' http://127.0.0.1/callback',
  '//evil.example/callback',
  '/callback',
  'https://evil.example/callback',
  'https://client.example/callback?',
  'https://client.example/callback/..',
  'https://client.example.evil.example/callback',
  'https://client.example:443/callback',
  `javascript:${marker}`,
]

/** A value that is valid somewhere: the right kind in the wrong place, or of another user. */
export function liveValue(world: World, dice: Dice): string {
  const client = dice.draw(world.clients)
  const tokens = dice.draw(world.tokens)
  const page = dice.draw(world.pages)
  const browser = dice.draw(world.browsers)
  const values = [
    client?.id,
    client?.secret,
    client?.registrationToken,
    client?.redirectUris[0],
    dice.draw(world.codes)?.code,
    tokens?.access,
    tokens?.refresh,
    tokens?.idToken,
    dice.draw(world.devices)?.deviceCode,
    dice.draw(world.devices)?.userCode,
    dice.draw([...world.pushed.keys()]),
    dice.draw(page?.fields ?? [])?.[1],
    dice.draw([...(browser?.cookies.values() ?? [])]),
    ...world.foreign,
    world.issuer,
    'https://jwt.example/v1',
    'openid courses:read',
    'S256',
    'none',
    '0',
  ]
  return dice.draw(values) ?? ''
}

/** A near miss of the text. */
export function nearly(text: string, dice: Dice): string {
  const at = dice.below(text.length + 1)
  switch (dice.below(9)) {
    case 0:
      return text.slice(0, at)
    case 1:
      return text.slice(at)
    case 2:
      return text + dice.pick(['=', 'A', '.', ' ', '\0', '\n', '/', '%20', '\u00e9'])
    case 3:
      return dice.pick([' ', '\t', '\ufeff', '+']) + text
    case 4:
      return text.toUpperCase()
    case 5:
      return text + text
    case 6:
      return text.slice(0, at) + dice.pick(nasty) + text.slice(at)
    case 7:
      return [...text].reverse().join('')
    default:
      return `${text.slice(0, at)}${String.fromCharCode(33 + dice.below(94))}${text.slice(at + 1)}`
  }
}
