import t from 'tap'
import {
  clientWords,
  isLocalized,
  localized,
  localizedMembers,
  resourceName,
} from '../../src/domain/localized.ts'
import { ownApi, publicClient } from '../helpers/samples.ts'

t.test('a page shows the member in its language, else of a region, else the one without a tag', async (t) => {
  const plain = { client_name: 'Reading' }
  const regions = { 'client_name#fr-CA': 'Lecture (Canada)', 'client_name#fr-FR': 'Lecture (France)' }
  const rows = [
    [plain, 'fr', 'Reading'],
    [{ ...plain, 'client_name#fr': 'Lecture' }, 'fr', 'Lecture'],
    [{ ...plain, 'client_name#FR': 'Lecture' }, 'fr', 'Lecture'],
    [{ ...plain, 'client_name#fr': 'Lecture' }, 'de', 'Reading'],
    [{ ...plain, ...regions }, 'fr', 'Lecture (Canada)'],
    [{ ...plain, ...regions }, 'fr-fr', 'Lecture (France)'],
    [{ ...plain, ...regions, 'client_name#fr': 'Lecture' }, 'fr', 'Lecture'],
    // A longer subtag, and another language that begins with the same characters.
    [{ ...plain, 'client_name#frr': 'Lesing' }, 'fr', 'Reading'],
    [{ ...plain, 'client_name#de-fr-': 'x' }, 'fr', 'Reading'],
    // The members are of equal length.
    [{ client_name: 'Reading', 'policy_name#fr': 'Règles' }, 'fr', 'Reading'],
    [{ 'client_name#fr': 7 }, 'fr', undefined],
    [{ client_name: { text: 'Reading' } }, 'fr', undefined],
    [{}, 'fr', undefined],
  ] as const
  for (const [members, language, shown] of rows)
    t.equal(localized(members, 'client_name', language), shown, JSON.stringify([members, language]))
})

const names = ['client_name', 'tos_uri']

t.test('a member is localized if it has one of these names and one language tag', async (t) => {
  for (const member of ['client_name#fr', 'client_name#fr-CA', 'tos_uri#pt-br'])
    t.equal(isLocalized(member, names), true, member)
  for (const member of [
    'client_name',
    'client_name#',
    'client_name#f r',
    'client_name#-fr',
    'client_name#fr#fr',
    'logo_uri#fr',
    'xclient_name#fr',
    '#fr',
    'client_namefr',
    'fr',
  ])
    t.equal(isLocalized(member, names), false, member)
})

t.test('of an entry only texts with a language tag are kept', async (t) => {
  const entry = {
    client_name: 'Reading',
    'client_name#fr': 'Lecture',
    'client_name#de': 7,
    'logo_uri#fr': 'https://a.example',
    'tos_uri#de': 'https://a.example/agb',
    tos_uri: 5,
  }
  t.strictSame(localizedMembers(entry, names), {
    'client_name#fr': 'Lecture',
    'tos_uri#de': 'https://a.example/agb',
  })
})

t.test('a client has its name and links in the language of the page', async (t) => {
  const links = {
    clientUri: 'https://a.example',
    policyUri: 'https://a.example/privacy',
    tosUri: 'https://a.example/terms',
  }
  const tagged = {
    'client_name#de': 'Lesen',
    'client_uri#de': 'https://a.example/de',
    'policy_uri#de': 'https://a.example/datenschutz',
    'tos_uri#de': 'https://a.example/agb',
  }
  const client = { ...publicClient, ...links, name: 'Reading', localized: tagged }
  t.strictSame(clientWords(client, 'de'), {
    name: 'Lesen',
    clientUri: 'https://a.example/de',
    policyUri: 'https://a.example/datenschutz',
    tosUri: 'https://a.example/agb',
  })
  t.strictSame(clientWords(client, 'fr'), { name: 'Reading', ...links })
  t.strictSame(clientWords(publicClient, 'de'), {}, 'absent, never undefined')
})

t.test('a resource has its name in the language of the page', async (t) => {
  t.equal(resourceName(ownApi, 'de'), 'Own')
  const resource = { ...ownApi, localized: { 'name#de': 'Eigene' } }
  t.equal(resourceName(resource, 'de'), 'Eigene')
  t.equal(resourceName(resource, 'fr'), 'Own')
})
