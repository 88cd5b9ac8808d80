import t from 'tap'
import { parseUserCode } from '../../src/specs/rfc8628-device-grant/rules/codes.ts'
import { hashRecoveryCode } from '../../src/users/rules/second-factor.ts'
import { readTypedCode, westernDigits } from '../../src/users/rules/typed-code.ts'
import { isSameName } from '../../src/users/rules/user.ts'

/** Every digit of Unicode. */
const digits = Array.from({ length: 0x11_0000 }, (_, point) => point)
  .filter((point) => point < 0xd800 || point > 0xdfff)
  .map((point) => String.fromCodePoint(point))
  .filter((character) => /\p{Nd}/u.test(character))

t.test('the digits of every script are read as those of ASCII', async (t) => {
  t.ok(digits.length >= 680)
  const values = digits.map((digit) => westernDigits(digit.normalize('NFKC')))
  t.strictSame(
    values,
    digits.map((_, index) => String(index % 10)),
    'ten of each script, in order',
  )
  t.equal(westernDigits('Año ٢٠٢٦ 🙂 x'), 'Año 2026 🙂 x')
})

t.test('a code is read without what separates its characters', async (t) => {
  for (const typed of [
    '123456',
    '123 456',
    '123\u00a0456',
    '123-456',
    '123–456',
    '123\u2212456',
    '123ー456',
    '123.456',
    ' 123_456\n',
    '１２３４５６',
    '１２３－４５６',
    '١٢٣٤٥٦',
    '۱۲۳۴۵۶',
    '१२३४५६',
    '\u2067١٢٣\u200f ٤٥٦\u2069',
    '𝟏𝟐𝟑𝟜𝟝𝟞',
  ])
    t.equal(readTypedCode(typed), '123456', typed)
  for (const other of ['', '12345', '1234567', '１２３', '½23456', 'x'.repeat(101), '1 '.repeat(60)])
    t.not(readTypedCode(other), '123456', other)
  t.equal(readTypedCode('x'.repeat(101)), '')
})

t.test('device codes, recovery codes and user names are read alike', async (t) => {
  for (const typed of [
    'wdjb-mjht',
    'ＷＤＪＢ－ＭＪＨＴ',
    'WDJB\u2212MJHT',
    'wdjb ー mjht',
    '\u200eWDJB‑MJHT',
  ])
    t.equal(parseUserCode(typed), 'WDJBMJHT', typed)
  const stored = hashRecoveryCode('7k2m-9xqd-0hjp-c4te')
  for (const typed of [
    '７Ｋ２Ｍー９ＸＱＤー０ＨＪＰーＣ４ＴＥ',
    '٧k٢m–٩xqd–٠hjp–c٤te',
    '7K2M 9XQD OHJP C4TE',
  ])
    t.equal(hashRecoveryCode(typed), stored, typed)
  t.ok(isSameName(' Student٤٢ ', 'student42'))
  t.ok(isSameName('student42', 'student٤٢'), 'a name that has them')
  t.notOk(isSameName('student43', 'student42'))
  t.notOk(isSameName('student-42', 'student42'), 'a dash is part of a name')
  t.notOk(isSameName('', 'student42'))
})
