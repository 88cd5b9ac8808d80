/** Every language has every text, and no other. */
import t from 'tap'
import { catalogueFaults, sourcesWithTexts, useFaults } from '../../scripts/texts.ts'
import { readCatalogue, shippedLanguages } from '../../src/pages/i18n/i18n.ts'

const english = readCatalogue('en')

for (const language of shippedLanguages) {
  t.test(`${language} has every text, with the placeholders and plural forms it needs`, async (t) => {
    t.strictSame([...catalogueFaults(language, readCatalogue(language), english)], [])
  })
}

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
