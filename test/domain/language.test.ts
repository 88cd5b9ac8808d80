import t from 'tap'
import { chooseLanguage, isTag, parseUiLocales } from '../../src/domain/language.ts'

const available = ['en', 'de', 'fr', 'pt', 'ja', 'pt-pt', 'zh-hant'] as const

/** ui_locales, Accept-Language, and the selected language. */
const rows: [string | undefined, string | undefined, string][] = [
  [undefined, undefined, 'en'],
  [undefined, '', 'en'],
  [undefined, 'de', 'de'],
  [undefined, 'DE-ch', 'de'],
  [undefined, 'de-CH-1996', 'de'],
  [undefined, 'pt-PT', 'pt-pt'],
  [undefined, 'pt-BR', 'pt'],
  [undefined, 'zh-Hant-TW', 'zh-hant'],
  [undefined, 'zh-Hans', 'en'],
  [undefined, 'zh', 'en'],
  [undefined, 'de-x-private', 'de'],
  [undefined, 'sv, fr;q=0.8, de;q=0.9', 'de'],
  [undefined, 'fr;q=0.9,de;q=0.9', 'fr'],
  [undefined, 'fr; q=0.2 , de ; q=0.3', 'de'],
  [undefined, 'fr;Q=0.2,de', 'de'],
  [undefined, 'de;q=0', 'en'],
  [undefined, 'de;q=0.000, fr;q=0.001', 'fr'],
  [undefined, '*', 'en'],
  [undefined, 'sv, *;q=0.1', 'en'],
  [undefined, 'en;q=0, *', 'de'],
  [undefined, '*;q=0', 'en'],
  [undefined, '*;q=0, fr', 'fr'],
  [undefined, 'en-GB;q=0, *', 'de'],
  [undefined, 'de;q=2, fr', 'fr'],
  [undefined, 'de;q=0.1234', 'en'],
  [undefined, 'de;q=', 'en'],
  [undefined, 'de;level=1', 'en'],
  [undefined, ',,;;q=1,,ja', 'ja'],
  [undefined, 'de_DE', 'en'],
  [undefined, 'de-<b>', 'en'],
  [undefined, 'de;xq=1', 'en'],
  [undefined, 'en;q=0.1, *', 'en'],
  [undefined, '<script>', 'en'],
  ['de', undefined, 'de'],
  ['de', 'fr', 'de'],
  ['sv de-AT fr', 'ja', 'de'],
  ['fr-CA fr en', 'de', 'fr'],
  ['sv se', 'ja', 'ja'],
  ['  de', 'ja', 'de'],
  ['*', 'ja', 'ja'],
  ['"<> _ de', 'ja', 'de'],
  ['', 'ja', 'ja'],
]

for (const [uiLocales, acceptLanguage, chosen] of rows) {
  t.test(`ui_locales ${uiLocales} and Accept-Language ${acceptLanguage} select ${chosen}`, async (t) => {
    const requested = { uiLocales: parseUiLocales({ ui_locales: uiLocales }), acceptLanguage }
    t.equal(chooseLanguage(requested, available, 'en'), chosen)
  })
}

t.test('without a match the fallback is used', async (t) => {
  const requested = { uiLocales: ['sv'], acceptLanguage: 'da' }
  t.equal(chooseLanguage(requested, available, 'ja'), 'ja')
})

t.test('of ui_locales only valid tags are kept, up to a limit', async (t) => {
  t.strictSame(parseUiLocales({ ui_locales: 'de  fr-CA "x" toolongforatag' }), ['de', 'fr-CA'])
  t.equal(parseUiLocales({ ui_locales: 'x'.repeat(5000) }), undefined)
  t.equal(parseUiLocales({ ui_locales: ['de', 'fr'] }), undefined, 'a repeated parameter says nothing')
  t.equal(parseUiLocales({}), undefined)
  t.strictSame(parseUiLocales({ ui_locales: 'de '.repeat(21) }), new Array(20).fill('de'))
  t.strictSame(parseUiLocales({ ui_locales: `${' '.repeat(998)}de` }), ['de'])
  t.strictSame(parseUiLocales({ ui_locales: `${' '.repeat(999)}de` }), ['d'])
})

t.test('of a header of any length only the beginning is parsed', async (t) => {
  const long = (text: string) => text.repeat(Math.ceil(16_000 / text.length))
  for (const header of [
    long('a-'),
    long('de;'),
    long('x,'),
    long('-'),
    long(' '),
    long('q=0.'),
    long('a-b-c-d-'),
  ])
    t.equal(
      chooseLanguage({ uiLocales: undefined, acceptLanguage: header }, available, 'en'),
      'en',
      header.slice(0, 9),
    )
  for (const [before, chosen] of [
    [' '.repeat(998), 'de'],
    [' '.repeat(999), 'en'],
    ['sv,'.repeat(19), 'de'],
    ['sv,'.repeat(20), 'en'],
  ] as const) {
    const requested = { uiLocales: undefined, acceptLanguage: `${before}de` }
    t.equal(chooseLanguage(requested, available, 'en'), chosen, `${before.length}`)
  }
})

t.test('a language tag has 35 characters at most', async (t) => {
  const longest = new Array(4).fill('abcdefgh').join('-')
  t.ok(isTag(longest))
  for (const tag of ['abcdefgh-abcdefgh-abcdefgh-abcdefg-a', 'abcdefghi', '', 'de-', '-de', 'de_CH'])
    t.notOk(isTag(tag), tag)
})
