/** The language of every page: what selects it, and that nothing is left in another. */
import t from 'tap'
import { readCatalogue, shippedLanguages } from '../../src/pages/i18n/i18n.ts'
import { authorizationUrl, register } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { type Landing, type Page, UserAgent } from '../helpers/user-agent.ts'
import { textOf } from './samples/read-page.ts'

const server = await startServer(t, { service: { name: 'Riverside' } })
const client = await register(server, { client_name: 'Zyx', 'client_name#de': 'Zyx auf Deutsch' })
const everything = server.deps.config.scopes.map(({ name }) => name).join(' ')

function pageOf(landing: Landing): Page {
  if (landing.at === 'page') return landing.page
  throw new Error(`sent away to ${landing.location}`)
}

/** The page for a request of the client, in a browser with these languages. */
async function ask(
  fields: Record<string, string>,
  acceptLanguage?: string,
  agent = new UserAgent(server.issuer),
) {
  const page = pageOf(await agent.open(authorizationUrl(server, client, fields)))
  if (acceptLanguage === undefined) return page
  return pageOf(await agent.open(page.url, { headers: { 'accept-language': acceptLanguage } }))
}

function languageOf({ html, headers }: Page): string | undefined {
  const [, language] = /<html lang="([^"]*)" dir="(?:ltr|rtl)">/.exec(html) ?? []
  return headers.get('content-language') === language ? language : undefined
}

/** English texts of the catalogue on this page, in words that the language itself does not use. */
function englishOn(page: Page, language: string): readonly string[] {
  const [text, own] = [
    textOf(page.html),
    Object.values(readCatalogue(language)).map((entry) => JSON.stringify(entry)),
  ]
  /** As whole words: French "Changer" is no English "Change". */
  const isIn = (words: string, whole: string) =>
    whole.split(words).some((before, index, all) => {
      const after = all[index + 1]
      return after !== undefined && !/\p{L}$/u.test(before) && !/^\p{L}/u.test(after)
    })
  return Object.values(readCatalogue('en'))
    .filter((entry) => {
      const pieces = String(typeof entry === 'string' ? entry : entry.other).split(/\{\w+\}|<\/?\w+>/)
      const [longest = ''] = pieces
        .map((piece) => piece.trim())
        .sort((one, other) => other.length - one.length)
      return longest.length >= 4 && isIn(longest, text) && !own.some((sentence) => isIn(longest, sentence))
    })
    .map(String)
}

for (const language of shippedLanguages) {
  t.test(`sign-in, its problem, consent and sign-out are entirely in ${language}`, async (t) => {
    const agent = new UserAgent(server.issuer)
    const signIn = await ask({ scope: everything, ui_locales: language }, undefined, agent)
    const wrong = pageOf(await agent.submit(signIn, { ...alice, password: 'not-hers' }))
    const consent = pageOf(await agent.submit(wrong, alice))
    const leave = pageOf(await agent.open(`${server.issuer}/oauth/logout?ui_locales=${language}`))
    t.match(wrong.html, 'role="alert"')
    t.match(consent.html, 'value="approve"')
    t.match(leave.html, 'value="logout"')
    const left = pageOf(await agent.submit(leave, { decision: 'logout' }))
    for (const page of [signIn, wrong, consent, leave, left]) {
      const where = page.url
      t.equal(languageOf(page), language, where)
      t.match(page.html, `dir="${language === 'ar' ? 'rtl' : 'ltr'}"`, where)
      t.equal(page.headers.get('vary'), 'Accept-Language', where)
      if (language !== 'en') t.strictSame(englishOn(page, language), [], where)
    }
  })
}

t.test('the English words that the other tests exclude are found on an English page', async (t) => {
  const page = await ask({})
  t.ok(englishOn(page, 'de').includes('Password'))
  t.ok(englishOn(page, 'de').length >= 3)
})

/** ui_locales, Accept-Language, the language of the page. */
const wishes: [string | undefined, string | undefined, string][] = [
  [undefined, undefined, 'en'],
  [undefined, 'fr-CH, fr;q=0.9, en;q=0.8', 'fr'],
  [undefined, 'sv, da', 'en'],
  ['de', 'fr', 'de'],
  ['sv ja-JP de', 'fr', 'ja'],
  ['sv', 'pt-BR', 'pt'],
  ['xx "<>', 'ar', 'ar'],
]

for (const [uiLocales, acceptLanguage, language] of wishes) {
  t.test(
    `ui_locales ${uiLocales} and Accept-Language ${acceptLanguage} make a page in ${language}`,
    async (t) => {
      const page = await ask(uiLocales === undefined ? {} : { ui_locales: uiLocales }, acceptLanguage)
      t.equal(languageOf(page), language)
    },
  )
}

t.test('the language that a client requested stays until its request is completed', async (t) => {
  const agent = new UserAgent(server.issuer)
  const signIn = await ask({ ui_locales: 'ja' }, 'fr', agent)
  const again = pageOf(await agent.open(signIn.url, { headers: { 'accept-language': 'fr' } }))
  t.equal(languageOf(again), 'ja')
  const elsewhere = pageOf(await agent.open(`${server.issuer}/`, { headers: { 'accept-language': 'fr' } }))
  t.equal(languageOf(elsewhere), 'fr')
})

t.test('errors on a page are in its language, and their reason for developers is English', async (t) => {
  const agent = new UserAgent(server.issuer)
  const headers = { 'accept-language': 'de' }
  const german = readCatalogue('de')
  const unknown = pageOf(await agent.open(`${server.issuer}/oauth/authorize?client_id=nobody&ui_locales=de`))
  const missing = pageOf(
    await agent.open(`${server.issuer}/nowhere`, { headers: { ...headers, accept: 'text/html' } }),
  )
  const cookieless = pageOf(await agent.open(`${server.issuer}/login?interaction=x`, { headers }))
  const bound = new UserAgent(server.issuer)
  const signIn = await ask({ ui_locales: 'de' }, undefined, bound)
  const ended = pageOf(await bound.open(`${server.issuer}/consent?interaction=gone`, { headers }))
  const forged = pageOf(await bound.submit(signIn, { ...alice, csrf: 'x' }))
  for (const [page, key] of [
    [unknown, 'error.request.title'],
    [missing, 'error.notFound'],
    [cookieless, 'error.noCookie'],
    [ended, 'error.ended'],
    [forged, 'error.outdated'],
  ] as const) {
    t.equal(languageOf(page), 'de', key)
    t.equal(/<h1>(.*)<\/h1>/.exec(page.html)?.[1], german[key])
    t.strictSame(englishOn(page, 'de'), [], key)
    const english = /<bdi lang="en">[ -~]+<\/bdi>/.test(page.html)
    t.equal(english, key === 'error.request.title', 'the description is for the developer of the app')
  }
})

t.test('a client is shown with its name in the language of the page', async (t) => {
  for (const [language, name] of [
    ['de', 'Zyx auf Deutsch'],
    ['fr', 'Zyx'],
  ]) {
    const { html } = await ask({ ui_locales: language ?? '' })
    t.ok(html.includes(`<bdi>${name}</bdi>`), `${language}`)
  }
})

t.test('no Accept-Language header makes a page fail', async (t) => {
  for (const header of [
    'a-'.repeat(3000),
    ','.repeat(6000),
    `${'xx,'.repeat(3000)}de`,
    'de;q=9',
    '*;q=0',
    '\u00e9',
  ]) {
    const page = await ask({}, header)
    t.equal(page.status, 200)
    t.equal(languageOf(page), 'en')
  }
  const long = await ask({ ui_locales: `${'x '.repeat(2000)}de` })
  t.equal(languageOf(long), 'en')
})
