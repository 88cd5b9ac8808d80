import t from 'tap'
import { textClaims } from '../../src/domain/claims.ts'
import { changedClaims, claimFault } from '../../src/users/rules/editable-claims.ts'

t.test('every claim can be removed', async (t) => {
  for (const claim of textClaims) t.equal(claimFault(claim, ''), undefined, claim)
})

t.test('a name may contain the characters of real names, and none that deceive', async (t) => {
  for (const name of ['Ångström', "O'Brien-Smith", '山田 太郎', 'أليس', '<b>Al</b>', 'x'.repeat(200)])
    t.equal(claimFault('name', name), undefined, name)
  t.equal(claimFault('name', 'x'.repeat(201)), 'tooLong')
  for (const name of [
    'a\u0000',
    'a\nb',
    '\u202Ea',
    'a\u200Bb',
    '\u2066a',
    '\u3164',
    '\u2028',
    '\ud800',
    '\u034f',
  ])
    t.equal(claimFault('name', name), 'invisible', Buffer.from(name).toString('hex'))
})

t.test('URL claims must be web addresses', async (t) => {
  for (const claim of ['profile', 'picture', 'website'] as const) {
    for (const url of [
      'https://a.example',
      'http://a.example/b?c#d',
      'HTTPS://a.example?b',
      'https://a.example/c@d',
      `https://a.example/${'x'.repeat(2030)}`,
    ])
      t.equal(claimFault(claim, url), undefined, url)
    for (const url of [
      'javascript:alert(1)',
      'data:,x',
      'a.example',
      '//a.example',
      'https://',
      'https://u@a.example',
      'https://a b',
      'https://a.example:x',
      'xhttps://a.example',
    ])
      t.equal(claimFault(claim, url), 'url', url)
    t.equal(claimFault(claim, `https://a.example/${'x'.repeat(2031)}`), 'tooLong', 'over 2048')
  }
})

t.test('dates, time zones and languages have the format of OpenID Connect Core §5.1', async (t) => {
  for (const date of ['1990-04-30', '0000-02-29', '1990'])
    t.equal(claimFault('birthdate', date), undefined, date)
  for (const date of ['1990-13-01', '1990-00-10', '1990-01-00', '30.4.1990', '90', '1990-4-3', '19900430'])
    t.equal(claimFault('birthdate', date), 'birthdate', date)
  for (const date of ['x1990', '1990x', '11990-04-30', '1990-04-301', '1990-04'])
    t.equal(claimFault('birthdate', date), 'birthdate', date)
  t.equal(claimFault('zoneinfo', 'Europe/Berlin'), undefined)
  for (const zone of ['Berlin', 'Europe/Nowhere', 'CET+1', 'UTC', 'CET', '+01:00'])
    t.equal(claimFault('zoneinfo', zone), 'zoneinfo', zone)
  for (const locale of ['en', 'pt-BR', 'zh-Hant-TW']) t.equal(claimFault('locale', locale), undefined, locale)
  for (const locale of ['e', 'english please', 'en_US'])
    t.equal(claimFault('locale', locale), 'locale', locale)
})

t.test('a birthdate is a day that its month has in some year', async (t) => {
  const lastDays = ['31', '29', '31', '30', '31', '30', '31', '31', '30', '31', '30', '31']
  for (const [index, last] of lastDays.entries()) {
    const month = `1991-${String(index + 1).padStart(2, '0')}`
    for (const day of ['01', last]) t.equal(claimFault('birthdate', `${month}-${day}`), undefined, month)
    for (const day of ['00', String(Number(last) + 1)])
      t.equal(claimFault('birthdate', `${month}-${day}`), 'birthdate', `${month}-${day}`)
  }
})

t.test('the form of a claim is not demanded of another one', async (t) => {
  for (const claim of ['name', 'given_name', 'family_name', 'middle_name', 'nickname', 'gender'] as const)
    t.equal(claimFault(claim, 'neither a date_nor a zone'), undefined, claim)
})

t.test('only different values are a change', async (t) => {
  const before = { name: 'Al', nickname: 'A', gender: 'x' }
  t.strictSame(changedClaims(before, { name: 'Al', nickname: '', website: '', gender: 'y' }), {
    nickname: '',
    gender: 'y',
  })
})
