/** Every language has every text, and no other, and each was translated from the English text of today. */
import t from 'tap'
import { outdatedTexts, readTranslated, settle, translations } from '../../../scripts/texts/translated.ts'
import { catalogueFaults, sourcesWithTexts, useFaults } from '../../../scripts/texts.ts'
import { readCatalogue, shippedLanguages } from '../../../src/pages/i18n/i18n.ts'

const english = readCatalogue('en')

for (const language of shippedLanguages) {
  t.test(`${language} has every text, with the placeholders and plural forms it needs`, async (t) => {
    t.strictSame([...catalogueFaults(language, readCatalogue(language), english)], [])
  })
}

t.test('every translation was made from what English says now', async (t) => {
  t.strictSame([...outdatedTexts(english, readTranslated())], [])
})

t.test('a changed English text is out of date in every language until each is settled', async (t) => {
  const changed = { ...english, 'login.title': 'Enter' }
  const advice = 'Make each translation say what English says, then: npm run texts -- --settle login.title'
  const before = settle(english, {}, Object.keys(english))
  t.strictSame(
    [...outdatedTexts(changed, before)],
    [`login.title: out of date in de, fr, es, pt, ja, ar. ${advice}`],
  )
  const inSome = settle(changed, before, ['login.title'], ['de', 'ja'])
  t.strictSame([...outdatedTexts(changed, inSome)], [`login.title: out of date in fr, es, pt, ar. ${advice}`])
  const inAll = settle(changed, inSome, ['login.title'])
  t.strictSame([...outdatedTexts(changed, inAll)], [])
  t.strictSame({ ...inAll, 'login.title': before['login.title'] }, before, 'no other text was settled')
  t.type(inAll['login.title'], 'string')
})

t.test('a plural form of English that changed counts, too', async (t) => {
  const one = { 'a.count': { one: '{count} thing', other: '{count} things' } }
  const record = settle(one, {}, ['a.count'])
  t.strictSame([...outdatedTexts(one, record)], [])
  const changed = { 'a.count': { one: 'one thing', other: '{count} things' } }
  t.equal([...outdatedTexts(changed, record)].length, 1)
})

t.test('new texts have to be settled, and texts that are gone leave the record with it', async (t) => {
  const record = settle({ 'a.old': 'Old', 'a.stays': 'Stays' }, {}, ['a.old', 'a.stays'])
  const now = { 'a.new': 'New', 'a.stays': 'Stays' }
  t.match(
    [...outdatedTexts(now, record)],
    [
      /^a\.new: out of date in de, fr, es, pt, ja, ar\. .* --settle a\.new$/,
      /^a\.old: recorded as translated, and not in English\. .* --settle a\.old$/,
    ],
  )
  const german = settle(now, record, ['a.new'], ['de'])
  t.strictSame(Object.keys(Object(german['a.new'])), ['de'])
  const settled = settle(now, german, ['a.new', 'a.old'])
  t.strictSame([...outdatedTexts(now, settled)], [])
  t.strictSame(Object.keys(settled), ['a.new', 'a.stays'], 'in the order of English')
  t.notOk(translations.includes('en'))
})

t.test('every text is used, and every text that is used exists', async (t) => {
  t.strictSame([...useFaults(english, sourcesWithTexts())], [])
})

t.test('the problems of a language are reported, one line each', async (t) => {
  const own = {
    'a.fine': 'Gut {name}',
    'a.lacks': 'Ohne',
    'a.more': 'Mit {name}',
    'a.bold': '<b>fett',
    'a.blank': ' ',
    'a.spaced': 'hinten ',
    'a.forms': { one: '{count} Ding', few: '{count} Dinge' },
    'a.count': { one: 'ein Ding', other: 'Dinge' },
    'a.surplus': 'zu viel',
  }
  const original = {
    'a.fine': 'Fine {name}',
    'a.lacks': 'With {name}',
    'a.more': 'Without',
    'a.bold': '<b>bold</b>',
    'a.blank': 'Words',
    'a.spaced': 'behind',
    'a.forms': { one: '{count} thing', other: '{count} things' },
    'a.count': { one: '{count} thing', other: '{count} things' },
    'a.missing': 'Not there',
  }
  t.strictSame(
    [...catalogueFaults('de', own, original)],
    [
      'de: a.lacks: lacks {name}',
      'de: a.more: has {name}, English has not',
      'de: a.bold: lacks </b>',
      'de: a.blank: is empty',
      'de: a.spaced: begins or ends with a space',
      'de: a.forms: lacks the form other',
      'de: a.forms: few is no plural form of this language',
      'de: a.count (other): lacks {count}',
      'de: a.missing is missing',
      'de: a.surplus is not in English',
    ],
  )
})

t.test('unused texts and missing texts are reported', async (t) => {
  const texts = { 'a.said': '', 'a.shown': '', 'done.saved': '', 'a.namedFrom': '', 'a.idle': '' }
  const sources = [
    "says('a.said')",
    "it.t('a.shown') t('a.named' + from)",
    't(`done.\u0024{word}`)',
    "says('a.none')",
  ]
  t.strictSame(
    [...useFaults(texts, sources)],
    ['a.idle is used nowhere', 'a.named is used, and is no text', 'a.none is used, and is no text'],
  )
})
