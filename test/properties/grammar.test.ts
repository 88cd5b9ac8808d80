import { createHash } from 'node:crypto'
import t from 'tap'
import { OAuthError, type OAuthErrorCode } from '../../src/domain/errors.ts'
import { requireCodeChallenge, verifyCodeVerifier } from '../../src/domain/pkce.ts'
import { formatScope, narrowScope, parseScope } from '../../src/domain/scope.ts'
import { fc } from '../helpers/generated.ts'

const anyText = fc.string({ unit: 'binary', maxLength: 40 })

/** Whether the call is rejected with this code; any other exception is a failure. */
function isRejected(call: () => unknown, code: OAuthErrorCode): boolean {
  try {
    call()
    return false
  } catch (error) {
    if (error instanceof OAuthError && error.code === code) return true
    throw error
  }
}

/** RFC 6749 appendix A: NQCHAR. */
const isNqchar = (code: number) =>
  code === 0x21 || (code >= 0x23 && code <= 0x5b) || (code >= 0x5d && code <= 0x7e)

t.test('a scope is parsed by the grammar of RFC 6749 §3.3: each token once, in order', async (t) => {
  const nearly = fc.string({
    unit: fc.constantFrom(...' abAB:_!#[]~', '"', '\\', '\t', '\u007f', '\u00e9'),
    maxLength: 30,
  })
  let [read, rejected] = [0, 0]
  fc.assert(
    fc.property(fc.oneof(nearly, nearly, anyText), (text) => {
      const characters = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at))
      if (!characters.every((code) => code === 0x20 || isNqchar(code))) {
        rejected += 1
        return isRejected(() => parseScope(text), 'invalid_scope')
      }
      read += 1
      const tokens: string[] = []
      let token = ''
      for (const character of `${text} `) {
        if (character !== ' ') token += character
        else {
          if (token !== '' && !tokens.includes(token)) tokens.push(token)
          token = ''
        }
      }
      const scope = parseScope(text)
      return (
        scope.join('\n') === tokens.join('\n') &&
        parseScope(formatScope(scope)).join('\n') === tokens.join('\n')
      )
    }),
    { numRuns: 10_000 },
  )
  t.ok(read > 500 && rejected > 500, `${read} read, ${rejected} refused`)
})

t.test('a narrowed scope is the intersection of both', async (t) => {
  const scope = fc.uniqueArray(fc.constantFrom<string>('openid', 'email', 'a:read', 'a:write', 'b:read'))
  fc.assert(
    fc.property(scope, scope, (asked, allowed) => {
      const narrowed = narrowScope(asked, allowed)
      const isIn = (name: string) => asked.includes(name) && allowed.includes(name)
      return narrowed.every(isIn) && asked.filter(isIn).every((name) => narrowed.includes(name))
    }),
  )
  t.pass()
})

const unreserved = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~'
const base64url = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** BASE64URL-ENCODE of RFC 7636 appendix A, by hand: six bits at a time, no padding. */
function encode(bytes: Uint8Array): string {
  let [bits, count, text] = [0, 0, '']
  for (const byte of bytes) {
    bits = (bits << 8) | byte
    count += 8
    while (count >= 6) {
      count -= 6
      text += base64url.charAt((bits >> count) & 63)
    }
  }
  return count === 0 ? text : text + base64url.charAt((bits << (6 - count)) & 63)
}

const challengeOf = (verifier: string) => encode(createHash('sha256').update(verifier, 'latin1').digest())

t.test('a challenge is accepted exactly when it encodes 32 bytes, with the method S256', async (t) => {
  const good = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(encode)
  const nearly = fc.oneof(
    good,
    fc.uint8Array({ minLength: 30, maxLength: 34 }).map(encode),
    fc
      .tuple(good, fc.nat(42), fc.constantFrom(...base64url, '+', '/', '=', ' ', '.', '\u00e9'))
      .map(([text, at, character]) => text.slice(0, at) + character + text.slice(at + 1)),
    good.map((text) => `${text}=`),
    anyText,
  )
  const method = fc.oneof(
    { weight: 4, arbitrary: fc.constant('S256') },
    fc.constantFrom('plain', 's256', 'S512', 'S256 ', ''),
  )
  let accepted = 0
  fc.assert(
    fc.property(nearly, method, fc.boolean(), (codeChallenge, codeChallengeMethod, optional) => {
      // 43 characters of six bits are 258: the last two must be zero.
      const last = base64url.indexOf(codeChallenge.charAt(42))
      const isChallenge =
        codeChallenge.length === 43 &&
        [...codeChallenge].every((each) => base64url.includes(each)) &&
        last % 4 === 0
      const request = { codeChallenge, codeChallengeMethod }
      if (!isChallenge || codeChallengeMethod !== 'S256') {
        return isRejected(() => requireCodeChallenge(request, { optional }), 'invalid_request')
      }
      accepted += 1
      return requireCodeChallenge(request, { optional }) === codeChallenge
    }),
    { numRuns: 5000 },
  )
  t.ok(accepted > 500, `${accepted} were accepted`)
})

t.test(
  'a verifier matches its own challenge if it has the characters of RFC 7636 §4.1, and no other',
  async (t) => {
    const verifier = fc
      .integer({ min: 41, max: 131 })
      .chain((length) =>
        fc.string({ unit: fc.constantFrom(...unreserved), minLength: length, maxLength: length }),
      )
    const nearly = fc
      .tuple(verifier, fc.nat(130), fc.constantFrom('+', '/', '=', ' ', '%', '\n', '\u00e9', 'a'))
      .map(([text, at, character]) => text.slice(0, at) + character + text.slice(at + 1))
    let proven = 0
    fc.assert(
      fc.property(
        fc.oneof(verifier, verifier, nearly, anyText),
        verifier,
        fc.boolean(),
        (sent, other, own) => {
          const isVerifier =
            sent.length >= 43 && sent.length <= 128 && [...sent].every((each) => unreserved.includes(each))
          const challenge = challengeOf(own ? sent : other)
          if (!isVerifier || (!own && sent !== other)) {
            return isRejected(() => verifyCodeVerifier(sent, challenge), 'invalid_grant')
          }
          verifyCodeVerifier(sent, challenge)
          proven += 1
          return isRejected(() => verifyCodeVerifier(sent, undefined), 'invalid_request')
        },
      ),
      { numRuns: 5000 },
    )
    t.ok(proven > 500, `${proven} were proven`)
  },
)
