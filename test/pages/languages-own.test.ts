/** An operator's own scopes, resources and language, in the language of the page. */
import t from 'tap'
import { authorizationUrl, register } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { type Landing, type Page, UserAgent } from '../helpers/user-agent.ts'

const library = 'https://library.example'
const server = await startServer(t, {
  service: { language: 'fr' },
  scopes: [
    { name: 'openid', group: 'You', access: 'identity', description: 'Who you are' },
    {
      name: 'books:read',
      group: 'Library',
      access: 'read',
      description: 'Books you borrowed',
      ...{ 'group#de': 'Bibliothek', 'description#de-AT': 'Bücher, die Sie ausgeliehen haben' },
    },
  ],
  resources: [
    {
      identifier: library,
      name: 'Library API',
      scopes: ['books:read'],
      tokenFormat: 'opaque',
      ...{ 'name#de': 'Bücherei' },
    },
  ],
})
const client = await register(server)

function pageOf(landing: Landing): Page {
  if (landing.at === 'page') return landing.page
  throw new Error(`sent away to ${landing.location}`)
}

async function consentIn(language: string): Promise<string> {
  const agent = new UserAgent(server.issuer)
  const wish = { scope: 'books:read', resource: library, ui_locales: language }
  const signIn = pageOf(await agent.open(authorizationUrl(server, client, wish)))
  return pageOf(await agent.submit(signIn, alice)).html
}

t.test(
  "an operator's scope and resource are shown in the language of the page, where they have it",
  async (t) => {
    const german = await consentIn('de')
    for (const words of ['Bibliothek', 'Bücher, die Sie ausgeliehen haben', 'Bücherei'])
      t.ok(german.includes(words))
    t.notMatch(german, /Library|Books/)
    const spanish = await consentIn('es')
    for (const words of ['Library', 'Books you borrowed', 'Library API']) t.ok(spanish.includes(words))
  },
)

t.test('a browser without a supported language gets that of the service', async (t) => {
  const page = await fetch(`${server.issuer}/`, { headers: { 'accept-language': 'sv' } })
  t.equal(page.headers.get('content-language'), 'fr')
})
