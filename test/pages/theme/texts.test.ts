/** Texts of an operator that replace the shipped ones. */
import t from 'tap'
import { textFaults } from '../../../src/pages/i18n/faults.ts'
import { readCatalogue } from '../../../src/pages/i18n/i18n.ts'
import { startServer } from '../../helpers/server.ts'

const own = {
  en: {
    'home.heading': 'Come in & find {service}',
    'home.about': '<b>No markup</b> of any other kind: <i id="x"> stays what it is.',
  },
}

t.test("an operator's text replaces the shipped one, and the others stay", async (t) => {
  const server = await startServer(t, { service: { name: 'Riverside' }, texts: own })
  const html = await (await fetch(`${server.issuer}/`)).text()
  t.match(html, /<h1>Come in &amp; find .*Riverside.*<\/h1>/)
  t.match(html, '<strong>No markup</strong> of any other kind: &lt;i id=&quot;x&quot;&gt; stays what it is.')
  t.match(html, 'Authorization server metadata')
})

t.test("an operator's language is offered like a shipped one", async (t) => {
  const nl = { ...readCatalogue('en'), 'home.heading': 'Aanmelden bij {service}' }
  const server = await startServer(t, { texts: { nl } })
  const response = await fetch(`${server.issuer}/`, { headers: { 'accept-language': 'nl-BE' } })
  t.equal(response.headers.get('content-language'), 'nl')
  t.match(await response.text(), /<html lang="nl" dir="ltr">.*Aanmelden bij/s)
  const metadata = await fetch(`${server.issuer}/.well-known/oauth-authorization-server`)
  const { ui_locales_supported: locales } = (await metadata.json()) as { ui_locales_supported: string[] }
  t.ok(locales.includes('nl') && locales.includes('en'))
})

t.test('texts that cannot be rendered are rejected, one line each', async (t) => {
  const strange = {
    en: {
      'login.titel': 'Hi',
      'login.title': 'Sign in, {who}',
      'login.forClient': 'for <b>{client}</b> of {service}',
      'login.submit': '<i>Go</i>',
      'consent.more': { one: 'one', other: '{count}' },
      'consent.deny': { one: 'no' },
      'consent.allow': 5,
    },
    EN: {},
    nl: { 'login.title': 'Aanmelden' },
  }
  // @ts-expect-error a number where a text should be
  const faults = [...textFaults(strange)]
  // Those of the admin pages may be missing.
  const count = Object.keys(readCatalogue('en')).filter((key) => !key.startsWith('admin.')).length - 1
  t.strictSame(faults, [
    'texts.en: login.titel: there is no such text; did you mean login.title?',
    'texts.en: login.title: there is no {who} to fill in; it has {service}, <b>',
    'texts.en: login.submit: there is no <i> to fill in; it has {service}, <b>',
    'texts.en: login.submit: there is no </i> to fill in; it has {service}, <b>',
    'texts.en: consent.deny: must be a sentence, or one for each plural form: zero, one, two, few, many, other',
    'texts.en: consent.allow: must be a sentence, or one for each plural form: zero, one, two, few, many, other',
    'texts.EN: must be a language tag in lower case, such as de or pt-br',
    `texts.nl: is not shipped and so needs every text; ${count} are missing, the first is site.help`,
  ])
  t.strictSame([...textFaults(own)], [])
})
