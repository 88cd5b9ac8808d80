import t from 'tap'
import type { Text, Values } from '../../../src/domain/text.ts'
import { escapeForPage } from '../../../src/pages/i18n/html.ts'
import type { Catalogue } from '../../../src/pages/i18n/i18n.ts'
import { createI18n } from '../../../src/pages/i18n/i18n.ts'

const texts: Catalogue = {
  'a.plain': 'Fish & chips < "1"',
  'a.name': 'Hello {name}!',
  'a.code': '<b>{name}</b> as {id}',
  'a.link': 'See <account>your account</account>.',
  'a.count': { one: '{count} thing', other: '{count} things' },
  'a.list': 'For {items}.',
  'a.when': 'It was {when}.',
  'a.nested': 'Really: {what}',
  'a.service': 'At {service}',
}
const said = createI18n({ service: 'A & <B>' }, { en: texts, ar: texts, de: texts, ja: texts })
const say = (key: string, values: Values = {}, language = 'en') =>
  said.in(language).t(values === undefined ? { key } : { key, with: values })

t.test('a text is escaped for a document', async (t) => {
  t.equal(say('a.plain').html, 'Fish &amp; chips &lt; &quot;1&quot;')
  t.equal(`${say('a.plain')}`, 'Fish & chips < "1"')
})

t.test('a template renders its words as markup and escapes everything else', async (t) => {
  t.equal(escapeForPage(say('a.name', { name: 'Bo' })), 'Hello <bdi>Bo</bdi>!')
  t.equal(escapeForPage('<bdi>"\'&'), '&lt;bdi&gt;&quot;&#39;&amp;')
  t.equal(escapeForPage({ html: '<script>', text: '' }), '[object Object]', 'what only looks like words')
  t.equal(escapeForPage(undefined), 'undefined')
})

t.test('untrusted text is escaped, isolated and cut everywhere', async (t) => {
  const name = `"><script>\u202Eevil${'x'.repeat(200)}`
  for (const words of [say('a.name', { name }), say('a.code', { name, id: { code: 'c' } })]) {
    t.notMatch(words.html, '<script')
    t.match(words.html, /<bdi>&quot;&gt;&lt;script&gt;.*…<\/bdi>/)
  }
  const items = { list: [name, { host: name }, { code: '<x>' }] }
  const { html } = say('a.list', { items })
  t.match(html, /^For <bdi>[^<]*<\/bdi>, <bdi class="host">[^<]*<\/bdi> and <code>&lt;x&gt;<\/code>\.$/)
  t.equal(say('a.service').html, 'At <bdi>A &amp; &lt;B&gt;</bdi>')
})

t.test('a name in plain text is isolated from the direction of its surroundings too', async (t) => {
  t.equal(say('a.name', { name: 'Bo' }).text, 'Hello Bo!')
  t.equal(say('a.name', { name: 'أمل' }).text, 'Hello \u2068أمل\u2069!')
  t.equal(say('a.name', { name: 'Bo' }, 'ar').text, 'Hello \u2068Bo\u2069!')
})

t.test('a link has a URL or is not rendered', async (t) => {
  const link = (to: string) => say('a.link', { account: { link: to } }).html
  t.equal(link('/account?a="b"'), 'See <a href="/account?a=&quot;b&quot;">your account</a>.')
  t.equal(link('https://a.example/'), 'See <a href="https://a.example/">your account</a>.')
  for (const to of ['javascript:alert(1)', '//a.example', 'data:text/html,x', ' https://a.example'])
    t.equal(link(to), 'See your account.', to)
})

t.test('a number selects the plural form, and is written as in the language', async (t) => {
  t.equal(say('a.count', { count: 1 }).text, '1 thing')
  t.equal(say('a.count', { count: 12_345 }).text, '12,345 things')
  t.equal(say('a.count', { count: 12_345 }, 'de').text, '12.345 things')
  t.equal(say('a.count', { count: 3 }, 'ar').text, '3 things', 'a form that is not there is the last one')
})

/** The text for `when`, by language. */
const times: [Values['when'], Readonly<Record<string, string>>][] = [
  [{ ago: 4 }, { en: '4 seconds ago', de: 'vor 4 Sekunden', ja: '4 秒前', ar: 'قبل 4 ثوانِ' }],
  [{ ago: 86_400 * 3.9 }, { en: '3 days ago', de: 'vor 3 Tagen' }],
  [{ in: 61 }, { en: 'in 2 minutes', de: 'in 2 Minuten', ja: '2 分後', ar: 'بعد دقيقتين' }],
  [{ duration: 7_776_000 }, { en: '90 days', de: '90 Tage', ja: '90 日', ar: '90 يومًا' }],
  [{ duration: 7199 }, { en: '1 hour', de: '1 Stunde' }],
  [{ date: 1_700_000_000 }, { en: '14 November 2023', de: '14. November 2023', ja: '2023年11月14日' }],
  [{ moment: 1_700_000_000 }, { en: '14 Nov 2023, 22:13 UTC', de: '14.11.2023, 22:13 UTC' }],
]

for (const [when, expected] of times) {
  for (const [language, words] of Object.entries(expected)) {
    t.test(`${JSON.stringify(when)} is ${words} in ${language}`, async (t) => {
      t.equal(say('a.when', { when: when ?? '' }, language).text, `It was ${words}.`)
      t.equal(said.in(language).show(when ?? '').text, words)
    })
  }
}

t.test('a text can contain a text of the same language', async (t) => {
  const what: Text = { key: 'a.when', with: { when: { ago: 60 } } }
  t.equal(say('a.nested', { what }, 'de').text, 'Really: It was vor 1 Minute.')
})

t.test('a missing text or placeholder shows as an error', async (t) => {
  t.throws(() => say('a.missing'), /there is no text a\.missing/)
  t.throws(() => say('a.name'), /a\.name: nothing was given for name/)
  t.throws(() => say('a.link', { account: '/account' }), /<account> needs a link/)
})

t.test('a key that a language lacks falls back to English', async (t) => {
  const some = createI18n(
    { service: 'S' },
    { sv: { 'login.title': 'Logga in' }, en: { 'login.submit': 'Go' } },
  )
  t.equal(some.in('sv').t('login.title').text, 'Logga in')
  t.equal(some.in('sv').t('login.submit').text, 'Go')
  t.equal(some.in('de').t('login.submit').text, 'Anmelden')
})
